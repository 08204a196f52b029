"""BEIR (Thakur et al. 2021): a folder with corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv, gzip or plain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from recallbench.datasets import jsonl
from recallbench.datasets.model import LabelledSet, Question, SetInfo, Split, Text
from recallbench.datasets.readers import qrels
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import Stream, gather
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory

_SPLITS: dict[str, Split] = {"train": "dev", "dev": "dev", "test": "test"}
"""BEIR's splits as ours: `dev` is what may be tuned on."""


class _Document(msgspec.Struct, frozen=True):
    id: Text = msgspec.field(name="_id")
    text: str
    title: str | None = None


class _Query(msgspec.Struct, frozen=True):
    id: Text = msgspec.field(name="_id")
    text: str


def stream(folder: Path) -> Stream:
    """The folder as a stream. Queries without judgements are left out and counted in `notes`."""
    corpus, queries = jsonl.find(folder, "corpus.jsonl"), jsonl.find(folder, "queries.jsonl")
    judgements = sorted(path for end in ("*.tsv", "*.tsv.gz") for path in (folder / "qrels").glob(end))
    if corpus is None or queries is None or not judgements:
        raise InputError(f"{folder}: a BEIR folder holds corpus.jsonl, queries.jsonl and qrels/*.tsv")
    info = SetInfo(
        name=folder.resolve().name,
        description="BEIR collection",
        primary_measure="nDCG@10",
        default_rel=1,
        depth=100,
        memory_unit="a document: title, text",
    )
    notes: list[str] = []

    def memories(skips: Skips) -> Iterator[tuple[str, Memory]]:
        for number, row in jsonl.rows(corpus, _Document, skips):
            yield f"{corpus}:{number}", Memory(id=row.id, title=row.title or "", content=row.text)

    def questions(skips: Skips) -> Iterator[tuple[str, Question]]:
        judged: dict[str, qrels.Judged] = {}
        for path in judgements:
            for query, one in qrels.parse(path, qrels.three, skips, _SPLITS.get(path.name.split(".")[0])).items():
                before = judged.setdefault(query, one)
                if before is not one:
                    skips.bad(f"{one.where}: query {query!r} is already judged at {before.where}, in another split")
        asked = ((f"{queries}:{number}", row.id, row.text) for number, row in jsonl.rows(queries, _Query, skips))
        yield from qrels.judged_questions(asked, judged, skips, notes)

    return Stream(info, memories, questions, str(corpus), str(queries), qrels.place(judgements, qrels.three), notes)


def read(folder: Path) -> LabelledSet:
    """The folder in memory. Raises InputError as `stream.check` does."""
    return gather(stream(folder))
