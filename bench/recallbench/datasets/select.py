"""A part of a labelled set: some splits, categories or languages, or the first questions."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable

from msgspec import structs

from recallbench.datasets.hashing import labels_hash, questions_hash
from recallbench.datasets.jsonl import nearest
from recallbench.datasets.model import LabelledSet
from recallstack.errors import InputError


def select(
    labelled: LabelledSet,
    split: str | None = None,
    categories: Collection[str] | None = None,
    languages: Collection[str] | None = None,
    limit: int | None = None,
    corpora: Collection[str] | None = None,
) -> LabelledSet:
    """The questions that meet all conditions, in order; every corpus stays whole.

    categories: a question of any of them stays. limit: at most so many questions, the first ones.
    corpora: only questions of these.
    Raises InputError for a split, category, language or corpus that there is not, and where none is left.
    """
    questions = labelled.questions
    if split is not None:
        _known(labelled, "split", [split], {one.split for one in questions if one.split})
        questions = tuple(one for one in questions if one.split == split)
    if categories is not None:
        _known(labelled, "category", categories, {name for one in questions for name in one.categories})
        questions = tuple(one for one in questions if set(one.categories) & set(categories))
    if corpora is not None:
        _known(labelled, "corpus", corpora, labelled.corpora)
        questions = tuple(one for one in questions if one.corpus in corpora)
    if languages is not None:
        _known(labelled, "language", languages, {one.lang for one in questions if one.lang})
        questions = tuple(one for one in questions if one.lang in languages)
    if limit is not None:
        if limit < 1:
            raise InputError(f"limit is {limit}; it must be at least 1")
        questions = questions[:limit]
    if not questions:
        raise InputError(f"set {labelled.info.name!r}: no question is left after the selection; widen it")
    return dataclasses.replace(
        labelled,
        questions=questions,
        labels_hash=labels_hash(questions),
        questions_hash=questions_hash(questions),
        mapped=labelled.has_channels,
    )


def split_by_cluster(labelled: LabelledSet, dev: Collection[str]) -> LabelledSet:
    """The set with splits: questions of these clusters are dev, all others test (for sets that come without).

    Raises InputError for a cluster that there is not, a question without one, or where either split is empty.

    >>> from recallbench import load
    >>> whole = load("mneme-memories")
    >>> names = sorted({one.cluster for one in whole.questions})
    >>> halves = split_by_cluster(whole, dev=names[::2])
    >>> {one.split for one in halves.questions if one.cluster == names[0]}
    {'dev'}
    """
    clusters = {one.cluster for one in labelled.questions if one.cluster is not None}
    _known(labelled, "cluster", dev, clusters)
    lone = next((one.id for one in labelled.questions if one.cluster is None), None)
    if lone is not None:
        raise InputError(f"set {labelled.info.name!r}: question {lone!r} has no cluster, so it cannot be split by one")
    if not dev or not clusters - set(dev):
        raise InputError(f"set {labelled.info.name!r}: both splits need at least one of its {len(clusters)} clusters")
    wanted = set(dev)
    questions = tuple(
        structs.replace(one, split="dev" if one.cluster in wanted else "test") for one in labelled.questions
    )
    return dataclasses.replace(labelled, questions=questions, labels_hash=labels_hash(questions))


def _known(labelled: LabelledSet, what: str, wanted: Collection[str], have: Iterable[str]) -> None:
    known = sorted(have)
    for name in wanted:
        if name not in known:
            hint = nearest(name, known) if known else "none is marked"
            raise InputError(f"set {labelled.info.name!r}: no question is left of {what} {name!r}; {hint}")
