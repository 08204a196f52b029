"""The interval that a verdict is read from.

Most questions of a set do not change between two versions of a system. With few changes, nearly all of them drops,
Student's t is too sure: at a true drop of exactly the margin its lower end clears the margin in up to 14 % of samples
instead of 2.5 % (docs/gate.md has the table). The verdict therefore needs three intervals to agree, and is read from
the widest of them:

- Student's t;
- t corrected for skewness by Hall's transformation (Hall 1992, On the removal of skewness by transformation,
  JRSS B 54, equation 2.3);
- the values that a score test with the variance under the null does not reject, where the null distribution is the
  one of greatest empirical likelihood with that mean (Owen 2001, Empirical Likelihood, chapter 2). For differences of
  -1, 0 and 1 it is Tango's (1998) interval of a difference of paired proportions.

Where clusters are known, each is made twice, over clusters and over questions, and the widest counts: with few clusters
an error that is smaller than that of independent questions is chance more often than truth (Angrist and Pischke 2009,
Mostly Harmless Econometrics, section 8.1). On dense differences of independent questions all agree to two digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallbench.statistics.paired import Units, units_of

Float = NDArray[np.float64]

FEW_QUESTIONS = 10
"""Fewer questions decide nothing, unless nothing differs (choice: a t interval of a handful is a guess)."""
REACH = 2.5
"""The most half-widths of Student's t that Hall's end may be away. His cubic is flat where the skewness of a few
questions is extreme, and without a bound its end runs off to where no other interval is (choice: the least bound that
leaves the truth table as it is)."""
_EDGE = 1e-9
"""How near the score test goes to the edge of what the differences can average to, in units of their range."""


@dataclass(frozen=True, slots=True)
class VerdictInterval:
    """A mean difference and the ends that a verdict is read from.

    error: standard error of the mean, the wider of cluster-robust and independent. n: questions; clusters: groups of
    them, 0 where none are known; units: what was taken as independent.
    """

    mean: float
    low: float
    high: float
    error: float
    n: int
    clusters: int
    units: int


def verdict_interval(
    differences: Float, clusters: Sequence[str | None] | None = None, level: float = 0.95
) -> VerdictInterval:
    """The widest interval of the mean of float64 `[n]` differences at a two-sided level.

    All differences 0: [0, 0]. Fewer than FEW_QUESTIONS questions that differ at all: no ends (infinite).
    """
    n = len(differences)
    units = units_of(differences, clusters)
    known = 0
    if clusters is not None and n and all(name is not None for name in clusters):
        known = len(set(clusters))
    if n == 0:
        return VerdictInterval(np.nan, -np.inf, np.inf, np.inf, 0, known, 0)
    mean = float(differences.mean())
    if not differences.any():
        return VerdictInterval(0.0, 0.0, 0.0, 0.0, n, known, len(units.sums))
    if n < FEW_QUESTIONS:
        return VerdictInterval(mean, -np.inf, np.inf, np.inf, n, known, len(units.sums))
    single = Units(differences, np.ones(n))
    kinds = [single] if len(units.sums) == n else [single, units]
    found = [one for kind in kinds for one in ends(kind, level)]
    return VerdictInterval(
        mean,
        min(low for low, _ in found),
        max(high for _, high in found),
        max(standard_error(kind) for kind in kinds),
        n,
        known,
        len(units.sums),
    )


def standard_error(units: Units) -> float:
    """Standard error of the mean over questions, robust to what is within a unit (`stats.mean_interval`)."""
    count = len(units.sums)
    return float(np.sqrt(count / (count - 1) * np.sum(_residuals(units) ** 2)) / units.sizes.sum())


def ends(units: Units, level: float) -> list[tuple[float, float]]:
    """(low, high) of Student's t, of Hall's transformation and of the score test. At least two units."""
    from scipy import stats

    count = len(units.sums)
    mean, quantile = _mean(units), float(stats.t.ppf(0.5 + level / 2, count - 1))
    residuals = _residuals(units)
    spread = float(np.sqrt(np.mean(residuals**2)))
    if spread <= _EDGE * max(1.0, abs(mean)):
        return [(mean, mean)]
    error, skew = standard_error(units), float(np.mean(residuals**3)) / spread**3 / np.sqrt(count)
    score = _Score(units)
    return [
        (mean - quantile * error, mean + quantile * error),
        (
            mean - min(_untransformed(quantile, skew), REACH * quantile) * error,
            mean - max(_untransformed(-quantile, skew), -REACH * quantile) * error,
        ),
        (score.end(quantile, -1), score.end(quantile, +1)),
    ]


def transformed(t: Float, skew: Float) -> Float:
    """Hall's transformation of a t statistic: a monotone cubic whose distribution has no skewness left.

    skew: estimated skewness over the square root of the number of units.
    """
    return np.asarray(t + skew / 3 * t**2 + skew**2 / 27 * t**3 + skew / 6, np.float64)


def _untransformed(value: float, skew: float) -> float:
    """The t statistic that `transformed` maps to a value."""
    if abs(skew) < 1e-9:
        return value - skew / 6
    return float(3 / skew * (np.cbrt(1 + skew * (value - skew / 6)) - 1))


def _mean(units: Units) -> float:
    return float(units.sums.sum() / units.sizes.sum())


def _residuals(units: Units) -> Float:
    return units.sums - _mean(units) * units.sizes


class _Score:
    """The score statistic of a mean, and the values at which it reaches a quantile."""

    def __init__(self, units: Units) -> None:
        pairs, self._times = np.unique(np.stack([units.sums, units.sizes], axis=1), axis=0, return_counts=True)
        self._sums, self._sizes = pairs[:, 0], pairs[:, 1]
        self._count = len(units.sums)
        ratios = self._sums / self._sizes
        self._mean, self._least, self._most = _mean(units), float(ratios.min()), float(ratios.max())

    def end(self, quantile: float, side: int) -> float:
        """The nearest value below (side -1) or above (+1) the mean that the test rejects."""
        from scipy.optimize import brentq

        edge = self._least if side < 0 else self._most
        edge += -side * _EDGE * (self._most - self._least)
        if side * (edge - self._mean) <= 0:
            return self._mean

        def beyond(value: float) -> float:
            return -side * self.statistic(value) - quantile

        if beyond(edge) <= 0:
            return edge
        return float(brentq(beyond, self._mean, edge, xtol=1e-12))

    def statistic(self, value: float) -> float:
        """(mean - value) over its standard error where the mean is `value`; a value within the differences' range."""
        from scipy.optimize import brentq

        u = self._sums - value * self._sizes
        most, least = float(u.max()), float(u.min())
        if most <= 0 or least >= 0:
            return float(np.inf if u.sum() > 0 else -np.inf)

        total = self._times * u

        def balance(weight: float) -> float:
            return float((total / (1 + weight * u)).sum())

        # 1 + weight * u stays above 0 for every u: the ends are open, and balance runs from +inf to -inf.
        shrink = 1 - 1e-12
        found = brentq(balance, -shrink / most, -shrink / least, xtol=1e-14, maxiter=500)
        variance = float(np.sum(self._times * u**2 / (1 + found * u))) / self._count
        return float(total.sum()) / self._count / float(np.sqrt(variance / (self._count - 1)))
