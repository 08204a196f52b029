"""The verdict's interval against SciPy, against Tango's closed form, and against its own vectorised twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from recallbench.gate.truth import Cell, decisions, draw
from recallbench.gate.truth_settle import clusters_of
from recallbench.statistics.intervals import mean_interval
from recallbench.statistics.paired import units_of
from recallbench.statistics.verdict_interval import (
    FEW_QUESTIONS,
    Units,
    _Score,
    _untransformed,
    ends,
    standard_error,
    transformed,
    verdict_interval,
)

CHANGES = st.sampled_from([-1.0, -0.63, -0.5, -0.2, 0.0, 0.0, 0.0, 0.13, 0.37, 0.5, 1.0])
SAMPLES = st.lists(CHANGES, min_size=FEW_QUESTIONS, max_size=60)


def single(data: np.ndarray) -> Units:
    return Units(data, np.ones(len(data)))


@given(SAMPLES)
@settings(deadline=None)
def test_it_holds_scipys_interval(values: list[float]) -> None:
    data = np.array(values)
    got = verdict_interval(data)
    if np.ptp(data) == 0:
        return
    want = stats.ttest_1samp(data, 0.0).confidence_interval(0.95)
    assert got.low <= want.low + 1e-12
    assert got.high >= want.high - 1e-12
    assert ends(single(data), 0.95)[0] == pytest.approx((want.low, want.high), abs=1e-12)
    assert got.error == pytest.approx(stats.sem(data))


@given(SAMPLES)
@settings(deadline=None)
def test_up_and_down_are_the_same(values: list[float]) -> None:
    """The interval of the negated changes is the negated interval."""
    data = np.array(values)
    one, other = verdict_interval(data), verdict_interval(-data)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-9)


def test_on_dense_symmetric_changes_it_is_scipys_interval() -> None:
    half = np.random.default_rng(4).normal(0, 0.3, 400)
    data = np.concatenate([half, -half]) + 0.01
    got, want = verdict_interval(data), stats.ttest_1samp(data, 0.0).confidence_interval(0.95)
    width = want.high - want.low
    assert got.low == pytest.approx(want.low, abs=0.005 * width)
    assert got.high == pytest.approx(want.high, abs=0.005 * width)


def tango(up: int, down: int, count: int, difference: float) -> float:
    """Tango 1998, Statistics in Medicine 17, 891-908: the score statistic of a difference of paired proportions.

    up, down: the discordant pairs. The closed form: no weights, no root search.
    """
    a = 2 * count
    b = -up - down + (2 * count - up + down) * difference
    c = -down * difference * (1 - difference)
    rest = (math.sqrt(b * b - 4 * a * c) - b) / (2 * a)
    return (up - down - count * difference) / math.sqrt(count * (2 * rest + difference * (1 - difference)))


AWAY_FROM_0 = st.floats(-0.9, 0.9).filter(lambda one: abs(one) > 1e-3)


@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 200), AWAY_FROM_0)
@settings(deadline=None)
def test_of_changes_of_one_the_score_is_tangos(up: int, down: int, same: int, difference: float) -> None:
    """Ours divides by n - 1 where Tango divides by n."""
    count = up + down + same
    data = np.array([1.0] * up + [-1.0] * down + [0.0] * same)
    got = _Score(single(data)).statistic(difference) * math.sqrt(count / (count - 1))
    assert got == pytest.approx(tango(up, down, count, difference), rel=1e-6, abs=1e-9)


def test_the_ends_of_the_score_are_where_it_reaches_the_quantile() -> None:
    data = np.array([1.0] * 3 + [-1.0] * 9 + [0.0] * 88)
    score, quantile = _Score(single(data)), 1.98
    for side in (-1, 1):
        end = score.end(quantile, side)
        assert -side * score.statistic(end) == pytest.approx(quantile, abs=1e-6)


@given(st.floats(-6, 6), st.floats(-0.6, 0.6))
def test_halls_transformation_is_undone(t: float, skew: float) -> None:
    assert _untransformed(float(transformed(np.array(t), skew)), skew) == pytest.approx(t, abs=1e-6)


def test_halls_transformation_by_hand() -> None:
    # t = 2, skew 0.3: 2 + 0.1 * 4 + 0.09 / 27 * 8 + 0.05 = 2.476667.
    assert float(transformed(np.array(2.0), 0.3)) == pytest.approx(2.0 + 0.4 + 0.0266666667 + 0.05)


def test_few_large_drops_reach_further_down_than_t() -> None:
    """Five drops of 1 among 300: the corrections move the low end, where t alone is too sure, and not the high end."""
    data = np.array([-1.0] * 5 + [0.0] * 295)
    got, t = verdict_interval(data), mean_interval(data)
    assert got.low < t.low - 0.2 * (t.mean - t.low)
    assert got.high == pytest.approx(t.high)


def test_clusters_widen_and_never_narrow() -> None:
    rng = np.random.default_rng(6)
    shift = np.repeat(rng.normal(0, 0.3, 20), 10)  # what a cluster has in common
    data = shift + rng.normal(0, 0.1, 200)
    clusters = [str(place // 10) for place in range(200)]
    together, alone = verdict_interval(data, clusters), verdict_interval(data)
    robust = mean_interval(data, clusters)
    assert together.low <= min(robust.low, alone.low)
    assert together.high >= max(robust.high, alone.high)
    assert together.error == pytest.approx(max(standard_error(units_of(data, clusters)), stats.sem(data)))
    # Within a cluster the changes cancel: the robust error is almost 0, and is not believed.
    cancelling = np.tile([0.5, -0.5], 100)
    assert mean_interval(cancelling, clusters).high == pytest.approx(0, abs=1e-12)
    assert verdict_interval(cancelling, clusters).high == pytest.approx(verdict_interval(cancelling).high)


def test_no_change_is_certain_and_a_handful_is_not() -> None:
    same = verdict_interval(np.zeros(5), ["a"] * 5)
    assert (same.mean, same.low, same.high, same.error) == (0, 0, 0, 0)
    few = verdict_interval(np.array([-1.0] * (FEW_QUESTIONS - 1)))
    assert (few.mean, few.low, few.high) == (-1, -np.inf, np.inf)
    none = verdict_interval(np.array([]))
    assert math.isnan(none.mean)
    assert none.low == -np.inf


@pytest.mark.parametrize(
    "cell",
    [
        Cell(100, 0.05, 0, "graded"),
        Cell(300, 0.02, 0, "binary"),
        Cell(300, 0.3, 10, "graded"),
        Cell(120, 0.1, 30, "binary"),
    ],
    ids=str,
)
def test_the_vectorised_decisions_are_those_of_the_interval(cell: Cell) -> None:
    """The simulation decides by tests, the gate by interval ends; at several true drops and margins they agree."""
    rng = np.random.default_rng(12)
    for drop, margin in ((0.0, 0.02), (0.03, 0.03), (0.05, 0.02)):
        drawn = draw(cell, drop, 25, rng)
        above, below = decisions(drawn, -margin)
        for row, change in enumerate(drawn.differences):
            got = verdict_interval(change, clusters_of(drawn))
            assert (got.low > -margin, got.high < -margin) == (above[row], below[row])


def test_the_simulated_changes_have_the_mean_and_the_share_that_they_say() -> None:
    """20,000 questions a sample: the mean is within four standard errors of the drop; 5 % change."""
    for clusters in (0, 10):
        drawn = draw(Cell(20_000, 0.05, clusters, "graded"), 0.01, 40, np.random.default_rng(2))
        means = drawn.differences.mean(axis=1)
        assert means.mean() == pytest.approx(-0.01, abs=4 * means.std() / math.sqrt(40))
        assert (drawn.differences != 0).mean() == pytest.approx(0.05, abs=0.01)
