"""A baseline in memory, and how one is made from an evaluation."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recallbench.datasets.hashing import asked_row, labels_row, memory_row
from recallbench.datasets.model import LabelledSet, Question
from recallbench.evaluation.evaluate import Evaluation
from recallbench.systems.base import SystemRun

FORMAT = 1
DIGITS = 4
"""Hex digits kept of the hash of one memory or question. They say which one has changed (a change is missed once in
65,536), and are too few to tell whether a guessed text is the private one. That nothing has changed at all, the whole
set's hash says."""


@dataclass(frozen=True, eq=False)
class SystemBaseline:
    """One system's answers and measures.

    spec: what was asked. ids: returned memory ids of each question, best first. semantic: how many of them a channel
    contributed. failed: no valid answer. values: measure -> one number a question. capacity: the most rows that it
    gives, None is no limit. Times are not kept: those of another machine, or of another day, compare with nothing.
    """

    spec: Mapping[str, Any]
    ids: tuple[tuple[str, ...], ...]
    semantic: tuple[int, ...]
    failed: tuple[bool, ...]
    values: Mapping[str, tuple[float, ...]]
    capacity: int | None = None


@dataclass(frozen=True, eq=False)
class Baseline:
    """What systems returned for a set, with what the set was.

    dataset: name, version, hashes, split, query. memories: (corpus, id) -> digest. questions: id -> digest of what is
    asked; labels: id -> digest of what measures are made from. Systems hold one entry a question, in this order.
    versions, time, machine: what made it. revision: of the caller's repository, where known.
    """

    dataset: Mapping[str, Any]
    depth: int
    memories: Mapping[tuple[str, str], str]
    questions: Mapping[str, str]
    labels: Mapping[str, str]
    systems: Mapping[str, SystemBaseline]
    versions: Mapping[str, str]
    machine: Mapping[str, Any]
    time: str = ""
    revision: str = ""

    @property
    def measures(self) -> tuple[str, ...]:
        """Those that were saved, the primary one first."""
        return tuple(next(iter(self.systems.values())).values)


def digest(encoded: bytes) -> str:
    """The first digits of a SHA-256."""
    return hashlib.sha256(encoded).hexdigest()[:DIGITS]


def memory_digests(labelled: LabelledSet) -> dict[tuple[str, str], str]:
    """(corpus, id) -> digest over every field of the memory."""
    return {
        (name, memory.id): digest(memory_row(memory))
        for name, corpus in labelled.corpora.items()
        for memory in corpus.memories
    }


def question_digests(questions: Sequence[Question]) -> dict[str, str]:
    """id -> digest of what a system is asked: text, conversation, corpus, time, session."""
    return {one.id: digest(asked_row(one)) for one in questions}


def label_digests(questions: Sequence[Question]) -> dict[str, str]:
    """id -> digest of labels, categories, cluster and split."""
    return {one.id: digest(labels_row(one)) for one in questions}


def baseline_of(
    evaluation: Evaluation, query: str, versions: Mapping[str, str], machine: Mapping[str, Any], revision: str = ""
) -> Baseline:
    """The baseline that an evaluation makes."""
    labelled = evaluation.labelled
    measures = [str(measure) for measure in evaluation.measures]
    systems = {}
    for s, run in enumerate(evaluation.runs):
        systems[run.system] = SystemBaseline(
            run.spec,
            run.ids,
            tuple(run.semantic.tolist()),
            tuple(run.failed.tolist()),
            {name: tuple(evaluation.values[s, m].tolist()) for m, name in enumerate(measures)},
            run.capacity,
        )
    return Baseline(
        {
            "name": labelled.info.name,
            "version": labelled.info.version,
            "memories": labelled.memories_hash,
            "questions": labelled.questions_hash,
            "labels": labelled.labels_hash,
            "split": evaluation.split or "",
            "query": query,
        },
        evaluation.depth,
        memory_digests(labelled),
        question_digests(labelled.questions),
        label_digests(labelled.questions),
        systems,
        dict(versions),
        dict(machine),
        dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        revision,
    )


def run_of(name: str, system: SystemBaseline, places: Sequence[int]) -> SystemRun:
    """A saved system as if it had answered again. places: of the questions wanted, in the order wanted."""
    ids = tuple(system.ids[place] for place in places)
    return SystemRun(
        name,
        system.spec,
        ids,
        # The scores are not kept: the order of a list is all that counts.
        tuple(tuple(float(len(one) - rank) for rank in range(len(one))) for one in ids),
        np.array([system.semantic[place] for place in places], np.int32),
        np.array([system.failed[place] for place in places], np.bool_),
        capacity=system.capacity,
    )
