"""Pools and judgements: what nobody read, a CSV file that a spreadsheet edits, labels, agreement."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import files, jsonl
from paths import ROOT

from recallbench.datasets.model import LabelledSet
from recallbench.datasets.readers import native
from recallbench.evaluation.check_set import contradictions
from recallbench.labelling import judging
from recallbench.labelling.applying import apply
from recallbench.labelling.judging import Judgement
from recallbench.labelling.pool import Pair, leave_one_out, second_pass, unjudged
from recallbench.measures import parse_measure
from recallbench.systems.base import SystemRun
from recallstack.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    out = tmp_path / "set"
    out.mkdir()
    (out / "dataset.toml").write_text('name = "tiny"\n')
    memories = [{"id": f"m{i}", "content": f"=content {i}"} for i in range(6)]
    (out / "memories.jsonl").write_text("".join(json.dumps(one) + "\n" for one in memories))
    questions = [
        {"id": "q1", "text": "one", "relevant": {"m0": 2}, "not_relevant": ["m1"], "judged_by": ["a"]},
        {"id": "q2", "text": "two", "relevant": [{"snippet": "content 2"}, "m3"], "forbidden": ["m4"]},
    ]
    (out / "questions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in questions))
    return out


def system(name: str, *lists: tuple[str, ...]) -> SystemRun:
    import numpy as np

    scores = tuple(tuple(float(-i) for i in range(len(one))) for one in lists)
    return SystemRun(name, {}, lists, scores, np.zeros(len(lists), np.int32), np.zeros(len(lists), np.bool_))


def test_the_pool_is_the_union_of_the_tops_without_what_was_read(folder: Path) -> None:
    """q1 has m0 and m1 read; q2 has m2, m3 and m4. At depth 2: q1 gives m2 (of b), q2 gives m0 and m5."""
    labelled = native.read(folder)
    runs = [system("a", ("m0", "m1", "m5"), ("m0", "m2")), system("b", ("m2", "m0"), ("m5", "m4"))]
    assert set(unjudged(labelled, runs, 2)) == {Pair("q1", "m2"), Pair("q2", "m0"), Pair("q2", "m5")}
    assert unjudged(labelled, runs, 2, seed=3) == unjudged(labelled, runs, 2, seed=3)
    with pytest.raises(InputError, match="depth is 0"):
        unjudged(labelled, runs, 0)


def test_leave_one_out_drops_what_a_system_alone_brought(folder: Path) -> None:
    """R@2 of q1 (only m0 answers) and q2 (m2 and m3). Of `a`: q1 1, q2 1/2 (m2). Only `a` brings m2, only `b` m3:
    left out, q2 has the one answer m3, which `a` has not: 0. `b`: q1 1 (m0), q2 1/2; without m3 0."""
    labelled = native.read(folder)
    runs = [system("a", ("m0", "m1"), ("m2", "m0")), system("b", ("m0", "m5"), ("m3", "m0"))]
    first, second = leave_one_out(labelled, runs, 2, parse_measure("R@2"))
    assert (first.system, first.value, first.without, first.lost) == ("a", 0.75, 0.5, 1)
    assert (second.value, second.without, second.lost) == (0.75, 0.5, 1)


def test_a_second_pass_shows_a_share_of_what_was_judged_and_no_grade(folder: Path) -> None:
    labelled = native.read(folder)
    every = second_pass(labelled, 1)
    assert set(every) == {Pair("q1", "m0"), Pair("q1", "m1"), Pair("q2", "m2"), Pair("q2", "m3")}
    assert len(second_pass(labelled, 0.5)) == 2
    assert [row.grade for row in judging.rows_of(labelled, every)] == ["", "", "", ""]
    with pytest.raises(InputError, match="share is 0"):
        second_pass(labelled, 0)


def test_csv_and_back_keeps_pairs_and_makes_formulas_harmless(folder: Path, tmp_path: Path) -> None:
    labelled = native.read(folder)
    path = tmp_path / "pool.csv"
    rows = [Judgement("q1", "m2", "2", "=cmd|calc"), Judgement("q2", "m0")]
    judging.write(path, labelled, rows)
    text = path.read_text(encoding="utf-8-sig")
    assert "'=content 2" in text
    assert "'=cmd|calc" in text
    assert ",=" not in text
    assert [(one.question, one.memory, one.grade) for one in judging.read(path, labelled)] == [
        ("q1", "m2", "2"),
        ("q2", "m0", ""),
    ]


def test_judgements_become_labels_and_other_lines_stay(folder: Path) -> None:
    before = (folder / "questions.jsonl").read_text().splitlines()
    rows = [
        Judgement("q2", "m0", "0"),
        Judgement("q2", "m5", "1"),
        Judgement("q2", "m1", "f"),
        Judgement("q1", "m5", ""),
    ]
    assert apply(folder, rows, "b") == 3
    after = (folder / "questions.jsonl").read_text().splitlines()
    assert after[0] == before[0]
    labelled: LabelledSet = native.read(folder)
    question = labelled.questions[1]
    assert dict(question.relevant) == {"m2": 2, "m3": 2, "m5": 1}
    assert (question.not_relevant, question.forbidden, question.judged_by) == (("m0",), ("m4", "m1"), ("b",))
    assert apply(folder, rows, "b") == 0  # once more changes nothing
    assert (folder / "questions.jsonl").read_text().splitlines() == after


def test_another_grade_is_an_error_unless_it_replaces(folder: Path) -> None:
    before = (folder / "questions.jsonl").read_bytes()
    with pytest.raises(InputError, match=r"x:7: q1 and m0 are labelled 2, not 0; give --replace"):
        apply(folder, [Judgement("q1", "m0", "0", where="x:7")], "b")
    assert (folder / "questions.jsonl").read_bytes() == before
    assert apply(folder, [Judgement("q1", "m0", "0")], "b", replace_old=True) == 1
    question = native.read(folder).questions[0]
    assert (dict(question.relevant), question.not_relevant) == ({}, ("m1", "m0"))


HEAD = "question,memory,grade,note\r\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("question,memory\r\n", r"p\.csv:1: the column 'grade' is missing"),
        (HEAD + "q9,m0,1,\r\n", r"p\.csv:2: no question 'q9'"),
        (HEAD + "q1,m0,1,\r\nq1,m9,1,\r\n", r"p\.csv:3: no memory 'm9' in the corpus of question q1"),
        (HEAD + "q1,m0,yes,\r\n", r"p\.csv:2: grade is 'yes'; use one of 0, 1, 2, f"),
        (HEAD + "q1,m0,1,\r\nq1,m0,2,\r\n", r"p\.csv:3: q1 and m0 have another grade at .*p\.csv:2"),
    ],
)
def test_broken_files_are_one_line(text: str, message: str, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(InputError, match=message):
        judging.read(path, native.read(folder))


def test_spreadsheets_write_2_as_2_0(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(HEAD + "q1,m5,2.0,\n", encoding="utf-8-sig")
    assert judging.read(path, native.read(folder))[0].grade == "2"


def test_kappa_of_a_hand_made_table(folder: Path) -> None:
    """First pass 2 0 2 2, second 2 0 0 2: observed 3/4; by chance (3/4)(2/4) + (1/4)(2/4) = 1/2; kappa 1/2."""
    labelled = native.read(folder)
    rows = [
        Judgement("q1", "m0", "2"),
        Judgement("q1", "m1", "0"),
        Judgement("q2", "m2", "0"),
        Judgement("q2", "m3", "2"),
    ]
    found = judging.agreement(labelled, [*rows, Judgement("q1", "m5", "2")])
    assert (found.pairs, found.same) == (4, 3)
    assert found.kappa == pytest.approx(0.5)
    assert [(row.memory, old, row.grade) for row, old in found.differing] == [("m2", "2", "0")]
    with pytest.raises(InputError, match="no pair of the file"):
        judging.agreement(labelled, [Judgement("q1", "m5", "2")])


@given(st.lists(st.sampled_from("012"), min_size=3, max_size=3))
def test_judging_all_pairs_leaves_none(grades: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "dataset.toml").write_text('name = "tiny"\n')
        (folder / "memories.jsonl").write_text("".join(f'{{"id": "m{i}", "content": "x"}}\n' for i in range(4)))
        (folder / "questions.jsonl").write_text('{"id": "q", "text": "x", "relevant": {"m0": 2}}\n')
        runs = [system("a", ("m0", "m1", "m2", "m3"))]
        pairs = unjudged(native.read(folder), runs, 4)
        rows = [Judgement(one.question, one.memory, grade) for one, grade in zip(pairs, grades, strict=True)]
        apply(folder, rows, "x")
        assert unjudged(native.read(folder), runs, 4) == []


def command(*arguments: str, keys: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "recallbench", "datasets", *arguments],
        input=keys,
        capture_output=True,
        text=True,
        timeout=240,
        encoding="utf-8",
    )


def test_by_the_keyboard_from_pool_to_labels(folder: Path, tmp_path: Path) -> None:
    """Pool, judge one, go back and judge it otherwise, quit; go on, finish; apply; nothing is left."""
    file = tmp_path / "pool.csv"
    done = command("pool", str(folder), "--system", "bm25-lucene", "--system", "vector-lsa", "--out", str(file))
    assert done.returncode == 0, done.stderr
    total = len(judging.read(file, native.read(folder)))
    assert total >= 2
    done = command("judge", str(folder), str(file), keys="1\nb\nx\n2\nq\n")
    assert f"1 judged, {total - 1} left" in done.stdout, done.stdout + done.stderr
    done = command("judge", str(folder), str(file), keys="0\n" * total)
    assert f"{total} judged, 0 left" in done.stdout
    rows = judging.read(file, native.read(folder))
    assert sorted({row.grade for row in rows}) == ["0", "2"]
    done = command("judge", str(folder), str(file), "--apply", "maker-b")
    assert f"{total} new labels by maker-b" in done.stdout
    done = command("pool", str(folder), "--system", "bm25-lucene", "--system", "vector-lsa")
    assert done.stdout.startswith("0 pairs of 0 questions")
    done = command("pool", str(folder), "--again", "1", "--out", str(tmp_path / "again.csv"))
    done = command("judge", str(folder), str(tmp_path / "again.csv"), "--agreement")
    assert done.returncode == 2  # nothing judged in the second pass yet
    assert "no pair of the file was judged in both passes" in done.stderr


def test_the_input_may_end_and_a_judge_has_a_name(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "pool.csv"
    command("pool", str(folder), "--system", "bm25-lucene", "--system", "vector-lsa", "--out", str(file))
    total = len(judging.read(file, native.read(folder)))
    done = command("judge", str(folder), str(file), keys="1\n")  # the end of the input, not Ctrl-C
    assert done.returncode == 0
    assert f"1 judged, {total - 1} left" in done.stdout
    done = command("judge", str(folder), str(file), "--apply", " ")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--apply needs the name" in done.stderr


def test_an_error_names_the_first_line_of_a_record_that_spans_lines(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_text('question,memory,grade,note\nq-1,m-1,,"two\nlines"\nq-1,m-2,7,"two\nlines"\n', encoding="utf-8")
    labelled = native.read(folder)
    question, memory = labelled.questions[0].id, [one.id for one in labelled.corpora["main"].memories]
    text = file.read_text().replace("q-1", question).replace("m-1", memory[0]).replace("m-2", memory[1])
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"p\.csv:4: grade is '7'"):
        judging.read(file, labelled)


def test_a_column_of_first_grades_stands_for_labels_that_changed_since(folder: Path, tmp_path: Path) -> None:
    """Labels that were changed by a second pass would agree with it: the kept first grades count."""
    labelled = native.read(folder)
    question = next(one for one in labelled.questions if one.relevant)
    memory = next(iter(question.relevant))
    file = tmp_path / "second.csv"
    file.write_text(f"question,memory,first,grade\n{question.id},{memory},0,1\n", encoding="utf-8")
    found = judging.agreement(labelled, judging.read(file, labelled))
    assert found.table["0", "1"] == found.pairs == 1


@pytest.mark.parametrize("name", ["mneme-memories", "notes-vault", "kb-preretrieval"])
def test_the_kappa_of_a_guideline_is_what_its_second_pass_gives(name: str) -> None:
    folder = ROOT / "datasets" / name
    labelled = native.read(folder)
    found = judging.agreement(labelled, judging.read(folder / "second-pass.csv", labelled))
    guideline = " ".join((folder / "GUIDELINE.md").read_text(encoding="utf-8").split())
    assert f"({found.pairs}) was judged again" in guideline
    assert f"{found.same} had the same grade; Cohen's kappa is {found.kappa:.3f}" in guideline
    assert f"with linear weights {found.weighted:.3f}" in guideline
    assert f"The {len(found.differing)} that differed" in guideline


def own_set(folder: Path, *questions: dict[str, object]) -> Path:
    rows = [{"id": "a", "content": "alpha"}, {"id": "b", "content": "beta"}, {"id": " c ", "content": "gamma"}]
    files(folder, {"dataset.toml": 'name = "s"\n', "memories.jsonl": jsonl(rows), "questions.jsonl": jsonl(questions)})
    return folder


def graded(folder: Path, *cells: tuple[str, str, str]) -> list[Judgement]:
    file = folder / "g.csv"
    file.write_text("question,memory,grade\n" + "".join(f'"{q}","{m}",{g}\n' for q, m, g in cells), encoding="utf-8")
    return judging.read(file, native.read(folder))


def test_a_label_by_snippet_is_a_label(tmp_path: Path) -> None:
    folder = own_set(tmp_path / "s", {"id": "q", "text": "x", "relevant": [{"snippet": "alpha"}]})
    assert apply(folder, graded(folder, ("q", "a", "2")), "me") == 0
    with pytest.raises(InputError, match="q and a are labelled 2, not 0; give --replace"):
        apply(folder, graded(folder, ("q", "a", "0")), "me")
    assert apply(folder, graded(folder, ("q", "a", "0")), "me", replace_old=True) == 1
    [question] = native.read(folder).questions
    assert (dict(question.relevant), question.not_relevant) == ({}, ("a",))


def test_an_answer_where_nothing_was_expected(tmp_path: Path) -> None:
    folder = own_set(tmp_path / "s", {"id": "q", "text": "x", "expects_empty": True})
    before = (folder / "questions.jsonl").read_bytes()
    with pytest.raises(InputError, match="q expects that nothing answers it, and a is judged 2; give --replace"):
        apply(folder, graded(folder, ("q", "a", "2")), "me")
    assert (folder / "questions.jsonl").read_bytes() == before
    apply(folder, graded(folder, ("q", "a", "2")), "me", replace_old=True)
    assert contradictions(native.read(folder)) == []


def test_nothing_answers(tmp_path: Path) -> None:
    folder = own_set(tmp_path / "s", {"id": "q", "text": "x"}, {"id": "r", "text": "y", "relevant": {"b": 2}})
    assert apply(folder, graded(folder, ("q", "a", "n"), ("q", "b", "0")), "me") == 2
    question = native.read(folder).questions[0]
    assert (question.expects_empty, question.not_relevant) == (True, ("a", "b"))
    with pytest.raises(InputError, match="and has relevant memories"):
        apply(folder, graded(folder, ("r", "a", "n")), "me")


def test_pool_keeps_the_grades_of_a_file_that_is_there(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "pool.csv"
    systems = ("--system", "bm25-lucene", "--system", "vector-lsa", "--out", str(file))
    command("pool", str(folder), *systems)
    total = len(judging.read(file, native.read(folder)))
    command("judge", str(folder), str(file), keys="1\n")
    assert command("pool", str(folder), *systems).returncode == 0
    rows = judging.read(file, native.read(folder))
    assert (len(rows), [row.grade for row in rows if row.grade]) == (total, ["1"])
    done = command("pool", str(folder), "--system", "bm25-lucene", "--out", str(tmp_path))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is a folder; name a file" in done.stderr


def test_back_is_on_disk_too_also_after_a_new_start(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "pool.csv"
    command("pool", str(folder), "--system", "bm25-lucene", "--system", "vector-lsa", "--out", str(file))
    command("judge", str(folder), str(file), keys="1\n2\nb\nq\n")
    assert [row.grade for row in judging.read(file, native.read(folder)) if row.grade] == ["1"]
    done = command("judge", str(folder), str(file), keys="b\nb\nq\n")
    assert "nothing to go back to" in done.stdout
    assert not any(row.grade for row in judging.read(file, native.read(folder)))


@pytest.mark.parametrize(("written", "grade"), [("2.00", "2"), ("1,0", "1"), ("２", "2"), ("F", "f"), (" 0 ", "0")])
def test_grades_as_spreadsheets_and_input_methods_write_them(written: str, grade: str, tmp_path: Path) -> None:
    folder = own_set(tmp_path / "s", {"id": "q", "text": "x"})
    assert [row.grade for row in graded(folder, ("q", "a", f'"{written}"'))] == [grade]


def test_ids_with_blanks_and_a_header_in_capitals(tmp_path: Path) -> None:
    folder = own_set(tmp_path / "s", {"id": " q 1", "text": "x"})
    labelled = native.read(folder)
    file = tmp_path / "x.csv"
    judging.write(file, labelled, judging.rows_of(labelled, [Pair(" q 1", " c ")]))
    file.write_text(file.read_text("utf-8-sig").replace("question,memory,grade", "Question, Memory ,GRADE"), "utf-8")
    [row] = judging.read(file, labelled)
    assert (row.question, row.memory) == (" q 1", " c ")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'question,memory,grade,note\nq,a,0,"abc\nq,b,1,\n', "not a CSV file (from line"),
        ("question,memory,grade,note\nq,a,0,备注\n".encode("gbk"), "not UTF-8; save the file as CSV in UTF-8"),
        (b"question;memory;grade\nq;a;0\n", "save it with commas, not ';'"),
    ],
)
def test_files_that_lose_rows_are_refused(data: bytes, says: str, tmp_path: Path) -> None:
    folder = own_set(tmp_path / "s", {"id": "q", "text": "x"})
    (tmp_path / "x.csv").write_bytes(data)
    with pytest.raises(InputError) as caught:
        judging.read(tmp_path / "x.csv", native.read(folder))
    assert says in str(caught.value)


def test_a_set_that_ships_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("question,memory,grade\nq-001,m-001,0\n", encoding="utf-8")
    done = command("judge", "mneme-memories", str(tmp_path / "x.csv"), "--apply", "me")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "comes with recallbench, and is not written to" in done.stderr


def test_an_unlabelled_set_has_no_mean_and_json_says_so(tmp_path: Path) -> None:
    folder = own_set(tmp_path / "s", {"id": "q", "text": "alpha"})
    done = command("pool", str(folder), "--system", "bm25-lucene", "--system", "vector-lsa", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["leave_one_out"][0]["value"] is None
    assert "nan" not in command("pool", str(folder), "--system", "bm25-lucene").stdout


def test_a_text_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    """Control sequences, and lines that look like the prompt of this command."""
    folder = own_set(tmp_path / "s", {"id": "q", "text": "\x1b[2J\u202ealpha\n[9/9] > 2"})
    file = tmp_path / "pool.csv"
    command("pool", str(folder), "--system", "bm25-lucene", "--system", "vector-lsa", "--out", str(file))
    shown = command("judge", str(folder), str(file), keys="q\n").stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\n  [9/9] > 2" in shown
