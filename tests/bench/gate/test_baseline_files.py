"""Baselines on disk: what is kept, what is noticed, what is never written."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gate_sets import made_set, system
from made import refused

from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import LabelledSet, Question
from recallbench.evaluation.evaluate import evaluate
from recallbench.gate.baselines.changes import changes, places_of
from recallbench.gate.baselines.check import check
from recallbench.gate.baselines.files import HEAD, load, save
from recallbench.gate.baselines.model import DIGITS, Baseline, baseline_of, run_of
from recallbench.gate.baselines.show import baseline_markdown, baseline_values
from recallbench.measures import parse_measures
from recallbench.systems.base import SystemRun
from recallstack.ranking.rows import Corpus

SET = made_set(20)
NAMES = "R@5 RR Chars"


def baseline(labelled: LabelledSet = SET, *runs: SystemRun) -> Baseline:
    evaluation = evaluate(labelled, runs or (system(labelled, {0: 0, 1: 3}),), parse_measures(NAMES), 5)
    return baseline_of(evaluation, "task", {"recallbench": "1"}, {"cores": 2}, "abc")


def with_questions(labelled: LabelledSet, change: Any) -> LabelledSet:
    """The set with some questions replaced. change: question -> question, a list, or None for one that is gone."""
    questions: list[Question] = []
    for question in labelled.questions:
        found = change(question)
        questions += found if isinstance(found, list) else [found] if found is not None else []
    return hashed(labelled.info, labelled.corpora, questions)


def with_memories(labelled: LabelledSet, change: Any) -> LabelledSet:
    kept = [found for memory in labelled.corpora["main"].memories if (found := change(memory)) is not None]
    return hashed(labelled.info, {"main": Corpus("main", kept)}, labelled.questions)


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    made = baseline()
    assert save(made, tmp_path / "b")
    got = load(tmp_path / "b")
    for field in dataclasses.fields(Baseline):
        if field.name != "systems":
            assert getattr(got, field.name) == getattr(made, field.name), field.name
    (one,), (other,) = got.systems.values(), made.systems.values()
    for field in dataclasses.fields(one):
        assert getattr(one, field.name) == getattr(other, field.name), field.name
    assert got.measures == ("R@5", "RR", "Chars")


def test_a_line_a_question_so_that_a_diff_can_be_read(tmp_path: Path) -> None:
    save(baseline(), tmp_path / "one")
    save(baseline(SET, system(SET, {0: 0, 1: 3, 7: 2})), tmp_path / "two")
    texts = [(tmp_path / name / "answers" / "plugin.jsonl").read_text().splitlines() for name in ("one", "two")]
    differing = [n for n, (a, b) in enumerate(zip(*texts, strict=True)) if a != b]
    assert differing == [7]
    assert json.loads(texts[0][1]) == {
        "question": "q-1",
        "ids": ["x-1", "x-2", "m-1", "x-3", "x-4"],
        # Chars: "memory 1" and four of "other N" (7 characters each).
        "values": {"R@5": 1.0, "RR": 1 / 3, "Chars": 8.0 + 4 * 7},
        "semantic": 5,
    }


def test_no_text_is_in_it(tmp_path: Path) -> None:
    canary = "canary-Zq7"

    def marked(memory: Any) -> Any:
        return msgspec.structs.replace(memory, content=f"{canary} {memory.content}")

    labelled = with_memories(SET, marked)
    labelled = with_questions(labelled, lambda one: msgspec.structs.replace(one, text=f"{canary} {one.text}"))
    save(baseline(labelled, system(labelled)), tmp_path / "b")
    for path in (tmp_path / "b").rglob("*"):
        assert not path.is_file() or canary not in path.read_text()


def test_too_little_of_a_hash_is_kept_to_guess_a_text() -> None:
    made = baseline()
    assert {len(one) for one in (*made.memories.values(), *made.questions.values())} == {DIGITS}


def test_the_same_answers_leave_the_files_alone(tmp_path: Path) -> None:
    folder = tmp_path / "b"
    save(baseline(), folder)
    before = (folder / HEAD).read_bytes()
    assert not save(dataclasses.replace(baseline(), time="later", revision="def"), folder)
    assert (folder / HEAD).read_bytes() == before
    assert save(baseline(SET, system(SET)), folder)
    assert load(folder).systems["plugin"].values["R@5"] == (1.0,) * 20
    assert [one.name for one in tmp_path.iterdir()] == ["b"]


def test_another_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.md").write_text("mine")
    assert "is there and is no baseline" in refused(save, baseline(), tmp_path / "mine")
    (tmp_path / "file").write_text("mine")
    assert "is there and is no baseline" in refused(save, baseline(), tmp_path / "file")
    assert (tmp_path / "mine" / "notes.md").read_text() == "mine"


def test_what_cannot_be_written_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "b"
    save(baseline(), folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def full(self: Path, *_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert "nothing was changed" in refused(save, baseline(SET, system(SET)), folder)
    monkeypatch.undo()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert [one.name for one in tmp_path.iterdir()] == ["b"]


BROKEN = {
    "missing head": (HEAD, None, "no baseline there"),
    "head is no JSON": (HEAD, "{", "broken JSON"),
    "another format": (HEAD, ('"format": 1', '"format": 2'), "format 2; this recallbench reads format 1"),
    "missing answers": ("answers/plugin.jsonl", None, "cannot be read"),
    "an answer is gone": ("answers/plugin.jsonl", 5, "plugin.jsonl:6: question 'q-6' where 'q-5' is due"),
    "a broken answer": ("answers/plugin.jsonl", ('"ids":[', '"ids":7,"x":['), "plugin.jsonl:1: "),
    "another measure": ("answers/plugin.jsonl", ('"RR":0.0', '"RRR":0.0'), "has other measures than the first line"),
    "missing memories": ("memories.csv", None, "memories.csv: is missing"),
    "another header": ("memories.csv", ("corpus,memory", "corpus,id"), "memories.csv:1: the first line must be"),
    "a short line": ("questions.csv", ("q-3,", "q-3"), "questions.csv:5: 2 cells"),
    "no system": (HEAD, "systems", "holds no system"),
    "a file of another name": (HEAD, ('"file": "plugin"', '"file": "../plugin"'), "must be 'plugin'"),
}


@pytest.mark.parametrize(("file", "change", "said"), BROKEN.values(), ids=BROKEN)
def test_an_edited_baseline_is_named_with_file_and_line(tmp_path: Path, file: str, change: Any, said: str) -> None:
    save(baseline(), tmp_path / "b")
    path = tmp_path / "b" / file
    text = path.read_text()
    if change is None:
        path.unlink()
    elif isinstance(change, int):
        rows = text.splitlines(keepends=True)
        path.write_text("".join(rows[:change] + rows[change + 1 :]))
    elif change == "systems":
        values = json.loads(text)
        path.write_text(json.dumps({**values, "systems": {}}))
    elif isinstance(change, str):
        path.write_text(change)
    else:
        assert change[0] in text
        path.write_text(
            text.replace(*change, 1)
            if file != "answers/plugin.jsonl" or "RR" not in change[0]
            else text.replace(*change)
        )
    assert said in refused(load, tmp_path / "b")


# Changes of the set.


def test_an_unchanged_set_has_no_changes() -> None:
    found = changes(baseline(), SET)
    assert [bool(one) for one in (found.memories, found.questions, found.labels)] == [False] * 3
    assert places_of(baseline(), SET, "b") == (list(range(20)), [])


def test_changed_memories_are_refused_and_named() -> None:
    def edit(memory: Any) -> Any:
        if memory.id == "m-3":
            return msgspec.structs.replace(memory, content="another text")
        return None if memory.id == "x-9" else memory

    message = refused(places_of, baseline(), with_memories(SET, edit), "base")
    assert message.startswith("base: was made on other memories than made has now: ")
    assert "1 gone ('x-9'); 1 changed ('m-3')" in message
    assert "--baseline-ref" in message


def test_a_change_of_any_field_of_a_memory_counts() -> None:
    def edit(memory: Any) -> Any:
        return msgspec.structs.replace(memory, importance=9) if memory.id == "m-3" else memory

    assert changes(baseline(), with_memories(SET, edit)).memories.changed == ("m-3",)


def test_the_whole_hash_decides_where_the_kept_digits_do_not() -> None:
    """A changed memory whose four digits are the old ones by chance is not let through."""

    def edit(memory: Any) -> Any:
        return msgspec.structs.replace(memory, content="another text") if memory.id == "m-3" else memory

    labelled = with_memories(SET, edit)
    made = baseline()
    digits = dict(baseline(labelled, system(labelled)).memories)
    assert "that the kept digits do not tell" in refused(
        places_of, dataclasses.replace(made, memories=digits), labelled, "b"
    )


def test_new_and_reworded_questions_are_refused_and_named() -> None:
    def edit(question: Question) -> Any:
        if question.id == "q-2":
            return msgspec.structs.replace(question, text="reworded")
        return [question, msgspec.structs.replace(question, id="q-new")] if question.id == "q-5" else question

    message = refused(places_of, baseline(), with_questions(SET, edit), "base")
    assert "was not asked 2 of the questions of made as they are now: 'q-new', 'q-2'" in message


def test_dropped_questions_are_left_out_and_said() -> None:
    labelled = with_questions(SET, lambda one: None if one.id in ("q-0", "q-9") else one)
    places, notes = places_of(baseline(), labelled, "base")
    assert places == [1, 2, 3, 4, 5, 6, 7, 8, *range(10, 20)]
    assert notes == ["2 questions of the baseline left out: not asked now"]


def test_questions_may_stand_in_another_order() -> None:
    labelled = hashed(SET.info, SET.corpora, SET.questions[::-1])
    places, notes = places_of(baseline(), labelled, "base")
    assert places == list(range(19, -1, -1))
    assert notes == []
    run = run_of("plugin", baseline().systems["plugin"], places)
    assert run.ids[18] == baseline().systems["plugin"].ids[1]


def test_changed_labels_are_scored_anew_from_the_stored_lists() -> None:
    """q-0 got x-1 … x-5, not its answer: R@5 was 0. x-2 is now what answers it: 1."""
    labelled = with_questions(
        SET, lambda one: msgspec.structs.replace(one, relevant={"x-2": 2}) if one.id == "q-0" else one
    )
    made = baseline()
    places, notes = places_of(made, labelled, "base")
    assert notes == [
        "labels changed since the baseline was saved, of 1 question ('q-0'): it is scored anew from its stored lists"
    ]
    run = run_of("plugin", made.systems["plugin"], places)
    again = evaluate(labelled, (run,), parse_measures(NAMES), 5)
    assert made.systems["plugin"].values["R@5"][0] == 0
    assert again.values[0, 0, 0] == 1
    assert again.values[0, 1, 0] == 1 / 2


# check and show.


def test_check_finds_nothing_where_nothing_changed() -> None:
    found = check(baseline(), SET, [system(SET, {0: 0, 1: 3})])
    assert found.same
    assert found.usable
    assert found.lines() == []


def test_check_names_values_answers_labels_and_questions() -> None:
    made = baseline()
    one = made.systems["plugin"]
    edited = dataclasses.replace(one, values={**one.values, "RR": (0.5, *one.values["RR"][1:])})
    held = dataclasses.replace(made, systems={"plugin": edited})
    labelled = with_questions(SET, lambda q: msgspec.structs.replace(q, categories=("new",)) if q.id == "q-4" else q)
    found = check(held, labelled, [system(SET, {0: 0, 1: 3, 8: 2})])
    assert found.usable
    assert not found.same
    assert found.lines() == [
        "labels: 1 changed ('q-4'): a gate scores it anew from its lists",
        "plugin: RR: 1 stored value not what the lists give now ('q-0')",
        "plugin: answers 1 question with other lists now ('q-8')",
    ]


def test_check_of_other_memories_says_that_a_gate_refuses() -> None:
    found = check(baseline(), with_memories(SET, lambda one: None if one.id == "x-20" else one))
    assert not found.usable
    assert found.lines() == ["memories: 1 gone ('x-20'): refused by a gate; save it anew"]


def test_show_has_means_and_one_questions_lists() -> None:
    """R@5: 19 of 20. RR: 18 at rank 1, one at 3."""
    values = baseline_values(baseline())
    assert values["means"]["plugin"]["R@5"] == pytest.approx(19 / 20)
    assert values["means"]["plugin"]["RR"] == pytest.approx((18 + 1 / 3) / 20)
    assert "| plugin | 0.950 | 0.917 |" in baseline_markdown(baseline())
    one = baseline_values(baseline(), "q-1")["answers"]["plugin"]
    assert one["ids"][2] == "m-1"
    assert "did you mean 'q-1" in refused(baseline_values, baseline(), "q-1x")
