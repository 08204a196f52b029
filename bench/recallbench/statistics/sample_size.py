"""How many questions would settle an inconclusive margin."""

from __future__ import annotations

import math
from dataclasses import dataclass

from recallbench.statistics.verdict_interval import VerdictInterval

POWER = 0.8
"""Probability with which the named number of questions decides (protocols, statistics and verdict)."""
_AIM_SAME, _AIM_TWICE = 0.9, 0.95
"""Probabilities that the formula aims at. It takes the spread for known, and the spread of one sample is not: that of
drops, which are few and large, is seen too small more often than not (docs/gate.md shows what comes of it)."""
MOST = 1_000_000
"""Numbers above this are not named."""


@dataclass(frozen=True, slots=True)
class Settle:
    """Questions that would settle an inconclusive margin with probability POWER or more (`settle`).

    same: if nothing changed in truth. twice: if the true drop is twice the margin. clusters_*: groups of questions as
    large as those of now, 0 where none are known.
    """

    same: int
    twice: int
    clusters_same: int = 0
    clusters_twice: int = 0


def settle(interval: VerdictInterval, joint: VerdictInterval, margin: float) -> Settle | None:
    """The numbers for a mean change with these ends; None where they are unknown.

    An end decides if it clears the margin: its distance from the mean, and a normal quantile of the mean's own error,
    must be less than the margin. Both fall with the square root of the number of questions, drawn like those of now.
    """
    from scipy import stats

    aims = [float(stats.norm.ppf(one)) * interval.error for one in (_AIM_SAME, _AIM_TWICE)]
    reach = (interval.mean - interval.low + aims[0], joint.high - joint.mean + aims[1])
    if not all(math.isfinite(one) for one in reach):
        return None
    same, twice = (min(MOST, math.ceil(interval.n * (one / margin) ** 2)) for one in reach)
    per = interval.clusters / interval.n if interval.n else 0.0
    return Settle(same, twice, math.ceil(same * per), math.ceil(twice * per))
