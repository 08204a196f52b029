"""Labels by id, snippet and file; bad rows that are counted; what a stream holds in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made import MEMORIES, refused
from made import native_set as made

from recallbench.datasets.model import Question
from recallbench.datasets.readers import native
from recallbench.datasets.skips import SHOWN, Skips
from recallbench.datasets.stream import check, gather
from recallstack.ranking.rows import Memory


def of_question(folder: Path, **fields: Any) -> Path:
    return made(folder, questions=[{"id": "q", "text": "x", **fields}])


def test_labels_by_snippet_and_file(tmp_path: Path) -> None:
    """White space counts as one blank; a file is all its rows, `/` or `\\`; the highest grade of several counts."""
    folder = of_question(
        tmp_path,
        relevant=["b", {"snippet": "Ship the release window is"}, {"file": "log/may.md", "grade": 1}, {"id": "c"}],
        not_relevant=[{"snippet": "release notes"}],
        forbidden=[{"file": "log\\may.md"}],
    )
    (question,) = native.read(folder).questions
    # b and c are of grade 2 by id and of grade 1 by file; the title is part of the text that holds a snippet.
    assert question.relevant == {"b": 2, "a 1": 2, "c": 2}
    assert question.not_relevant == ("c",)
    assert question.forbidden == ("b", "c")


def test_a_snippet_is_looked_for_in_its_own_corpus(tmp_path: Path) -> None:
    folder = made(tmp_path, questions=[{"id": "q", "corpus": "other", "text": "x", "relevant": [{"snippet": "b"}]}])
    assert native.read(folder).questions[0].relevant == {"b": 2}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"relevant": {"m-9": 2}}, "relevant: no memory of corpus 'main' has the id 'm-9'"),
        ({"forbidden": ["m-9"]}, "forbidden: no memory of corpus 'main' has the id 'm-9'"),
        (
            {"relevant": {"m-9": 2, "b": 1}, "not_relevant": ["m-8", "m-9"]},
            "relevant: labels of this set name 2 ids that are in no corpus of theirs: 'm-9', 'm-8'",
        ),
        (
            {"relevant": [{"snippet": "cat"}]},
            "relevant: no memory holds the snippet 'cat'; quote its words exactly",
        ),
        (
            {"relevant": [{"snippet": "the release"}]},
            "relevant: 2 memories ('a 1', 'c') hold the snippet 'the release';"
            " quote more of the one that is meant, or give its id",
        ),
        (
            {"relevant": [{"snippet": "  "}]},
            "relevant: no memory holds the snippet ''; quote its words exactly",
        ),
        ({"relevant": [{"file": "june.md"}]}, "relevant: no memory of corpus 'main' was read from file 'june.md'"),
        ({"relevant": [{"id": "b", "file": "x"}]}, "relevant: a label needs exactly one of id, snippet and file"),
        ({"relevant": [{"grade": 1}]}, "relevant: a label needs exactly one of id, snippet and file"),
        ({"forbidden": [{"id": "b", "grade": 1}]}, "forbidden: a grade stands in relevant only"),
        ({"corpus": "othr"}, "no memory is in corpus 'othr'; did you mean 'other'?"),
    ],
)
def test_labels_that_name_no_memory(tmp_path: Path, fields: dict[str, Any], says: str) -> None:
    folder = of_question(tmp_path, **fields)
    assert refused(native.read, folder) == f"{folder / 'questions.jsonl'}:1: question 'q': {says}"


def test_a_message_quotes_only_the_start_of_a_snippet(tmp_path: Path) -> None:
    message = refused(native.read, of_question(tmp_path, relevant=[{"snippet": "s" * 41}]))
    assert f"'{'s' * 40}…'" in message


# Streams.


def test_bad_labels_and_questions_are_counted_one_by_one(tmp_path: Path) -> None:
    rows = [
        {"id": "q1", "text": "x", "relevant": {"b": 2, "m-9": 1}, "forbidden": [{"snippet": "cat"}]},
        {"id": "q1", "text": "again"},
        {"id": "q3", "text": "x", "corpus": "none"},
        {"id": "q4", "text": "x", "forbidden": [{"id": "b", "grade": 1}]},
        {"id": "q5", "text": 7},
    ]
    skips = Skips(allowed=True)
    path = made(tmp_path, questions=rows) / "questions.jsonl"
    checked = check(native.stream(tmp_path), skips)
    assert checked.questions == (Question(id="q1", text="x", relevant={"b": 2}),)
    # A bad row is told while it is read, a question when labels are resolved, labels at the end.
    assert [reason.removeprefix(f"{path}:")[:20] for reason in skips.reasons] == [
        "5: Expected `str`, g",
        "2: question 'q1' is ",
        "3: question 'q3': no",
        "4: question 'q4': fo",
        "1: question 'q1': re",
        "1: question 'q1': fo",
    ]


def test_no_question_left_is_refused_even_where_bad_rows_are_skipped(tmp_path: Path) -> None:
    folder = of_question(tmp_path, corpus="none")
    assert refused(check, native.stream(folder), Skips(allowed=True)) == (
        f"{folder / 'questions.jsonl'}: no question is left"
    )


def test_of_many_reasons_the_first_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    folder = made(tmp_path, memories=[*MEMORIES, *["{"] * (SHOWN + 7)])
    skips = Skips(allowed=True)
    labelled = gather(native.stream(folder), skips)
    assert skips.count == SHOWN + 7
    assert len(skips.reasons) == SHOWN
    assert labelled.notes[-1] == "and 7 more were skipped"
    assert len(labelled.notes) == SHOWN + 1


def test_a_file_that_changes_between_the_passes_is_noticed(tmp_path: Path) -> None:
    folder = made(tmp_path)
    checked = check(native.stream(folder), Skips())
    with (folder / "memories.jsonl").open("a") as file:
        file.write('{"id": "late"}\n')
    assert "has changed while it was read" in refused(list, checked.memories())


def test_rows_that_share_a_hash_are_compared_by_their_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one hash for all, every row is suspected and only the repeated id is refused."""
    from recallbench.datasets import stream

    monkeypatch.setattr(stream, "_key", lambda memory: 7)
    assert sum(len(one) for one in native.read(made(tmp_path)).corpora.values()) == 4
    folder = made(tmp_path, memories=[*MEMORIES, {"id": "c"}])
    assert "'c' is already at" in refused(native.read, folder)


def test_memory_is_bounded_by_the_labels(tmp_path: Path) -> None:
    """A stream of rows that are made as they are asked for: none is still alive when the next but one is made."""
    import weakref
    from dataclasses import replace

    class Row(Memory, frozen=True, weakref=True):
        pass

    alive: list[weakref.ref[Row]] = []
    most = 0

    def rows(_: Skips) -> Iterator[tuple[str, Memory]]:
        nonlocal most
        for number in range(1000):
            row = Row(id=f"m-{number}", content="the same words")
            alive.append(weakref.ref(row))
            yield f"made:{number}", row
            most = max(most, sum(one() is not None for one in alive[-20:]))

    stream = native.stream(of_question(tmp_path, relevant=["m-3", {"snippet": "the same words"}]))
    skips = Skips(allowed=True)
    checked = check(replace(stream, memories=rows), skips)
    assert "1000 memories ('m-0', 'm-1', 'm-2', 'm-3', 'm-4' and 995 more) hold" in skips.reasons[0]
    assert sum(1 for _ in checked.memories()) == 1000
    assert most <= 3
