"""LoCoMo: the real file where it is given, and small made ones, sound and broken."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from made import files, refused, windows
from paths import data_folder

from recallbench.datasets.readers import locomo
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import gather
from recallstack.ranking.rows import Memory

CONVERSATION: dict[str, Any] = {
    "speaker_a": "Ana",
    "speaker_b": "Ben",
    "session_10_date_time": "12:05 am on 1 January, 2024",
    "session_10": [{"speaker": "Ben", "dia_id": "D10:1", "text": "Happy new year"}],
    "session_2_date_time": "1:56 pm on 8 May, 2023",
    "session_2": [
        {"speaker": "Ana", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a photo of a pear tree"},
        {"speaker": "Ben", "dia_id": "D2:2", "text": "Nice", "blip_caption": None, "query": "pear"},
    ],
    "session_11_date_time": "12:00 pm on 2 January, 2024",
}


def sample(name: str = "conv-1", qa: Any = None, **more: Any) -> dict[str, Any]:
    asked = [{"question": "what tree?", "answer": "pear", "evidence": ["D2:1"], "category": 4}] if qa is None else qa
    return {"sample_id": name, "qa": asked, "conversation": {**CONVERSATION, **more}, "event_summary": {}}


def made(folder: Path, *samples: Any) -> Path:
    return files(folder, {"locomo10.json": json.dumps(list(samples or [sample()]), indent=1)}) / "locomo10.json"


def test_the_real_file() -> None:
    """5,882 turns, 1,986 questions, 1,982 with evidence that can be read; counted by the data's own notes."""
    labelled = locomo.read(data_folder())
    assert len(labelled.corpora) == 10
    assert sum(map(len, labelled.corpora.values())) == 5882
    assert len({memory.id for corpus in labelled.corpora.values() for memory in corpus.memories}) == 1033
    assert len(labelled.questions) == 1986
    assert sum(bool(one.relevant) for one in labelled.questions) == 1982
    assert {one.cluster for one in labelled.questions} == set(labelled.corpora)
    assert all(memory.updated_at for corpus in labelled.corpora.values() for memory in corpus.memories)


def test_the_malformed_evidence_of_the_real_file() -> None:
    """Every string of the file that is no id of a turn, found apart from the reader, and what became of it."""
    raw = json.loads((data_folder() / "locomo10.json").read_text(encoding="utf-8"))
    turns = {
        one["sample_id"]: {
            turn["dia_id"] for key, part in one["conversation"].items() if isinstance(part, list) for turn in part
        }
        for one in raw
    }
    dirty = {
        (f"{one['sample_id']}-q{number}", text)
        for one in raw
        for number, asked in enumerate(one["qa"], 1)
        for text in asked["evidence"]
        if text not in turns[one["sample_id"]]
    }
    labelled = locomo.read(data_folder())
    assert {text for _, text in dirty} == {
        "D8:6; D9:17", "D10:19", "D", "D:11:26", "D4:36", "D9:1 D4:4 D4:6", "D22:1 D22:2 D9:10 D9:11",
        "D21:18 D21:22 D11:15 D11:19", "D30:05",
    }  # fmt: skip
    assert {(note.split(": ")[0], note.split("'")[1]) for note in labelled.notes if "'" in note} == dirty
    relevant = {one.id: set(one.relevant) for one in labelled.questions}
    mended = {text: relevant[name] for name, text in dirty}
    for text in mended:
        # What a reader of the text takes from it; D, D10:19 and D4:36 name no turn of their conversations.
        plain = text.replace("D:", "D").replace(":05", ":5").replace(";", "").split()
        assert mended[text].issuperset(plain) == (text not in ("D", "D10:19", "D4:36"))
    none = [note for note in labelled.notes if "the question has no label" in note]
    assert len(none) == 4
    assert len(labelled.notes) == 13


def test_a_made_conversation(tmp_path: Path) -> None:
    labelled = locomo.read(made(tmp_path))
    may, january = dt.datetime(2023, 5, 8, 13, 56, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, 0, 5, tzinfo=dt.UTC)

    def turn(name: str, content: str, moment: dt.datetime) -> Memory:
        return Memory(id=name, corpus="conv-1", content=content, created_at=moment, updated_at=moment)

    # Sessions by number, whatever their order in the file; one that has a time and no turns is none.
    assert labelled.corpora["conv-1"].memories == (
        turn("D2:1", "Ana: Look! [a photo of a pear tree]", may),
        turn("D2:2", "Ben: Nice", may),
        turn("D10:1", "Ben: Happy new year", january),
    )
    (question,) = labelled.questions
    assert (question.id, question.corpus, question.cluster) == ("conv-1-q1", "conv-1", "conv-1")
    assert (question.relevant, question.categories) == ({"D2:1": 1}, ("single-hop",))


