"""Pooling: which memories must be read so that every system of a pool is judged, and what the pool favours."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from recallbench.datasets.hashing import labels_hash
from recallbench.datasets.model import LabelledSet, Question
from recallbench.evaluation.match import ranked_labels
from recallbench.measures import Measure, compute_all
from recallbench.systems.base import SystemRun
from recallstack.errors import InputError


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and a memory of its corpus, by id."""

    question: str
    memory: str


def judged(question: Question) -> set[str]:
    """The memories that somebody read for a question, whatever came of it."""
    return {*question.relevant, *question.not_relevant, *question.forbidden}


def pooled(runs: Sequence[SystemRun], place: int, depth: int) -> list[str]:
    """The union of the first `depth` hits of each system for one question, in order of first appearance."""
    return list(dict.fromkeys(memory for run in runs for memory in run.ids[place][:depth]))


def unjudged(labelled: LabelledSet, runs: Sequence[SystemRun], depth: int, seed: int = 0) -> list[Pair]:
    """The pairs of the pool that nobody has read, question by question, shuffled inside each.

    Neither order nor pair tells which system brought a memory. Raises InputError for a depth under 1.
    """
    if depth < 1:
        raise InputError(f"pool depth is {depth}; it must be at least 1")
    out = []
    for place, question in enumerate(labelled.questions):
        known = judged(question)
        new = sorted(memory for memory in pooled(runs, place, depth) if memory not in known)
        random.Random(f"{seed} {question.id}").shuffle(new)
        out += [Pair(question.id, memory) for memory in new]
    return out


def second_pass(labelled: LabelledSet, share: float, seed: int = 0) -> list[Pair]:
    """A shuffled share of the pairs that were judged, for a second pass that sees no first label.

    Forbidden memories are left out: they follow from the scope and not from reading. Raises InputError for a
    share that is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise InputError(f"share is {share}; it must be above 0 and at most 1")
    pairs = [
        Pair(question.id, memory)
        for question in labelled.questions
        for memory in sorted({*question.relevant, *question.not_relevant} - {*question.forbidden})
    ]
    random_ = random.Random(seed)
    random_.shuffle(pairs)
    return pairs[: max(1, round(share * len(pairs)))] if pairs else []


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a system would score had it had no part in the pool. lost: relevant memories that it alone returned."""

    system: str
    value: float
    without: float
    lost: int


def leave_one_out(
    labelled: LabelledSet, runs: Sequence[SystemRun], depth: int, measure: Measure
) -> tuple[LeftOut, ...]:
    """For each system of a pool: its mean with all labels, and without those that only it returned (Zobel 1998)."""
    out = []
    for number, run in enumerate(runs):
        others = [one for place, one in enumerate(runs) if place != number]
        questions, lost = [], 0
        for place, question in enumerate(labelled.questions):
            own = set(run.ids[place][:depth]) - set(pooled(others, place, depth))
            lost += len(own & set(question.relevant))
            kept = {name: grade for name, grade in question.relevant.items() if name not in own}
            questions.append(msgspec.structs.replace(question, relevant=kept))
        poorer = dataclasses.replace(labelled, questions=tuple(questions), labels_hash=labels_hash(questions))
        out.append(LeftOut(run.system, _mean(labelled, run, measure), _mean(poorer, run, measure), lost))
    return tuple(out)


def _mean(labelled: LabelledSet, run: SystemRun, measure: Measure) -> float:
    ranked = ranked_labels(labelled, run)
    counts = measure.counts(ranked)
    return float(compute_all([measure], ranked)[0][counts].mean()) if counts.any() else float(np.nan)
