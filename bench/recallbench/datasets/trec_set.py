"""TREC style: topics, qrels, and documents as JSON Lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from recallbench.datasets import jsonl, qrels
from recallbench.datasets.beir import checked_rows
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.datasets.stream import Skips, Stream, gather
from recallstack.errors import InputError
from recallstack.rows import Memory

_TOP = re.compile(r"<top>(.*?)(?:</top>|(?=<top>)|\Z)", re.DOTALL | re.IGNORECASE)
_NUM = re.compile(r"<num>\s*(?:Number:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:Topic:)?\s*([^<]*)", re.IGNORECASE)


class _Document(msgspec.Struct, frozen=True):
    """Ids and texts under the names in use: ours, TREC's (docno) and Anserini's (contents)."""

    id: str = ""
    docno: str = ""
    title: str = ""
    text: str = ""
    contents: str = ""


def topics(path: Path, skips: Skips) -> Iterator[tuple[str, str]]:
    """(id, text) of each topic: `id TAB text` lines, or `<top>` blocks with `<num>` and `<title>`."""
    content = jsonl.text(path)
    if "<top>" in content.lower():
        for block in _TOP.finditer(content):
            number, title = _NUM.search(block[1]), _TITLE.search(block[1])
            if number is None or title is None or not title[1].strip():
                line = content.count("\n", 0, block.start()) + 1
                skips.bad(f"{path}:{line}: a topic needs <num> and <title>")
                continue
            yield number[1], " ".join(title[1].split())
        return
    for line, row in jsonl.lines(path):
        name, tab, asked = row.partition("\t")
        if not tab or not name.strip() or not asked.strip():
            skips.bad(f"{path}:{line}: expected a topic id, a tab and the text")
            continue
        yield name.strip(), asked.strip()


def stream(folder: Path) -> Stream:
    """A folder with docs.jsonl, topics.tsv or topics.txt, and qrels.txt, gzip or plain."""
    docs = jsonl.find(folder, "docs.jsonl")
    asked = jsonl.find(folder, "topics.tsv", "topics.txt")
    judgements = jsonl.find(folder, "qrels.txt", "qrels")
    if docs is None or asked is None or judgements is None:
        raise InputError(f"{folder}: a TREC folder holds docs.jsonl, topics.tsv (or topics.txt) and qrels.txt")
    info = SetInfo(
        name=folder.resolve().name,
        description="TREC style collection",
        primary_measure="nDCG@10",
        default_rel=1,
        depth=1000,
        memory_unit="a document: title, text",
    )
    notes: list[str] = []

    def memories(skips: Skips) -> Iterator[Memory]:
        for number, row in checked_rows(docs, _Document, skips):
            name = row.id or row.docno
            if not name:
                skips.bad(f"{docs}:{number}: a document needs id or docno")
                continue
            yield Memory(id=name, title=row.title, content=row.text or row.contents)

    def questions(skips: Skips) -> Iterator[Question]:
        judged = qrels.parse(qrels.trec(judgements), judgements, skips)
        unjudged, seen = 0, set()
        for name, text in topics(asked, skips):
            if name not in judged:
                unjudged += 1
                continue
            seen.add(name)
            one = judged[name]
            yield Question(id=name, text=text, relevant=one.relevant, not_relevant=tuple(one.not_relevant))
        for name in judged:
            if name not in seen:
                skips.bad(f"{asked}: topic {name!r} of {judgements.name} is missing")
        notes[:] = [f"{unjudged} topics without judgements were left out"] if unjudged else []

    return Stream(info, memories, questions, notes)


def read(folder: Path) -> LabelledSet:
    """The folder in memory. Raises InputError as `stream.check` does."""
    return gather(stream(folder))
