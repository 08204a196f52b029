"""From what systems returned to one number a question: the values of every measure, and whether to trust them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallbench.datasets.model import LabelledSet
from recallbench.evaluation.match import ranked_labels
from recallbench.evaluation.trust import Check, check_evaluation
from recallbench.measures import Measure, compute_all
from recallbench.measures.ranked import RankedLabels
from recallbench.systems.base import System, SystemRun
from recallstack.errors import InputError

DEFAULT_MEASURES = (
    "nDCG@5",
    "R@5",
    "AllR@5",
    "Success@5",
    "R@20",
    "RR",
    "Judged@5",
    "Leak",
    "Stale",
    "Abstain",
)
"""What a run measures unless told otherwise; the set's primary measure always comes first."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Systems on one labelled set.

    values: float64 `[S, M, Q]`, one number a system, measure and question.
    counts: bool `[S, M, Q]`, whether the question is in the measure's denominator.
    """

    labelled: LabelledSet
    runs: tuple[SystemRun, ...]
    measures: tuple[Measure, ...]
    values: NDArray[np.float64]
    counts: NDArray[np.bool_]
    depth: int
    split: str | None
    checks: tuple[Check, ...]

    @property
    def valid(self) -> bool:
        """Whether every trust check passed and every system answered every question."""
        return not any(check.level == "error" for check in self.checks)

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(run.system for run in self.runs)


def depth_for(labelled: LabelledSet, measures: Sequence[Measure]) -> int:
    """Rows to ask of a system: the set's depth, or the deepest cutoff."""
    return max([labelled.info.depth, *(measure.cutoff or 0 for measure in measures)])


def run_system(system: System, labelled: LabelledSet, depth: int) -> SystemRun:
    """One system's answers, held to the protocol: one list a question."""
    got = system.run(labelled, depth)
    if len(got.ids) != len(labelled.questions):
        raise InputError(f"system {system.name!r} answered {len(got.ids)} of {len(labelled.questions)} questions")
    return got


def evaluate(
    labelled: LabelledSet,
    runs: Sequence[SystemRun],
    measures: Sequence[Measure],
    depth: int,
    *,
    split: str | None = None,
    allow_zero: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
) -> Evaluation:
    """Measure the runs and check them.

    allow_zero: systems that may score 0 on every question of the primary measure.
    Raises InputError where two systems share a name or no measure is asked for.
    """
    names = [run.system for run in runs]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two systems are named {twice!r}; give each a name of its own")
    if not measures:
        raise InputError("no measure asked for; name one with --measure, for example nDCG@5")
    shape = (len(runs), len(measures), len(labelled.questions))
    values, counts = np.zeros(shape), np.zeros(shape, np.bool_)
    ranked: list[RankedLabels] = []
    for s, run in enumerate(runs):
        one = ranked_labels(labelled, run)
        ranked.append(one)
        values[s] = compute_all(measures, one)
        counts[s] = [measure.counts(one) for measure in measures]
        if progress:
            progress(run.system)
    checks = check_evaluation(labelled, runs, ranked, tuple(measures), values, counts, depth, allow_zero)
    return Evaluation(labelled, tuple(runs), tuple(measures), values, counts, depth, split, checks)
