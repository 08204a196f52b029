"""Small files of the formats that the readers read, made for one test each."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from recallbench.datasets.model import LabelledSet
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import Stream
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory

BOM = b"\xef\xbb\xbf"


def jsonl(rows: Iterable[Any]) -> str:
    """One line a row; a row that is text already stands as it is."""
    return "".join(f"{row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def files(folder: Path, contents: Mapping[str, str | bytes]) -> Path:
    """Write files below `folder` as UTF-8; names that end in .gz are packed."""
    for name, content in contents.items():
        data = content.encode() if isinstance(content, str) else content
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def windows(data: bytes) -> bytes:
    """The same text as an editor of Windows saves it: a byte-order mark, CRLF, blank lines at the end."""
    return BOM + data.replace(b"\n", b"\r\n") + b"\r\n  \r\n\r\n"


def refused(call: Callable[..., object], *arguments: object) -> str:
    """The message of the InputError that `call` raises: one line."""
    with pytest.raises(InputError) as caught:
        call(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


# One small sound source of each format.

BEIR = {
    "corpus.jsonl": jsonl([{"_id": "d1", "title": "Tea", "text": "红茶"}, {"_id": "d 2", "text": "green"}]),
    "queries.jsonl": jsonl([{"_id": "q1", "text": "tea?"}, {"_id": "q2", "text": "nobody judged this"}]),
    "qrels/test.tsv": "q1\td1\t2\nq1\td 2\t0\n",
}
TREC = {
    "docs.jsonl": jsonl([{"id": "d1", "text": "tea"}]),
    "topics.tsv": "1\ttea?\n",
    "qrels.txt": "1 0 d1 1\n",
}
CSV = {"questions.csv": "question,relevant\nx,is\n", "notes/public.md": "# Tea\n\nit is green\n"}
SQUAD = {
    "version": "1",
    "data": [{"paragraphs": [{"context": "tea", "qas": [{"id": "q1", "question": "x"}]}]}],
}
LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question": "x",
        "haystack_session_ids": ["s1"],
        "haystack_sessions": [[{"role": "user", "content": "tea", "has_answer": True}]],
        "answer_session_ids": ["s1"],
    }
]


def same(one: LabelledSet, other: LabelledSet) -> None:
    """Asserts that two sets hold the same memories, questions and labels, in the same order."""
    assert one.questions == other.questions
    assert {name: corpus.memories for name, corpus in one.corpora.items()} == {
        name: corpus.memories for name, corpus in other.corpora.items()
    }
    assert list(one.corpora) == list(other.corpora)
    hashes = ("memories_hash", "labels_hash", "questions_hash")
    assert [getattr(one, name) for name in hashes] == [getattr(other, name) for name in hashes]


def stream_of_set(labelled: LabelledSet) -> Stream:
    """A loaded set as a stream."""

    def memories(_: Skips) -> Iterator[tuple[str, Memory]]:
        return (("here", memory) for corpus in labelled.corpora.values() for memory in corpus.memories)

    return Stream(labelled.info, memories, lambda _: (("here", one) for one in labelled.questions), "m", "q")


# The native form.

MEMORIES: list[Any] = [
    {"id": "a 1", "title": "Ship", "content": "the release  window\nis Friday", "updated_at": "2026-01-02T03:04:05Z"},
    {"id": "b", "content": "窗口改到周五", "importance": 5, "source": {"file": "log\\may.md", "line": 3}},
    {"id": "b", "corpus": "other", "content": "another b"},
    {"id": "c", "content": "the release notes", "source": {"file": "log/may.md", "line": 9}},
]
QUESTIONS: list[Any] = [
    {"id": "q1", "text": "when?", "relevant": {"a 1": 2, "b": 1}, "forbidden": ["c"], "categories": ["exact"]},
    {"id": "q2", "text": "几点", "corpus": "other", "not_relevant": ["b"], "expects_empty": True, "split": "dev"},
]


def native_set(
    folder: Path, memories: list[Any] = MEMORIES, questions: list[Any] = QUESTIONS, **more: str | bytes
) -> Path:
    """Write a set in the native form; `more` replaces files by name."""
    contents: dict[str, str | bytes] = {
        "dataset.toml": 'name = "small"\n',
        "memories.jsonl": jsonl(memories),
        "questions.jsonl": jsonl(questions),
    }
    return files(folder, {**contents, **more})
