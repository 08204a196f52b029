"""TREC style: topics, qrels, and documents as JSON Lines."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from recallbench.datasets import jsonl
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.datasets.readers import qrels
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import Stream, gather
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory

_TOP = re.compile(r"<top>(.*?)(?:</top>|(?=<top>)|\Z)", re.DOTALL | re.IGNORECASE)
_NUM = re.compile(r"<num>\s*(?:Number:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(
    r"<title>\s*(?:Topic:)?\s*(.*?)\s*(?=</title>|<(?:desc|narr|num|dom|smry|con|fac|def|/top)\b|\Z)",
    re.IGNORECASE | re.DOTALL,
)
"""To the next tag of a topic: a title may hold `<`."""


class _Document(msgspec.Struct, frozen=True):
    """Ids and texts under the names in use: ours, TREC's (docno) and Anserini's (contents)."""

    id: str = ""
    docno: str = ""
    title: str | None = None
    text: str | None = None
    contents: str | None = None


def topics(path: Path, skips: Skips) -> Iterator[tuple[str, str, str]]:
    """(where, id, text) of each topic: `id TAB text` lines, or `<top>` blocks with `<num>` and `<title>`."""
    content = jsonl.text(path)
    if content.lstrip("\ufeff \t\r\n")[:5].lower() == "<top>":
        for block in _TOP.finditer(content):
            where = f"{path}:{content.count(chr(10), 0, block.start()) + 1}"
            number, title = _NUM.search(block[1]), _TITLE.search(block[1])
            if number is None or title is None or not title[1].strip():
                skips.bad(f"{where}: a topic needs <num> and <title>")
                continue
            yield where, number[1], " ".join(html.unescape(title[1]).split())
        return
    for line, row in jsonl.lines(path, skips):
        name, tab, asked = row.partition("\t")
        if not tab or not name.strip() or not asked.strip():
            skips.bad(f"{path}:{line}: expected a topic id, a tab and the text")
            continue
        yield f"{path}:{line}", name, asked.strip()


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

    def memories(skips: Skips) -> Iterator[tuple[str, Memory]]:
        for number, row in jsonl.rows(docs, _Document, skips):
            where, name = f"{docs}:{number}", row.id or row.docno
            if not name:
                skips.bad(f"{where}: a document needs id or docno")
                continue
            yield where, Memory(id=name, title=row.title or "", content=row.text or row.contents or "")

    def questions(skips: Skips) -> Iterator[tuple[str, Question]]:
        judged = qrels.parse(judgements, qrels.four, skips)
        yield from qrels.judged_questions(topics(asked, skips), judged, skips, notes)

    return Stream(info, memories, questions, str(docs), str(asked), qrels.place([judgements], qrels.four), notes)


def read(folder: Path) -> LabelledSet:
    """The folder in memory. Raises InputError as `stream.check` does."""
    return gather(stream(folder))
