"""What an evaluation would say if the returned memories that nobody judged had the best or the worst label.

A labelled set knows the answers that its makers found. A memory that comes back and carries no label counts as not
relevant, which favours the system whose answers the labels were made from. For each question and measure, two
extremes are scored: every unjudged memory that stands higher in the new list than in the old one is relevant (best for
the new one), or every one that stands lower is (worst). If they give different verdicts, labels are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from recallbench.datasets.model import LabelledSet, Question
from recallbench.match import first_places, from_lists, labels_of
from recallbench.measures import Binary, Measure
from recallbench.measures.ndcg import NDCG
from recallbench.systems.base import SystemRun

_NOWHERE = 10**9


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A memory that one list holds higher than the other, and that nobody judged. before, after: ranks, 0 not there."""

    question: str
    memory: str
    before: int
    after: int


@dataclass(frozen=True, eq=False, slots=True)
class Bounds:
    """Changes float64 `[Q]` under the worst and the best labels, and the memories that they are about."""

    worst: NDArray[np.float64]
    best: NDArray[np.float64]
    hits: tuple[Unjudged, ...]


def label_bounds(
    labelled: LabelledSet,
    before: SystemRun,
    after: SystemRun,
    measure: Measure,
    change: NDArray[np.float64],
    counted: NDArray[np.bool_],
) -> Bounds | None:
    """The bounds of a measure's change; None where no label is missing, or the measure takes none.

    change: float64 `[Q]`, as labelled, above 0 is better. counted: bool `[Q]`, questions in the denominator.
    """
    if not isinstance(measure, (Binary, NDCG)):
        return None
    lists: dict[int, tuple[list[str], list[str]]] = {}
    found: dict[int, list[Unjudged]] = {}
    for place in np.flatnonzero(counted).tolist():
        old, new = (list(islice(dict.fromkeys(run.ids[place]), measure.cutoff)) for run in (before, after))
        if old != new and (hits := _hits(labelled.questions[place], old, new)):
            lists[place], found[place] = (old, new), hits
    if not found:
        return None
    places, grade, rel = list(found), _top_grade(labelled), labelled.info.default_rel
    worst, best = change.copy(), change.copy()
    for bound, rises in ((best, True), (worst, False)):
        labels = [_relabelled(labelled.questions[place], found[place], rises, grade) for place in places]
        old_values, new_values = (
            measure.compute(from_lists(labels, [lists[place][side] for place in places], run.failed[places], rel))
            for side, run in enumerate((before, after))
        )
        bound[places] = new_values - old_values
    return Bounds(worst, best, tuple(hit for hits in found.values() for hit in hits))


def _hits(question: Question, old: Sequence[str], new: Sequence[str]) -> list[Unjudged]:
    judged = labels_of(question)
    before, after = first_places(old), first_places(new)
    return [
        Unjudged(question.id, name, before.get(name, 0), after.get(name, 0))
        for name in dict.fromkeys((*new, *old))
        if name not in judged and before.get(name) != after.get(name)
    ]


def _relabelled(question: Question, hits: Sequence[Unjudged], rises: bool, grade: int) -> dict[str, int]:
    labels = labels_of(question)
    for hit in hits:
        if ((hit.after or _NOWHERE) < (hit.before or _NOWHERE)) == rises:
            labels[hit.memory] = grade
    return labels


def _top_grade(labelled: LabelledSet) -> int:
    grades = [grade for question in labelled.questions for grade in question.relevant.values()]
    return max([labelled.info.default_rel, *grades])
