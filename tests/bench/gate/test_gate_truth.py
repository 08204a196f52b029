"""How often a gate is right, on simulated changes whose true size is known. `python -m recallbench.gate.truth_table`
prints the same for docs/gate.md, with more samples."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recallbench.gate.truth import Cell, decisions, detectable, draw
from recallbench.gate.truth_settle import clusters_of, settled
from recallbench.gate.truth_table import DROPS, LISTED, Row, row
from recallbench.statistics.paired import randomization_p, units_of

pytestmark = pytest.mark.slow
NOMINAL = 0.025
"""Of wrong decisions at the margin, on either side."""


def above_by_chance(rate: float, samples: int) -> float:
    """What a share whose true value is `rate` exceeds once in 700 times (three standard errors)."""
    return rate + 3 * math.sqrt(rate * (1 - rate) / samples)


def samples_of(cell: Cell) -> int:
    return 4_000 if cell.questions <= 300 else 1_500


@pytest.mark.parametrize("cell", LISTED, ids=str)
def test_the_truth_table(cell: Cell) -> None:
    found: Row = row(cell, samples_of(cell))
    most = above_by_chance(NOMINAL, found.samples)
    assert found.passed[1.0] <= most
    assert found.failed[1.0] <= most
    for drop in DROPS:
        if drop < 1:
            assert found.failed[drop] <= most
        if drop > 1:
            assert found.passed[drop] <= most
    assert found.covered >= 0.93
    # A gate that never decides would pass all of the above.
    assert found.passed[0.0] >= 0.5
    assert found.failed[2.0] >= 0.35


def test_students_t_alone_would_not_do() -> None:
    """Why the verdict is not read from t: with 15 changes, nearly all drops, it passes far too often."""
    cell = Cell(300, 0.05, 0, "graded")
    found = row(cell, 2_000)
    assert found.t_passed > 2 * NOMINAL
    assert found.passed[1.0] <= above_by_chance(NOMINAL, 2_000)


@pytest.mark.parametrize(
    "cell",
    [
        Cell(300, 0.05, 0, "graded"),
        Cell(300, 0.05, 30, "binary"),
        Cell(300, 0.3, 10, "graded"),
        Cell(2000, 0.05, 0, "binary"),
    ],
    ids=str,
)
@pytest.mark.parametrize("twice", [False, True], ids=["nothing changed", "twice the margin"])
def test_the_named_number_of_questions_settles_it(cell: Cell, twice: bool) -> None:
    found = settled(cell, detectable(cell), twice, 250, seed=3)
    assert found.decided >= 0.8
    assert found.wrongly <= 0.02
    assert found.named > cell.questions / 2


@pytest.mark.parametrize("cell", [Cell(100, 0.1, 0, "graded"), Cell(300, 0.3, 10, "binary")], ids=str)
def test_the_randomization_test_keeps_its_level(cell: Cell) -> None:
    """Nothing has changed in truth: p is at most 0.05 in at most 5 % of samples. 499 resamples, 1,000 samples."""
    rng = np.random.default_rng(8)
    drawn = draw(cell, 0.0, 1_000, rng)
    clusters = clusters_of(drawn)
    found = [randomization_p(units_of(change, clusters), seed=1, resamples=499) for change in drawn.differences]
    assert np.mean(np.array(found) <= 0.05) <= above_by_chance(0.05, 1_000)


@pytest.mark.parametrize("cell", [Cell(300, 0.05, 0, "binary"), Cell(300, 0.3, 30, "graded")], ids=str)
def test_significantly_worse_is_rarely_said_of_no_change(cell: Cell) -> None:
    _, below = decisions(draw(cell, 0.0, 4_000, np.random.default_rng(9)), 0.0)
    assert below.mean() <= above_by_chance(NOMINAL, 4_000)
