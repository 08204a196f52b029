"""How often a gate is right: simulated changes whose true size is known, and the decisions of `interval` on them.

The decisions are those of `verdict_interval`, made for thousands of samples at once: an end clears a value exactly if
the test rejects that value, so that no root needs to be found (a test holds the two to the same answers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recallbench.statistics.verdict_interval import REACH, transformed

Float = NDArray[np.float64]
Flags = NDArray[np.bool_]

Kind = Literal["graded", "binary"]
GRADED = (
    *(0.031, 0.046, 0.065, 0.073, 0.101, 0.128, 0.136, 0.164, 0.213, 0.240),
    *(0.287, 0.354, 0.369, 0.371, 0.386, 0.419, 0.472, 0.511, 0.612, 0.875),
)
"""Sizes of the changes of nDCG@5 that are not 0, as seen between all pairs of eleven presets on LoCoMo and the three
built-in sets: the means of twenty equal parts of the pooled sizes (each pair drawn equally often)."""
RATE_CV = 0.25
DIRECTION_SD = 0.08
"""How much clusters differ: coefficient of variation of the share of changed questions, and standard deviation of the
share of drops among them. LoCoMo (10 conversations) and notes-vault (32 clusters), third quartile over pairs, by the
method of moments; the variance of a mean is then up to 2.5 times that of independent questions."""
SMALLEST, LARGEST = 0.5, 1.5
"""Cluster sizes over their mean, evenly spaced (LoCoMo: 105 to 260 questions a conversation)."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting. changed: share of questions that change at all. clusters: 0 for independent questions.

    kind: `graded` changes like nDCG@5, `binary` changes of 1 like Success@5.
    """

    questions: int
    changed: float
    clusters: int
    kind: Kind

    @property
    def sizes_of_change(self) -> Float:
        """Equally likely sizes of a change."""
        return np.array(GRADED if self.kind == "graded" else (1.0,))

    def cluster_sizes(self, clusters: int | None = None, questions: int | None = None) -> NDArray[np.int64]:
        """int64 `[G]`, uneven, summing to the questions."""
        count, total = clusters or self.clusters, questions or self.questions
        shares = np.linspace(SMALLEST, LARGEST, count)
        sizes = np.maximum(1, np.floor(total * shares / shares.sum())).astype(np.int64)
        sizes[-1] += total - sizes.sum()
        return np.asarray(sizes, np.int64)


@dataclass(frozen=True, slots=True)
class Samples:
    """R samples. differences: float64 `[R, n]`; sizes: int64 `[G]`, questions of each cluster in turn, or None."""

    differences: Float
    sizes: NDArray[np.int64] | None


def draw(
    cell: Cell,
    drop: float,
    samples: int,
    rng: np.random.Generator,
    *,
    questions: int | None = None,
    clusters: int | None = None,
) -> Samples:
    """Samples whose true mean change is -drop, of as many questions and clusters as the cell has or as are given.

    A share of the questions changes, by sizes seen on real sets; the share of drops among them makes the mean. Where
    all changes being drops is not enough, more questions change.
    """
    count = questions or cell.questions
    choices = cell.sizes_of_change
    typical = float(choices.mean())
    changed = max(cell.changed, drop / typical)
    down = 0.5 + drop / (2 * changed * typical)
    sizes = cell.cluster_sizes(clusters, count) if cell.clusters else None
    rate: Float = np.full((samples, 1), changed)
    direction: Float = np.full((samples, 1), down)
    if sizes is not None:
        groups = len(sizes)
        rate = np.minimum(1.0, changed * rng.gamma(RATE_CV**-2, RATE_CV**2, (samples, groups)))
        if 0 < down < 1:
            spread = min(DIRECTION_SD, 0.9 * float(np.sqrt(down * (1 - down))))
            total = down * (1 - down) / spread**2 - 1
            direction = rng.beta(down * total, (1 - down) * total, (samples, groups))
        rate, direction = (np.repeat(one, sizes, axis=1) if one.shape[1] > 1 else one for one in (rate, direction))
    moved = rng.random((samples, count)) < rate
    sign = np.where(rng.random((samples, count)) < direction, -1.0, 1.0)
    size = choices[rng.integers(0, len(choices), (samples, count))]
    return Samples(np.where(moved, sign * size, 0.0), sizes)


def detectable(cell: Cell, level: float = 0.95, power: float = 0.8, pilot: int = 400, seed: int = 0) -> float:
    """The smallest drop that a cell's questions find, as `init` proposes it: (t_level + t_power) standard errors."""
    from scipy import stats

    drawn = draw(cell, 0.0, pilot, np.random.default_rng(seed))
    units = cell.clusters or cell.questions
    factor = stats.t.ppf(0.5 + level / 2, units - 1) + stats.t.ppf(power, units - 1)
    return float(factor * drawn.differences.mean(axis=1).std())


