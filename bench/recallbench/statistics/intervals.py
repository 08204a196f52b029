"""Intervals of a mean over questions, and of paired differences between two systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEW_CLUSTERS = 20
"""Under this many clusters a cluster-robust interval is rough, and a table says so (protocols, statistics)."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its two-sided interval. n: questions; clusters: groups of them, 0 where none are known."""

    mean: float
    low: float
    high: float
    n: int
    clusters: int


def mean_interval(
    values: NDArray[np.float64], clusters: Sequence[str | None] | None = None, level: float = 0.95
) -> Interval:
    """Student's t interval of the mean of `values` (float64 `[n]`), robust to clusters where they are named.

    The point estimate is the mean over questions. With G >= 2 clusters the variance is that of cluster sums of
    residuals with the factor G/(G - 1) and G - 1 degrees of freedom (Cameron and Miller 2015, A Practitioner's
    Guide to Cluster-Robust Inference, equation 10 for a mean). All values equal: the interval is that value.
    All of one cluster: the interval is over its questions, and says nothing of other clusters (clusters is 1, and
    a table says so). One value: the interval is that value.
    """
    from scipy import stats

    n = len(values)
    if n == 0:
        return Interval(np.nan, np.nan, np.nan, 0, 0)
    mean = float(values.mean())
    groups = 0
    if clusters is not None and all(name is not None for name in clusters):
        names, place = np.unique(np.array(clusters, dtype=np.str_), return_inverse=True)
        groups = len(names)
    if np.ptp(values) == 0:
        return Interval(float(values[0]), float(values[0]), float(values[0]), n, groups)
    if groups > 1:
        sums = np.bincount(place, weights=values - mean, minlength=groups)
        error = float(np.sqrt(groups / (groups - 1) * np.sum(sums**2))) / n
        freedom = groups - 1
    else:
        error = float(values.std(ddof=1)) / np.sqrt(n)
        freedom = n - 1
    half = float(stats.t.ppf(0.5 + level / 2, freedom)) * error
    return Interval(mean, mean - half, mean + half, n, groups)


def cluster_intervals(
    sums: NDArray[np.float64], counted: NDArray[np.int64], level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`mean_interval` of R means at once, from sums over clusters.

    sums: float64 `[R, C]`, of the values in each cluster. counted: int64 `[C]`, questions in each; empty ones are left
    out. Returns the means and half the widths of their intervals, float64 `[R]`; NaN with fewer than two clusters.
    """
    from scipy import stats

    used = counted > 0
    n, groups = int(counted[used].sum()), int(used.sum())
    if n == 0:
        return np.full(len(sums), np.nan), np.full(len(sums), np.nan)
    mean = sums[:, used].sum(axis=1) / n
    if groups < 2:
        return mean, np.full(len(sums), np.nan)
    residuals = sums[:, used] - mean[:, None] * counted[used]
    error = np.sqrt(groups / (groups - 1) * (residuals**2).sum(axis=1)) / n
    return mean, float(stats.t.ppf(0.5 + level / 2, groups - 1)) * error
