"""Paired statistics against ranx (extra `perf`) and SciPy on the same per-question values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from recallbench.paired import randomization_p, units_of
from recallbench.stats import mean_interval


def values(seed: int, count: int = 128) -> tuple[np.ndarray, np.ndarray]:
    """Two systems' measures, most questions the same, the second a little better.

    Multiples of 1/8, whose sums are exact: ranx takes no care of sums that are equal but for rounding.
    """
    rng = np.random.default_rng(seed)
    one = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], count)
    moved = rng.random(count) < 0.3
    return one, np.where(moved, np.clip(one + rng.choice([-0.25, 0.125, 0.375], count), 0, 1), one)


@pytest.mark.parametrize("seed", range(4))
def test_t_is_scipys_and_ranxs(seed: int) -> None:
    """The p-value of ttest_rel is the level at which the interval of the differences just reaches 0."""
    one, two = values(seed)
    p = float(stats.ttest_rel(two, one).pvalue)
    found = mean_interval(two - one, level=1 - p)
    assert min(abs(found.low), abs(found.high)) == pytest.approx(0, abs=1e-9)
    ranx = pytest.importorskip("ranx.statistical_tests", reason="ranx is in the extra perf")
    assert ranx.paired_student_t_test(one, two)[0] == pytest.approx(p)


@pytest.mark.parametrize("seed", range(4))
def test_the_randomization_test_is_ranxs_within_monte_carlo_error(seed: int) -> None:
    ranx = pytest.importorskip("ranx.statistical_tests", reason="ranx is in the extra perf")
    one, two = values(seed)
    theirs, _ = ranx.fisher_randomization_test(one, two, n_permutations=20_000, random_seed=1)
    ours = randomization_p(units_of(two - one), seed=1, resamples=20_000)
    error = np.sqrt(max(ours * (1 - ours), 1e-4) / 20_000)
    assert ours == pytest.approx(theirs, abs=6 * error)
