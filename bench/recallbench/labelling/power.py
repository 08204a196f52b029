"""What a labelled set can tell apart: detectable differences, significant pairs, saturation.

Everything comes from the per-question differences between the systems that were run on it; the statistics are
those of `recallbench.statistics.paired`, which comparisons and gates use too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallbench.evaluation.aggregate import clusters_of
from recallbench.evaluation.evaluate import Evaluation
from recallbench.statistics.intervals import Interval, mean_interval
from recallbench.statistics.paired import (
    RESAMPLES,
    detectable_difference,
    holm,
    questions_needed,
    randomization_p,
    units_of,
)
from recallstack.errors import InputError

SATURATED_SET = 0.9
"""Above this mean of the primary measure the best system leaves too little room for a better one."""
ALPHA = 0.05
"""Two-sided level of the tests and, as 1 - ALPHA, of the intervals."""
POWER = 0.8
"""Probability with which a true difference is to be found."""
_RESAMPLES_A_PAIR = 40
"""Holm multiplies the least p-value by the number of pairs; so many resamples a pair keep that at ALPHA / 2."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the pairs of systems that differ: the median pair, the least and the greatest."""

    median: float
    least: float
    greatest: float


@dataclass(frozen=True, slots=True)
class MeasurePower:
    """How finely one measure resolves on the set.

    questions: in the denominator (the most of any pair). clusters: groups of them, 0 where none are known.
    pairs: of systems; equal: those of them without a difference on any question, which have no say.
    detectable: smallest true difference found with power POWER, in units of the measure. needed: questions with
    which the wanted difference would be found; None where none was wanted. Both are None if no pair differs.
    """

    measure: str
    questions: int
    clusters: int
    pairs: int
    equal: int
    detectable: Spread | None
    needed: Spread | None


@dataclass(frozen=True, slots=True)
class PairTest:
    """Two systems on the primary measure. difference: of `better` over `worse`, above 0 where it is better.

    equal: no question makes a difference. p: randomization test; adjusted: by Holm's method over all pairs of the
    report.
    """

    better: str
    worse: str
    difference: float
    equal: bool
    p: float
    adjusted: float

    @property
    def significant(self) -> bool:
        """Whether the pair is told apart at ALPHA."""
        return self.adjusted <= ALPHA


@dataclass(frozen=True, eq=False, slots=True)
class PowerReport:
    """What one evaluation says of the set that it was made on.

    measures: one a measure, the primary first. half: (system, mean with its interval) of the better half (one
    more if odd) of the systems by the primary measure, best first. pairs: all pairs among them.
    """

    evaluation: Evaluation
    difference: float | None
    measures: tuple[MeasurePower, ...]
    half: tuple[tuple[str, Interval], ...]
    pairs: tuple[PairTest, ...]

    @property
    def significant(self) -> int:
        """Pairs of the better half that are told apart."""
        return sum(pair.significant for pair in self.pairs)

    @property
    def saturated(self) -> bool:
        """Whether the best system is above SATURATED_SET on a measure whose best value is 1."""
        primary = self.evaluation.measures[0]
        return primary.higher_is_better and self.half[0][1].mean > SATURATED_SET


def power_report(evaluation: Evaluation, difference: float | None = None, *, seed: int = 0) -> PowerReport:
    """The power of the set that was evaluated, from all pairs of its systems.

    difference: a difference that one wants to detect, in units of each measure. Raises InputError for a
    difference under 0.0001, and for fewer than two systems.
    """
    if difference is not None and not 1e-4 <= difference < np.inf:
        raise InputError(f"the difference to detect is {difference}; it must be at least 0.0001, such as 0.02")
    if len(evaluation.systems) < 2:
        raise InputError("power comes from differences between systems; name at least two")
    measures = tuple(_measure_power(evaluation, place, difference) for place in range(len(evaluation.measures)))
    half = _better_half(evaluation)
    return PowerReport(evaluation, difference, measures, half, _tests(evaluation, [name for name, _ in half], seed))


def _differences(evaluation: Evaluation, m: int, a: int, b: int) -> tuple[NDArray[np.float64], list[str | None]] | None:
    """a minus b on the questions that count in both, above 0 where a is better; and the clusters. None if none."""
    places = np.flatnonzero(evaluation.counts[a, m] & evaluation.counts[b, m])
    if not len(places):
        return None
    sign = 1.0 if evaluation.measures[m].higher_is_better else -1.0
    clusters = clusters_of(evaluation)
    change = sign * (evaluation.values[a, m, places] - evaluation.values[b, m, places])
    return change, [clusters[place] for place in places]


def _intervals(evaluation: Evaluation, m: int) -> Iterator[Interval]:
    for a, b in itertools.combinations(range(len(evaluation.systems)), 2):
        found = _differences(evaluation, m, a, b)
        if found is not None:
            yield mean_interval(*found)


def _measure_power(evaluation: Evaluation, m: int, difference: float | None) -> MeasurePower:
    intervals = list(_intervals(evaluation, m))
    found = [(one, detectable_difference(one, 1 - ALPHA, POWER)) for one in intervals]
    # Without a difference the error is 0, and with a single question unknown: neither says what is detectable.
    told = [(interval, value) for interval, value in found if np.isfinite(value) and value > 0]
    needed = None
    if difference is not None:
        needed = _spread([questions_needed(interval, difference, 1 - ALPHA, POWER) for interval, _ in told])
    return MeasurePower(
        str(evaluation.measures[m]),
        max((one.n for one in intervals), default=0),
        max((one.clusters for one in intervals), default=0),
        len(intervals),
        sum(bool(one.mean == one.low == one.high == 0) for one in intervals),
        _spread([value for _, value in told]),
        needed,
    )


def _spread(values: list[float] | list[int]) -> Spread | None:
    if not values:
        return None
    return Spread(float(np.median(values)), float(min(values)), float(max(values)))


def _better_half(evaluation: Evaluation) -> tuple[tuple[str, Interval], ...]:
    clusters = clusters_of(evaluation)
    means = []
    for s, system in enumerate(evaluation.systems):
        places = np.flatnonzero(evaluation.counts[s, 0])
        means.append((system, mean_interval(evaluation.values[s, 0, places], [clusters[place] for place in places])))
    if any(interval.n == 0 for _, interval in means):
        raise InputError(f"no question counts in {evaluation.measures[0]}; name another measure")
    sign = -1 if evaluation.measures[0].higher_is_better else 1
    ordered = sorted(means, key=lambda one: sign * one[1].mean)  # stable: equals stay in the order of the systems
    return tuple(ordered[: max(2, (len(ordered) + 1) // 2)])  # of two systems both, so that the one pair is tested


def _tests(evaluation: Evaluation, names: list[str], seed: int) -> tuple[PairTest, ...]:
    pairs = list(itertools.combinations(names, 2))
    resamples = max(RESAMPLES, _RESAMPLES_A_PAIR * len(pairs))
    out: list[tuple[str, str, float, bool, float]] = []
    for better, worse in pairs:
        found = _differences(evaluation, 0, evaluation.systems.index(better), evaluation.systems.index(worse))
        if found is None:
            raise InputError(f"no question counts for both {better!r} and {worse!r}; compare other systems")
        change, clusters = found
        p = randomization_p(units_of(change, clusters), seed, resamples)
        out.append((better, worse, float(change.mean()), not bool(change.any()), p))
    adjusted = holm([p for *_, p in out])
    return tuple(PairTest(*one, adjusted=q) for one, q in zip(out, adjusted, strict=True))
