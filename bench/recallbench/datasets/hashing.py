"""Hashes of memories, of questions and of labels, apart: a baseline knows what has changed.

They depend on what a set says, not on how its files are laid out: order of rows and of keys, `3` or `3.0`,
a default written out or left out, a time in one zone or another make no difference.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallstack.ranking.rows import Corpus, Memory

_encoder = msgspec.json.Encoder(order="deterministic")


def _utc(moment: dt.datetime | None) -> dt.datetime | None:
    """No zone is read as UTC, as `Corpus.updated` does."""
    if moment is None:
        return None
    return moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def memory_row(memory: Memory) -> bytes:
    """Every field of a memory, as it is hashed."""
    values: dict[str, Any] = {name: getattr(memory, name) for name in memory.__struct_fields__}
    values["importance"] = float(memory.importance)
    values["quality"] = float(memory.quality)
    values["created_at"] = _utc(memory.created_at)
    values["updated_at"] = _utc(memory.updated_at)
    return _encoder.encode(values)


def _digest(rows: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(row)
        digest.update(b"\n")
    return digest.hexdigest()


def memories_hash(corpora: Mapping[str, Corpus]) -> str:
    """SHA-256 over every field of every memory, in the order of (corpus, id)."""
    return _digest(
        memory_row(memory)
        for name in sorted(corpora)
        for memory in sorted(corpora[name].memories, key=lambda one: one.id)
    )


def asked_row(question: Question) -> bytes:
    """What a system is asked, as it is hashed."""
    asked: dict[str, Any] = {
        "id": question.id,
        "text": question.text,
        "corpus": question.corpus,
        "now": _utc(question.now),
        "session": question.session,
    }
    if question.context:  # left out when empty: sets without histories keep their hashes
        asked["context"] = question.context
    return _encoder.encode(asked)


def labels_row(question: Question) -> bytes:
    """What measures and tables are made from, as it is hashed."""
    values = {
        "id": question.id,
        "corpus": question.corpus,
        "lang": question.lang,
        "categories": sorted(set(question.categories)),
        "cluster": question.cluster,
        "split": question.split,
        "relevant": dict(question.relevant),
        "not_relevant": sorted(set(question.not_relevant)),
        "forbidden": sorted(set(question.forbidden)),
        "expects_empty": question.expects_empty,
    }
    return _encoder.encode(values)


def questions_hash(questions: Iterable[Question]) -> str:
    """SHA-256 over what a system is asked (id, text, context, corpus, time, session), in the order of ids."""
    return _digest(asked_row(one) for one in sorted(questions, key=lambda q: q.id))


def labels_hash(questions: Iterable[Question]) -> str:
    """SHA-256 over what measures and tables are made from: labels, categories, cluster, split; not notes."""
    return _digest(labels_row(one) for one in sorted(questions, key=lambda q: q.id))


def hashed(
    info: SetInfo,
    corpora: Mapping[str, Corpus],
    questions: Sequence[Question],
    notes: Sequence[str] = (),
    snippets: Mapping[tuple[str, str], tuple[str, ...]] | None = None,
) -> LabelledSet:
    """A labelled set with its hashes; how every reader ends."""
    return LabelledSet(
        info=info,
        corpora=corpora,
        questions=tuple(questions),
        notes=tuple(notes),
        memories_hash=memories_hash(corpora),
        questions_hash=questions_hash(questions),
        labels_hash=labels_hash(questions),
        snippets=dict(snippets or {}),
    )