def decisions(drawn: Samples, value: float, level: float = 0.95) -> tuple[Flags, Flags]:
    """bool `[R]` each: whether the low end is above a value, and whether the high end is below it."""
    differences = drawn.differences
    above, below = _decided(differences, np.ones(differences.shape[1]), value, level)
    if drawn.sizes is not None:
        ends = np.cumsum(drawn.sizes)
        running = np.concatenate([np.zeros((len(differences), 1)), np.cumsum(differences, axis=1)], axis=1)
        sums = running[:, ends] - running[:, ends - drawn.sizes]
        more_above, more_below = _decided(sums, drawn.sizes.astype(np.float64), value, level)
        above, below = above & more_above, below & more_below
    same = ~differences.any(axis=1)
    return np.where(same, value < 0, above), np.where(same, value > 0, below)


def _decided(sums: Float, sizes: Float, value: float, level: float) -> tuple[Flags, Flags]:
    """The same for units with these sums float64 `[R, G]` and sizes float64 `[G]`: all three tests must reject."""
    from scipy import stats

    count = sums.shape[1]
    mean = sums.sum(axis=1) / sizes.sum()
    residuals, u = sums - mean[:, None] * sizes, sums - value * sizes
    spread = np.sqrt(np.mean(residuals**2, axis=1))
    varies = spread > 0
    safe = np.where(varies, spread, 1.0)
    error = np.sqrt(count * count / (count - 1)) * safe
    t = np.where(varies, u.sum(axis=1) / error, _sure(u))
    skew = np.mean(residuals**3, axis=1) / safe**3 / np.sqrt(count)
    score, quantile = _score(u), float(stats.t.ppf(0.5 + level / 2, count - 1))
    near = varies & (np.abs(t) <= REACH * quantile)
    hall = np.where(near, transformed(np.where(near, t, 0.0), skew), np.copysign(np.inf, t))
    hall = np.where(t == 0, 0.0, hall)
    least, most = np.minimum(np.minimum(t, hall), score), np.maximum(np.maximum(t, hall), score)
    return least > quantile, most < -quantile


def _score(u: Float) -> Float:
    """float64 `[R]`: the score statistic with the variance under the null of greatest empirical likelihood."""
    most, least = u.max(axis=1), u.min(axis=1)
    inside = (most > 0) & (least < 0)
    low = np.where(inside, -1 / np.where(inside, most, 1.0), 0.0) * (1 - 1e-9)
    high = np.where(inside, -1 / np.where(inside, least, -1.0), 0.0) * (1 - 1e-9)
    weight = np.zeros(len(u))
    for _ in range(60):  # Newton's method, with bisection where it would leave the bracket
        shares = u / (1 + weight[:, None] * u)
        balance, slope = shares.sum(axis=1), np.einsum("rg,rg->r", shares, shares)
        low, high = np.where(balance >= 0, weight, low), np.where(balance >= 0, high, weight)
        step = weight + balance / np.where(slope > 0, slope, 1.0)
        following = np.where((step > low) & (step < high), step, (low + high) / 2)
        moved, weight = np.abs(following - weight), np.where(inside, following, 0.0)
        if not (moved > 1e-10 * np.maximum(1.0, np.abs(weight)))[inside].any():
            break
    variance = np.mean(u**2 / (1 + weight[:, None] * u), axis=1)
    error = np.sqrt(np.where(inside, variance, 1.0) / (u.shape[1] - 1))
    return np.asarray(np.where(inside, u.mean(axis=1) / error, _sure(u)), np.float64)


def _sure(u: Float) -> Float:
    """float64 `[R]`: a statistic without an error: infinite, with the sign of the sum."""
    total = u.sum(axis=1)
    return np.asarray(np.where(total > 0, np.inf, np.where(total < 0, -np.inf, 0.0)), np.float64)
