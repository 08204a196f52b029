"""LongMemEval: made files of its form, by session and by turn, sound and broken."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from made import files, refused, windows

from recallbench.datasets.readers import longmemeval
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import gather


def turn(role: str, content: str, has_answer: bool | None = None) -> dict[str, Any]:
    return {"role": role, "content": content} | ({} if has_answer is None else {"has_answer": has_answer})


def item(name: str = "q1", **more: Any) -> dict[str, Any]:
    """A haystack of three sessions; the answer is in the second turn of the second."""
    return {
        "question_id": name,
        "question_type": "single-session-user",
        "question": "What car?",
        "answer": "a blue one",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["s1", "answer_2", "s3"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 00:00", "2023/05/22 (Mon) 12:59"],
        "haystack_sessions": [
            [turn("user", "hello"), turn("assistant", "hi")],
            [turn("user", "new car", False), turn("user", "it is blue", True), turn("assistant", "nice", False)],
            [],
        ],
        "answer_session_ids": ["answer_2"],
        **more,
    }


def made(folder: Path, *items: Any) -> Path:
    return files(folder, {"longmemeval_s.json": json.dumps(list(items or [item()]), indent=1)}) / "longmemeval_s.json"


def test_one_memory_a_session(tmp_path: Path) -> None:
    labelled = longmemeval.read(made(tmp_path, item(), item("q2_abs"), item("q3", question_type="")))
    assert labelled.info.name == "longmemeval_s"
    assert list(labelled.corpora) == ["q1", "q2_abs", "q3"]
    found = [(one.id, one.content, one.updated_at) for one in labelled.corpora["q1"].memories]
    assert found == [
        ("s1", "user: hello\nassistant: hi", dt.datetime(2023, 5, 20, 2, 21, tzinfo=dt.UTC)),
        ("answer_2", "user: new car\nuser: it is blue\nassistant: nice", dt.datetime(2023, 5, 21, tzinfo=dt.UTC)),
        ("s3", "", dt.datetime(2023, 5, 22, 12, 59, tzinfo=dt.UTC)),
    ]
    first, abstains, third = labelled.questions
    assert (first.relevant, first.corpus, first.expects_empty) == ({"answer_2": 1}, "q1", False)
    assert first.now == dt.datetime(2023, 5, 30, 23, 40, tzinfo=dt.UTC)
    assert first.categories == ("single-session-user",)
    assert (abstains.relevant, abstains.expects_empty) == ({}, True)
    assert (third.relevant, third.categories) == ({"answer_2": 1}, ())
    assert labelled.notes == ()


def test_one_memory_a_turn(tmp_path: Path) -> None:
    """Turn ids are SESSION_NUMBER from 1 over all turns, as in the authors' retrieval script."""
    labelled = longmemeval.read_turns(made(tmp_path, item(), item("q2_abs")))
    assert labelled.info.name == "longmemeval_s-turns"
    found = [(one.id, one.content) for one in labelled.corpora["q1"].memories]
    assert found == [
        ("s1_1", "user: hello"),
        ("s1_2", "assistant: hi"),
        ("answer_2_1", "user: new car"),
        ("answer_2_2", "user: it is blue"),
        ("answer_2_3", "assistant: nice"),
    ]
    assert [dict(one.relevant) for one in labelled.questions] == [{"answer_2_2": 1}, {}]
    assert [one.expects_empty for one in labelled.questions] == [False, True]


def test_windows_and_gzip_read_the_same(tmp_path: Path) -> None:
    plain = made(tmp_path / "plain", item(), item("q2"))
    packed = files(tmp_path / "packed", {"longmemeval_s.json.gz": windows(plain.read_bytes())})
    one, two = longmemeval.read(plain), longmemeval.read(packed)
    assert (one.memories_hash, one.questions) == (two.memories_hash, two.questions)


def test_a_repeated_session_is_renamed_and_told(tmp_path: Path) -> None:
    path = made(tmp_path, item(haystack_session_ids=["answer_2", "answer_2", "answer_2"]))
    labelled = longmemeval.read(path)
    assert [one.id for one in labelled.corpora["q1"].memories] == ["answer_2", "answer_2~2", "answer_2~3"]
    assert labelled.questions[0].relevant == {"answer_2": 1, "answer_2~2": 1, "answer_2~3": 1}
    assert labelled.notes == (
        "q1: session 'answer_2' occurs again: named 'answer_2~2'",
        "q1: session 'answer_2' occurs again: named 'answer_2~3'",
    )
    turns = longmemeval.read_turns(path)
    assert turns.questions[0].relevant == {"answer_2~2_2": 1}


