"""The native form: what is read, and what is refused with file, line and reason."""

from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path
from typing import Any

import pytest
from made import BOM, MEMORIES, QUESTIONS, files, jsonl, refused, windows
from made import native_set as made

from recallbench.datasets.model import LabelledSet, Question
from recallbench.datasets.readers import native
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import check, gather
from recallstack.ranking.rows import Memory, Source


def of_question(folder: Path, **fields: Any) -> Path:
    return made(folder, questions=[{"id": "q", "text": "x", **fields}])


def test_every_field_comes_through(tmp_path: Path) -> None:
    labelled = native.read(made(tmp_path))
    assert labelled.info.name == "small"
    assert {name: len(corpus) for name, corpus in labelled.corpora.items()} == {"main": 3, "other": 1}
    first, second = labelled.corpora["main"].memories[:2]
    moment = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    assert first == Memory(id="a 1", title="Ship", content="the release  window\nis Friday", updated_at=moment)
    assert second == Memory(id="b", content="窗口改到周五", importance=5, source=Source("log\\may.md", 3))
    assert labelled.questions == (
        Question(id="q1", text="when?", relevant={"a 1": 2, "b": 1}, forbidden=("c",), categories=("exact",)),
        Question(id="q2", text="几点", corpus="other", not_relevant=("b",), expects_empty=True, split="dev"),
    )
    assert labelled.notes == ()


def test_files_of_windows_and_gzip_read_the_same(tmp_path: Path) -> None:
    plain = native.read(made(tmp_path / "plain"))
    names = ("memories.jsonl", "questions.jsonl")
    raw = {name: (tmp_path / "plain" / name).read_bytes() for name in names}
    saved = files(tmp_path / "windows", {name: windows(data) for name, data in raw.items()})
    files(saved, {"dataset.toml": BOM + b'name = "small"\r\n'})
    packed = files(tmp_path / "gzip", {f"{name}.gz": windows(data) for name, data in raw.items()})
    files(packed, {"dataset.toml": 'name = "small"'})
    for folder in (saved, packed):
        other = native.read(folder)
        assert [one.memories for one in other.corpora.values()] == [one.memories for one in plain.corpora.values()]
        assert other.questions == plain.questions


def test_the_number_of_a_line_counts_blank_lines(tmp_path: Path) -> None:
    folder = made(tmp_path, **{"memories.jsonl": BOM + b'\r\n\r\n{"id": "a"}\r\n\r\n{"id": 5}\r\n'})
    assert refused(native.read, folder).startswith(f"{folder / 'memories.jsonl'}:5: Expected `str`, got `int`")


# Broken files.


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ('{"id": "m-17", ', "broken JSON: "),
        ('{"id": "m-17"} {}', "broken JSON: extra data, column 16"),
        ('{"id": "\\ud800"}', "broken JSON: a string holds half of a surrogate pair (\\ud800 to \\udfff)"),
        ('{"content": "x"}', "Object missing required field `id`"),
        ('{"id": ""}', "Expected `str` of length >= 1 - at `$.id`"),
        ('{"id": "x", "contnt": "x"}', "Object contains unknown field `contnt`; did you mean 'content'?"),
        ('{"id": "x", "importance": 6}', "Expected `float` <= 5.0 - at `$.importance`"),
        ('{"id": "x", "type": "note"}', "Invalid enum value 'note' - at `$.type`"),
        ('{"id": "x", "updated_at": "yesterday"}', "Invalid RFC3339 encoded datetime - at `$.updated_at`"),
    ],
)
def test_a_broken_memory_in_line_17(tmp_path: Path, row: str, says: str) -> None:
    rows: list[Any] = [{"id": f"m-{number}"} for number in range(1, 17)]
    folder = made(tmp_path, memories=[*rows, row, {"id": "m-18"}], questions=[{"id": "q", "text": "x"}])
    start = f"{folder / 'memories.jsonl'}:17: {says}"
    assert refused(native.read, folder).startswith(start)
    skips = Skips(allowed=True)
    labelled = gather(native.stream(folder), skips)
    assert [memory.id for memory in labelled.corpora["main"].memories] == [*(f"m-{n}" for n in range(1, 17)), "m-18"]
    assert skips.count == 1
    assert skips.reasons[0].startswith(start)
    assert labelled.notes == tuple(skips.reasons)


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    folder = made(tmp_path, **{"memories.jsonl": b'{"id": "a 1"}\n{"id": "\xff"}\n'})
    says = f"{folder / 'memories.jsonl'}:2: byte 9 is not UTF-8; save the file as UTF-8"
    assert refused(native.read, folder) == says
    skips = Skips(allowed=True)
    check(native.stream(of_question(tmp_path, relevant={"a 1": 2})), skips)
    files(folder, {"memories.jsonl": b'{"id": "a 1"}\n{"id": "\xff"}\n'})
    check(native.stream(folder), skips)
    assert skips.reasons == [says]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (gzip.compress(b'{"id": "a 1"}\n' * 9, mtime=0)[:-9], ": the gzip file is broken after line "),
        (b'{"id": "a 1"}\n', ": the gzip file is broken after line 0: Not a gzipped file"),
    ],
)
def test_a_broken_gzip_file(tmp_path: Path, data: bytes, says: str) -> None:
    folder = made(tmp_path)
    (folder / "memories.jsonl").unlink()
    (folder / "memories.jsonl.gz").write_bytes(data)
    assert refused(native.read, folder).startswith(f"{folder / 'memories.jsonl.gz'}{says}")


