"""BEIR (Thakur et al. 2021): a folder with corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv, gzip or plain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from recallbench.datasets import jsonl, qrels
from recallbench.datasets.model import LabelledSet, Question, SetInfo, Split
from recallbench.datasets.stream import Skips, Stream, gather
from recallstack.errors import InputError
from recallstack.rows import Memory

_SPLITS: dict[str, Split] = {"train": "dev", "dev": "dev", "test": "test"}
"""BEIR's splits as ours: `dev` is what may be tuned on."""


class _Document(msgspec.Struct, frozen=True):
    id: str = msgspec.field(name="_id")
    text: str
    title: str = ""


class _Query(msgspec.Struct, frozen=True):
    id: str = msgspec.field(name="_id")
    text: str


def checked_rows(path: Path, row_type: type[jsonl.T], skips: Skips) -> Iterator[tuple[int, jsonl.T]]:
    """Rows of a JSON Lines file; a bad one is raised, or counted if `skips` allows."""
    decoder = msgspec.json.Decoder(row_type)
    for number, line in jsonl.lines(path):
        try:
            row = jsonl.decode(line, f"{path}:{number}", decoder)
        except InputError as error:
            skips.bad(str(error))
            continue
        yield number, row


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

    def memories(skips: Skips) -> Iterator[Memory]:
        for number, row in checked_rows(corpus, _Document, skips):
            if not row.id:
                skips.bad(f"{corpus}:{number}: _id is empty")
                continue
            yield Memory(id=row.id, title=row.title, content=row.text)

    def questions(skips: Skips) -> Iterator[Question]:
        judged: dict[str, tuple[qrels.Judged, Split | None]] = {}
        for path in judgements:
            split = _SPLITS.get(path.name.split(".")[0])
            for query, one in qrels.parse(qrels.tab_separated(path), path, skips).items():
                if query in judged:
                    skips.bad(f"{path}: query {query!r} is judged in another file of qrels/ too")
                    continue
                judged[query] = (one, split)
        unjudged, seen = 0, set()
        for number, row in checked_rows(queries, _Query, skips):
            if row.id not in judged:
                unjudged += 1
                continue
            if not row.id or not row.text.strip():
                skips.bad(f"{queries}:{number}: _id or text is empty")
                continue
            seen.add(row.id)
            one, split = judged[row.id]
            yield Question(
                id=row.id,
                text=row.text,
                split=split,
                relevant=one.relevant,
                not_relevant=tuple(one.not_relevant),
            )
        for query in judged:
            if query not in seen:
                skips.bad(f"{queries}: query {query!r} of qrels/ is missing")
        notes[:] = [f"{unjudged} queries without judgements were left out"] if unjudged else []

    return Stream(info, memories, questions, notes)


def read(folder: Path) -> LabelledSet:
    """The folder in memory. Raises InputError as `stream.check` does."""
    return gather(stream(folder))