@pytest.mark.parametrize(
    ("evidence", "relevant", "notes"),
    [
        (["D2:1", "D10:1", "D2:1"], {"D2:1": 1, "D10:1": 1}, []),
        (
            ["D2:1 D10:1;D2:02"],
            {"D2:1": 1, "D10:1": 1, "D2:2": 1},
            ["evidence 'D2:1 D10:1;D2:02' read as D2:1, D10:1, D2:2"],
        ),
        (["D:2:1"], {"D2:1": 1}, ["evidence 'D:2:1' read as D2:1"]),
        (["D2:01"], {"D2:1": 1}, ["evidence 'D2:01' read as D2:1"]),
        (["D2:1", "D"], {"D2:1": 1}, ["evidence 'D' dropped: it names no turn"]),
        (["D2:1\n"], {"D2:1": 1}, ["evidence 'D2:1\\n' read as D2:1"]),
        (["D2:1", "D2:9"], {"D2:1": 1}, ["evidence 'D2:9' dropped: no such turn"]),
        (
            ["D2:9"],
            {},
            ["evidence 'D2:9' dropped: no such turn", "no evidence that can be read; the question has no label"],
        ),
        ([], {}, ["no evidence that can be read; the question has no label"]),
    ],
)
def test_dirty_evidence_is_mended_or_dropped_and_listed(
    tmp_path: Path, evidence: list[str], relevant: dict[str, int], notes: list[str]
) -> None:
    labelled = locomo.read(made(tmp_path, sample(qa=[{"question": "x", "category": 9, "evidence": evidence}])))
    assert labelled.questions[0].relevant == relevant
    assert labelled.questions[0].categories == ("category-9",)
    assert list(labelled.notes) == [f"conv-1-q1: {note}" for note in notes]


def test_windows_and_gzip_read_the_same(tmp_path: Path) -> None:
    plain = made(tmp_path / "plain", sample(), sample("conv-2"))
    packed = files(tmp_path / "packed", {"locomo10.json.gz": windows(plain.read_bytes())})
    one, two = locomo.read(plain), locomo.read(packed)
    assert (one.memories_hash, one.labels_hash, one.questions) == (two.memories_hash, two.labels_hash, two.questions)


@pytest.mark.parametrize(
    ("bad", "mark", "above", "says"),
    [
        (sample(session_2=[{"speaker": "Ana", "dia_id": "BAD"}]), "BAD", 2, "Object missing required field `text`"),
        (sample(qa=[{"question": "BAD"}]), "BAD", 1, "Object missing required field `category`"),
        (
            sample("conv-2", session_2="BAD"),
            "conv-2",
            1,
            "conversation 'conv-2', session_2: Expected `array`, got `str`",
        ),
        (
            sample("conv-2", session_2_date_time="BAD"),
            "conv-2",
            1,
            "conversation 'conv-2', session_2_date_time is 'BAD'; expected a time such as '1:56 pm on 8 May, 2023'",
        ),
        (
            sample("conv-2", session_2_date_time="1:56 pm on 31 June, 2023"),
            "conv-2",
            1,
            "conversation 'conv-2', session_2_date_time is '1:56 pm on 31 June, 2023': day is out of range for month",
        ),
    ],
)
def test_a_bad_part_is_named_with_its_line_and_can_be_skipped(
    tmp_path: Path, bad: dict[str, Any], mark: str, above: int, says: str
) -> None:
    """The line is that of the brace that opens the bad part, `above` the line of the mark."""
    path = made(tmp_path, sample("conv-0"), bad)
    lines = path.read_text(encoding="utf-8").splitlines()
    line = next(n for n, text in enumerate(lines, 1) if mark in text) - above
    assert lines[line - 1].strip() == "{"
    message = refused(locomo.read, path)
    assert message == f"{path}:{line}: {says}"
    skips = Skips(allowed=True)
    labelled = gather(locomo.stream(path), skips)
    assert skips.reasons == [message]
    assert len(labelled.corpora["conv-0"]) == 3


def test_a_repeated_conversation_or_turn(tmp_path: Path) -> None:
    path = made(tmp_path, sample(), sample())
    assert f"conversation 'conv-1' is already at {path}:2; ids must be unique" in refused(locomo.read, path)
    turn = {"speaker": "Ana", "dia_id": "D2:1", "text": "x"}
    path = made(tmp_path, sample(session_2=[turn, {**turn, "text": "y"}]))
    assert "memory id 'D2:1' is already at" in refused(locomo.read, path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ":1: broken JSON: expected an array ([), found the end of the text"),
        ("[]", ": holds no question"),
        ("{}", ":1: broken JSON: expected an array ([), found '{'"),
        (json.dumps([sample(qa=[])]), ": holds no question"),
        ("[\n{", ":2: broken JSON: the text ends before this element does"),
    ],
)
def test_files_of_another_shape(tmp_path: Path, text: str, says: str) -> None:
    path = files(tmp_path, {"locomo10.json": text}) / "locomo10.json"
    assert refused(locomo.read, path) == f"{path}{says}"


def test_broken_json_in_line_17(tmp_path: Path) -> None:
    path = made(tmp_path)
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[16] = lines[16].replace('": ', '" ')
    path.write_text("\n".join(lines), encoding="utf-8")
    assert refused(locomo.read, path).startswith(f"{path}:17: broken JSON: ")


def test_a_folder_without_the_file_says_how_to_get_it(tmp_path: Path) -> None:
    assert "`recallbench datasets fetch locomo` downloads it" in refused(locomo.read, tmp_path)