def test_repeated_ids(tmp_path: Path) -> None:
    """The same id in two corpora is none; in one corpus the second line is named, and the first."""
    folder = made(tmp_path, memories=[*MEMORIES, {"id": "b", "corpus": "other"}])
    path = folder / "memories.jsonl"
    says = f"{path}:5: memory id 'b' is already at {path}:3; ids must be unique in a corpus"
    assert refused(native.read, folder) == says
    skips = Skips(allowed=True)
    assert gather(native.stream(folder), skips).corpora["other"].memories == (
        Memory(id="b", corpus="other", content="another b"),
    )
    assert skips.reasons == [says]
    folder = made(tmp_path, questions=[*QUESTIONS, {"id": "q1", "text": "again"}])
    path = folder / "questions.jsonl"
    assert refused(native.read, folder) == (
        f"{path}:3: question 'q1' is already at {path}:1; question ids must be unique"
    )


@pytest.mark.parametrize(
    ("contents", "says"),
    [
        ({"memories.jsonl": ""}, "memories.jsonl: holds no memory"),
        ({"memories.jsonl": BOM + b"\r\n\r\n"}, "memories.jsonl: holds no memory"),
        ({"questions.jsonl": ""}, "questions.jsonl: holds no question"),
        ({"dataset.toml": ""}, "dataset.toml: Object missing required field `name`"),
        ({"dataset.toml": 'name = " "'}, "dataset.toml: name is empty"),
        (
            {"dataset.toml": 'name = "x"\nlicense = "MIT"'},
            "dataset.toml: unknown key 'license'; did you mean 'licence'?",
        ),
        ({"dataset.toml": 'name = "x"\ndepth = 0'}, "dataset.toml: depth must be at least 1 and default_rel 1 to 10"),
        ({"dataset.toml": b'name = "x"\n# \xff'}, "dataset.toml:2: not UTF-8; save the file as UTF-8"),
        ({"notes/a.md": "text"}, ": has both memories.jsonl and notes/; keep one of them"),
    ],
)
def test_files_that_say_too_little_or_too_much(tmp_path: Path, contents: dict[str, str | bytes], says: str) -> None:
    folder = made(tmp_path, **contents)
    assert refused(native.read, folder) == f"{folder}{says if says.startswith(':') else '/' + says}"


def test_broken_toml_names_its_line(tmp_path: Path) -> None:
    folder = made(tmp_path, **{"dataset.toml": 'name = "x"\nversion = \n'})
    message = refused(native.read, folder)
    assert message.startswith(f"{folder / 'dataset.toml'}: broken TOML: ")
    assert "line 2" in message


@pytest.mark.parametrize("name", ["dataset.toml", "memories.jsonl", "questions.jsonl"])
def test_missing_files(tmp_path: Path, name: str) -> None:
    (made(tmp_path) / name).unlink()
    message = refused(native.read, tmp_path)
    assert name in message
    assert str(tmp_path) in message
    assert str(tmp_path / "none") in refused(native.read, tmp_path / "none")


# Notes.


def notes(folder: Path, question: Any) -> LabelledSet:
    contents = {
        "dataset.toml": 'name = "vault"',
        "questions.jsonl": jsonl([question]),
        "notes/public.md": "# Deploys\r\n\r\n- Friday at 15:00\r\n- never in December\r\n",
        "notes/deep/diary.md": BOM + "今天\n一切正常\n".encode(),
        "notes/node_modules/x/readme.md": "Friday at 15:00",
        "notes/empty.md": "\n \n",
    }
    return native.read(files(folder, contents))


def test_notes_are_cut_and_labels_name_their_files(tmp_path: Path) -> None:
    labelled = notes(
        tmp_path,
        {"id": "q", "text": "x", "relevant": [{"snippet": "Friday at 15:00"}, {"file": "deep/diary.md", "grade": 1}]},
    )
    memories = labelled.corpora["main"].memories
    found = [(one.id, one.content, one.sensitivity, one.source) for one in memories]
    assert found == [
        ("deep/diary.md#1", "今天\n一切正常", "personal", Source("deep/diary.md", 1)),
        ("public.md#1", "# Deploys", "public", Source("public.md", 1)),
        ("public.md#3", "- Friday at 15:00", "public", Source("public.md", 3)),
        ("public.md#4", "- never in December", "public", Source("public.md", 4)),
    ]
    assert labelled.questions[0].relevant == {"public.md#3": 2, "deep/diary.md#1": 1}


def test_a_note_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    notes(tmp_path, {"id": "q", "text": "x"})
    (tmp_path / "notes" / "latin.md").write_bytes(b"ok\ncaf\xe9\n")
    says = f"{tmp_path / 'notes' / 'latin.md'}:2: not UTF-8; save the file as UTF-8"
    assert refused(native.read, tmp_path) == says
    skips = Skips(allowed=True)
    assert len(gather(native.stream(tmp_path), skips).corpora["main"]) == 4
    assert skips.reasons == [says]
