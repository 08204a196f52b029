"""Intervals against scipy and hand computations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recallbench.statistics.intervals import mean_interval


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=40))
def test_without_clusters_it_is_students_interval(values: list[float]) -> None:
    data = np.array(values)
    got = mean_interval(data)
    if np.ptp(data) == 0:
        assert (got.low, got.high) == (data[0], data[0])
        return
    want = stats.ttest_1samp(data, 0.0).confidence_interval(0.95)
    assert got.mean == pytest.approx(data.mean())
    assert got.low == pytest.approx(want.low, abs=1e-9)
    assert got.high == pytest.approx(want.high, abs=1e-9)
    assert (got.n, got.clusters) == (len(values), 0)


def test_clusters_by_hand() -> None:
    # Mean 0.5; residual sums a: +1, b: -0.5, c: -0.5; sum of squares 1.5; G/(G-1) = 1.5;
    # standard error sqrt(2.25)/6 = 0.25; t(0.975, 2) = 4.302653.
    values = np.array([1.0, 1.0, 0.0, 0.5, 0.5, 0.0])
    got = mean_interval(values, ["a", "a", "b", "b", "c", "c"])
    assert got.mean == pytest.approx(0.5)
    assert got.high - got.mean == pytest.approx(4.302652729911275 * 0.25, abs=1e-9)
    assert got.clusters == 3


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_clusters_of_one_question_are_students_interval(values: list[float]) -> None:
    data = np.array(values)
    plain, own = mean_interval(data), mean_interval(data, [str(i) for i in range(len(values))])
    assert own.low == pytest.approx(plain.low, abs=1e-9)
    assert own.high == pytest.approx(plain.high, abs=1e-9)


def test_all_equal_has_no_width_and_one_value_no_interval() -> None:
    same = mean_interval(np.zeros(7))
    assert (same.mean, same.low, same.high) == (0, 0, 0)
    assert mean_interval(np.array([0.5]), ["a"]).high == 0.5
    assert math.isnan(mean_interval(np.array([])).mean)


def test_of_one_cluster_the_interval_is_over_its_questions() -> None:
    """0 and 1: standard error 0.5, t(1, 0.975) = 12.7062."""
    one = mean_interval(np.array([0.0, 1.0]), ["a", "a"])
    assert (one.mean, one.clusters) == (0.5, 1)
    assert one.high == pytest.approx(0.5 + 12.706204736 * 0.5, abs=1e-6)


def test_a_question_without_a_cluster_turns_clusters_off() -> None:
    assert mean_interval(np.array([0.0, 1.0, 1.0]), ["a", None, "b"]).clusters == 0
