"""Means with intervals over the questions that count: for each system and measure, whole or by group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallbench.datasets.model import Question
from recallbench.evaluation.evaluate import Evaluation
from recallbench.statistics.intervals import Interval, mean_interval
from recallstack.errors import InputError

GROUPINGS: dict[str, Callable[[Question], tuple[str, ...]]] = {
    "category": lambda question: question.categories,
    "lang": lambda question: (question.lang,) if question.lang else (),
    "corpus": lambda question: (question.corpus,),
    "split": lambda question: (question.split,) if question.split else (),
}
"""How questions can be grouped; a question may stand in more than one category."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One mean. group is empty for all questions; interval.n counts the questions in its denominator."""

    dataset: str
    group: str
    system: str
    measure: str
    interval: Interval


def groups_of(evaluation: Evaluation, by: str | None) -> dict[str, NDArray[np.bool_]]:
    """group -> bool `[Q]`, in the order of first appearance; one group named "" without `by`.

    Raises InputError for an unknown grouping.
    """
    questions = evaluation.labelled.questions
    if by is None:
        return {"": np.ones(len(questions), np.bool_)}
    if by not in GROUPINGS:
        raise InputError(f"unknown grouping {by!r}; use one of {', '.join(GROUPINGS)}")
    named = [GROUPINGS[by](question) for question in questions]
    names = list(dict.fromkeys(name for one in named for name in one))
    return {name: np.array([name in one for one in named], np.bool_) for name in names}


def clusters_of(evaluation: Evaluation) -> list[str | None]:
    """The cluster of each question."""
    return [question.cluster for question in evaluation.labelled.questions]


def _interval(
    values: NDArray[np.float64], mask: NDArray[np.bool_], clusters: list[str | None], level: float
) -> Interval:
    places = np.flatnonzero(mask)
    return mean_interval(values[places], [clusters[place] for place in places], level)


def cells(evaluation: Evaluation, by: str | None = None, level: float = 0.95) -> list[Cell]:
    """Every mean of an evaluation: group by group, system by system, measure by measure."""
    clusters = clusters_of(evaluation)
    return [
        Cell(
            evaluation.labelled.info.name,
            group,
            system,
            str(measure),
            _interval(evaluation.values[s, m], evaluation.counts[s, m] & mask, clusters, level),
        )
        for group, mask in groups_of(evaluation, by).items()
        for s, system in enumerate(evaluation.systems)
        for m, measure in enumerate(evaluation.measures)
    ]


def differences(evaluation: Evaluation, baseline: str, by: str | None = None, level: float = 0.95) -> list[Cell]:
    """Paired differences to the baseline, signed so that above 0 is better, over questions that count in both.

    Raises InputError where no system has the baseline's name.
    """
    if baseline not in evaluation.systems:
        raise InputError(f"baseline {baseline!r} is not among the systems: {', '.join(evaluation.systems)}")
    base = evaluation.systems.index(baseline)
    clusters = clusters_of(evaluation)
    out = []
    for group, mask in groups_of(evaluation, by).items():
        for s, system in enumerate(evaluation.systems):
            if s == base:
                continue
            for m, measure in enumerate(evaluation.measures):
                both = evaluation.counts[s, m] & evaluation.counts[base, m] & mask
                sign = 1.0 if measure.higher_is_better else -1.0
                change = sign * (evaluation.values[s, m] - evaluation.values[base, m])
                interval = _interval(change, both, clusters, level)
                out.append(Cell(evaluation.labelled.info.name, group, system, str(measure), interval))
    return out
