"""Paired comparison of two systems on the same questions: interval, bootstrap, randomization test, power."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallbench.statistics.intervals import Interval, mean_interval

Float = NDArray[np.float64]

RESAMPLES = 9_999
"""Monte Carlo samples of the randomization test and of the bootstrap."""
EXACT_UNITS = 13
"""Up to this many units that differ, the randomization test goes through all sign flips (2^13 = 8,192)."""


@dataclass(frozen=True, slots=True)
class Units:
    """Independent units of a paired comparison: clusters where they are known, else questions.

    sums: float64 `[G]`, sum of the differences in each unit. sizes: float64 `[G]`, questions in each.
    """

    sums: Float
    sizes: Float


def units_of(differences: Float, clusters: Sequence[str | None] | None = None) -> Units:
    """The units of float64 `[n]` differences, as `mean_interval` takes them.

    Clusters count only where every question has one and there are at least two of them.
    """
    if clusters is None or any(name is None for name in clusters) or len(set(clusters)) < 2:
        return Units(differences, np.ones(len(differences)))
    _, place = np.unique(np.array(clusters, dtype=np.str_), return_inverse=True)
    sums = np.bincount(place, weights=differences)
    return Units(np.asarray(sums, np.float64), np.bincount(place).astype(np.float64))


def randomization_p(units: Units, seed: int = 0, resamples: int = RESAMPLES) -> float:
    """Two-sided p-value of the sign-flip (Fisher randomization) test of a mean difference of 0.

    Whole units are flipped together. Exact for at most EXACT_UNITS units that differ, else Monte Carlo with
    `(1 + hits) / (1 + resamples)` (Phipson and Smyth 2010; scipy.stats.permutation_test). No difference: 1.
    """
    from scipy.stats import permutation_test

    sums = units.sums[units.sums != 0]  # flipping the sign of 0 changes nothing
    if not len(sums):
        return 1.0
    if len(sums) == 1:
        return 1.0  # both sign patterns are equally extreme
    exact = len(sums) <= EXACT_UNITS
    found = permutation_test(
        (sums,),
        _sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=2 ** len(sums) if exact else resamples,  # at or above the number of patterns: all of them
        batch=max(1, 4_000_000 // len(sums)),
        alternative="two-sided",
        rng=np.random.default_rng(seed),
    )
    return float(min(1.0, found.pvalue))


def _sum(values: Float, axis: int = -1) -> Float:
    return np.asarray(values.sum(axis=axis), np.float64)


def bootstrap_interval(
    units: Units, level: float = 0.95, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean difference over questions, whole units resampled.

    Efron and Tibshirani 1993, chapter 13. NaN with one unit that differs from 0; no difference: (0, 0).
    """
    if not len(units.sums) or not units.sums.any():
        return 0.0, 0.0
    if len(units.sums) == 1:
        return float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    count, means = len(units.sums), np.empty(resamples)
    step = max(1, 4_000_000 // count)
    for start in range(0, resamples, step):
        drawn = rng.integers(0, count, (min(step, resamples - start), count))
        means[start : start + len(drawn)] = units.sums[drawn].sum(axis=1) / units.sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for their number by Holm's step-down method (Holm 1979), in the same order."""
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(len(p_values))
    running = 0.0
    for place, index in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = running
    return [float(one) for one in adjusted]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A paired comparison. Differences are signed so that above 0 is better.

    interval: Student's t or cluster-robust. bootstrap: the same by resampling. p: randomization test.
    better, worse, same: questions. effect: mean difference over the standard deviation of the differences
    (Cohen's d_z), 0 where nothing differs. detectable: smallest true difference that this set would find
    with power 0.8 at the level of the interval.
    """

    interval: Interval
    bootstrap: tuple[float, float]
    p: float
    better: int
    worse: int
    same: int
    effect: float
    detectable: float


def compare(
    differences: Float,
    clusters: Sequence[str | None] | None = None,
    *,
    level: float = 0.95,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Comparison:
    """Compare two systems by float64 `[n]` differences (new minus old, signed so that above 0 is better)."""
    units = units_of(differences, clusters)
    spread = float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
    interval = mean_interval(differences, clusters, level)
    return Comparison(
        interval,
        bootstrap_interval(units, level, seed, resamples),
        randomization_p(units, seed, resamples),
        int((differences > 0).sum()),
        int((differences < 0).sum()),
        int((differences == 0).sum()),
        interval.mean / spread if spread else 0.0,
        detectable_difference(interval, level),
    )


def _units(interval: Interval) -> int:
    """Independent units of an interval; of a single cluster it is over the questions (see `mean_interval`)."""
    return interval.clusters if interval.clusters > 1 else interval.n


def standard_error(interval: Interval, level: float = 0.95) -> float:
    """The standard error that an interval was made from; NaN where it is unknown."""
    from scipy import stats

    freedom = _units(interval) - 1
    if freedom < 1:
        return float("nan")
    return (interval.high - interval.mean) / float(stats.t.ppf(0.5 + level / 2, freedom))


def detectable_difference(interval: Interval, level: float = 0.95, power: float = 0.8) -> float:
    """Smallest true difference found with this power: `(t_level + t_power) * standard error`.

    The usual approximation to the power of a t test (Cohen 1988; Bloom 1995, minimum detectable effects).
    """
    from scipy import stats

    freedom = _units(interval) - 1
    if freedom < 1:
        return float("nan")
    factor = float(stats.t.ppf(0.5 + level / 2, freedom) + stats.t.ppf(power, freedom))
    return factor * standard_error(interval, level)


def questions_needed(interval: Interval, distance: float, level: float = 0.95, power: float = 0.8) -> int:
    """Questions with which an interval excludes a value `distance` away from the truth, with this power.

    The standard error is taken to fall with the square root of the number of units; questions a cluster
    stay as they are. Returns 0 where nothing varies; -1 where the error is unknown or the distance is 0.
    """
    from scipy import stats

    error, units = standard_error(interval, level), _units(interval)
    if error == 0:
        return 0
    if not np.isfinite(error) or distance <= 0:
        return -1
    spread, needed = error * np.sqrt(units), 2.0
    for _ in range(100):  # the quantiles depend on the number of units: a fixed point, found in a few steps
        freedom = max(1.0, needed - 1)
        factor = stats.t.ppf(0.5 + level / 2, freedom) + stats.t.ppf(power, freedom)
        following = max(2.0, float(np.ceil((factor * spread / distance) ** 2)))
        if following == needed:
            break
        needed = following
    return int(np.ceil(needed * interval.n / units))