def test_evidence_that_is_not_there_is_told(tmp_path: Path) -> None:
    lost = item(answer_session_ids=["s9", "answer_2"])
    none = item("q2", answer_session_ids=[])
    assert longmemeval.read(made(tmp_path, lost, none)).notes == (
        "q1: evidence 's9' dropped: no such session",
        "q2: no session is marked as evidence; the question has no label",
    )
    plain = item("q3", haystack_sessions=[[turn("user", "x")], [], []])
    assert longmemeval.read_turns(made(tmp_path, plain)).notes == (
        "q3: no turn is marked as evidence; the question has no label",
    )


def test_without_dates_there_is_no_time(tmp_path: Path) -> None:
    labelled = longmemeval.read(made(tmp_path, item(haystack_dates=[], question_date=None)))
    assert labelled.questions[0].now is None
    assert [one.updated_at for one in labelled.corpora["q1"].memories] == [None, None, None]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (item("q2", question=5), "Expected `str`, got `int` - at `$.question`"),
        (item(""), "Expected `str` of length >= 1 - at `$.question_id`"),
        (item("q2", haystack_sessions=[[{"role": "user"}], [], []]), "Object missing required field `content`"),
        (item("q2", haystack_session_ids=["a", "", "c"]), "Expected `str` of length >= 1"),
        (
            item("q2", haystack_session_ids=["a", "b"]),
            "question 'q2': 3 sessions, 2 session ids and 3 dates; they must be as many",
        ),
        (
            item("q2", haystack_dates=["2023/05/20 (Sat) 02:21"]),
            "question 'q2': 3 sessions, 3 session ids and 1 dates; they must be as many",
        ),
        (
            item("q2", question_date="30 May"),
            "question 'q2': date '30 May'; expected one such as '2023/05/20 (Sat) 02:21'",
        ),
        (
            item("q2", haystack_dates=["2023/05/20", "2023/02/30 (Sun) 00:00", "2023/05/20"]),
            "question 'q2': date '2023/02/30 (Sun) 00:00': day is out of range for month",
        ),
        (item("q1"), "question 'q1' is already at "),
    ],
)
def test_a_bad_item_is_named_with_its_line_and_can_be_skipped(tmp_path: Path, bad: dict[str, Any], says: str) -> None:
    path = made(tmp_path, item(), bad, item("q9"))
    # An item begins at the brace above its id.
    lines = path.read_text(encoding="utf-8").splitlines()
    line = [number for number, text in enumerate(lines, 1) if '"question_id"' in text][1] - 1
    message = refused(longmemeval.read, path)
    assert message.startswith(f"{path}:{line}: {says}")
    skips = Skips(allowed=True)
    labelled = gather(longmemeval.stream(path), skips)
    assert skips.reasons == [message]
    assert [one.id for one in labelled.questions] == list(labelled.corpora) == ["q1", "q9"]
    assert labelled.questions == longmemeval.read(made(tmp_path, item(), item("q9"))).questions


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ":1: broken JSON: expected an array ([), found the end of the text"),
        ("[]", ": holds no question"),
        ('{"q1": {}}', ":1: broken JSON: expected an array ([), found '{'"),
        (json.dumps([item()])[:-3], ":1: broken JSON: the text ends before this element does"),
    ],
)
def test_files_of_another_shape(tmp_path: Path, text: str, says: str) -> None:
    path = files(tmp_path, {"longmemeval_s.json": text}) / "longmemeval_s.json"
    assert refused(longmemeval.read, path) == f"{path}{says}"


def test_broken_json_in_line_17(tmp_path: Path) -> None:
    path = made(tmp_path)
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[16] = "nope"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert refused(longmemeval.read, path).startswith(f"{path}:17: broken JSON: ")


def test_folders(tmp_path: Path) -> None:
    assert "holds 0 files longmemeval*.json; name the one to read" in refused(longmemeval.read, tmp_path)
    made(tmp_path)
    assert len(longmemeval.read(tmp_path).questions) == 1
    files(tmp_path, {"longmemeval_m.json": "[]"})
    assert "holds 2 files longmemeval*.json; name the one to read" in refused(longmemeval.read_turns, tmp_path)
