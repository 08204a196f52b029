"""Paired statistics against scipy, enumeration and hand computations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from recallbench.statistics.intervals import mean_interval
from recallbench.statistics.paired import (
    bootstrap_interval,
    compare,
    detectable_difference,
    holm,
    questions_needed,
    randomization_p,
    units_of,
)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
@settings(deadline=None, max_examples=60)
def test_the_exact_test_is_the_enumeration_of_sign_flips(values: list[int]) -> None:
    data = np.array(values, dtype=np.float64)
    observed = abs(data.sum())
    flips = [
        abs(sum(s * v for s, v in zip(signs, values, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(values))
    ]
    want = sum(one >= observed for one in flips) / len(flips)
    assert randomization_p(units_of(data)) == pytest.approx(want)


def test_monte_carlo_is_near_the_exact_value_and_seeded() -> None:
    # 20 differences of +1 and 6 of -1: a sign test. Exact: binomial, two-sided.
    data = np.array([1.0] * 20 + [-1.0] * 6)
    exact = stats.binomtest(20, 26).pvalue
    got = randomization_p(units_of(data), seed=3)
    assert got == pytest.approx(exact, abs=0.004)
    assert got == randomization_p(units_of(data), seed=3)


def test_whole_clusters_are_flipped() -> None:
    # Four clusters, all sums above 0: 2 of 16 sign patterns are as extreme.
    data = np.array([0.5, 0.5, 1.0, 1.0, 0.25, 0.75, 1.0, 0.0])
    assert randomization_p(units_of(data, list("aabbccdd"))) == pytest.approx(2 / 16)


def test_identical_systems_differ_by_nothing() -> None:
    got = compare(np.zeros(50), ["a", "b"] * 25)
    assert (got.interval.mean, got.interval.low, got.interval.high, got.p) == (0, 0, 0, 1)
    assert got.bootstrap == (0, 0)
    assert (got.effect, got.detectable, got.same) == (0, 0, 50)


def test_holm_by_hand() -> None:
    # Sorted 0.01, 0.03, 0.04: 3 * 0.01 = 0.03; 2 * 0.03 = 0.06; max(0.06, 1 * 0.04) = 0.06.
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_bootstrap_is_near_the_normal_interval_on_many_questions() -> None:
    data = np.random.default_rng(5).normal(0.1, 1.0, 4_000)
    low, high = bootstrap_interval(units_of(data), seed=1)
    error = data.std(ddof=1) / math.sqrt(len(data))
    assert low == pytest.approx(data.mean() - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(data.mean() + 1.96 * error, abs=0.1 * error)


def test_the_cluster_bootstrap_resamples_clusters() -> None:
    # Two clusters with means 0 and 1 (10 questions each): a resample has mean 0, 0.5 or 1.
    data = np.array([0.0] * 10 + [1.0] * 10)
    assert bootstrap_interval(units_of(data, ["a"] * 10 + ["b"] * 10)) == (0.0, 1.0)


def test_detectable_difference_by_the_noncentral_t() -> None:
    """The approximation against the exact power of the t test at that difference (noncentral t)."""
    data = np.random.default_rng(1).normal(0, 0.3, 200)
    interval = mean_interval(data)
    wanted = detectable_difference(interval)
    error = data.std(ddof=1) / math.sqrt(200)
    power = 1 - stats.nct.cdf(stats.t.ppf(0.975, 199), 199, wanted / error)
    assert power == pytest.approx(0.8, abs=0.005)


def test_questions_needed_scales_with_the_square_of_the_distance() -> None:
    interval = mean_interval(np.random.default_rng(2).normal(0, 0.3, 400))
    near, far = questions_needed(interval, 0.01), questions_needed(interval, 0.02)
    assert near / far == pytest.approx(4, rel=0.01)
    # (1.96 + 0.8416)^2 * sd^2 / 0.01^2 for many questions.
    spread = (interval.high - interval.mean) / stats.t.ppf(0.975, 399) * 20
    assert near == pytest.approx(2.8016**2 * spread**2 / 0.01**2, rel=0.01)
    assert questions_needed(mean_interval(np.zeros(9)), 0.1) == 0
    assert questions_needed(interval, 0) == -1
