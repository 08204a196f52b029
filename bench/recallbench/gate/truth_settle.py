"""Whether the number of questions that an inconclusive gate names does settle it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from recallbench.gate.truth import Cell, Samples, decisions, draw
from recallbench.statistics.sample_size import MOST, settle
from recallbench.statistics.verdict_interval import verdict_interval


@dataclass(frozen=True, slots=True)
class Settled:
    """pilots: samples that were inconclusive. decided: share of them that the named number of questions settled.

    wrongly: share that it settled wrongly. named: median of the named numbers.
    """

    pilots: int
    decided: float
    wrongly: float
    named: float


def settled(cell: Cell, margin: float, twice: bool, pilots: int, seed: int = 0, level: float = 0.95) -> Settled:
    """Draw samples until `pilots` of them are inconclusive; for each, draw one of the size that it names, and judge.

    twice: the true drop is twice the margin, which FAIL is right for; else nothing has changed, which is PASS.
    """
    rng = np.random.default_rng(seed)
    drop = 2 * margin if twice else 0.0
    named, right, wrong = [], 0, 0
    for first in _inconclusive(cell, drop, margin, pilots, level, rng):
        found = verdict_interval(first.differences[0], clusters_of(first), level)
        numbers = settle(found, found, margin)
        assert numbers is not None
        questions = numbers.twice if twice else numbers.same
        clusters = numbers.clusters_twice if twice else numbers.clusters_same
        assert questions < MOST
        again = draw(cell, drop, 1, rng, questions=max(questions, 2), clusters=max(clusters, 2))
        above, below = decisions(again, -margin, level)
        named.append(questions)
        right += bool(below[0] if twice else above[0])
        wrong += bool(above[0] if twice else below[0])
    return Settled(pilots, right / pilots, wrong / pilots, float(np.median(named)))


def _inconclusive(
    cell: Cell, drop: float, margin: float, wanted: int, level: float, rng: np.random.Generator
) -> Iterator[Samples]:
    while wanted:
        drawn = draw(cell, drop, 200, rng)
        above, below = decisions(drawn, -margin, level)
        for row in np.flatnonzero(~(above | below))[:wanted]:
            yield Samples(drawn.differences[row : row + 1], drawn.sizes)
            wanted -= 1


def clusters_of(drawn: Samples) -> list[str] | None:
    """The cluster of each question of a sample."""
    if drawn.sizes is None:
        return None
    return [str(group) for group, size in enumerate(drawn.sizes.tolist()) for _ in range(size)]
