"""Paired statistics against SciPy, statsmodels, and (extra `peers`) ranx and PyTerrier, on the same input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.evaluation.evaluate import evaluate
from recallbench.measures import parse_measures
from recallbench.statistics.intervals import cluster_intervals, mean_interval
from recallbench.statistics.paired import bootstrap_interval, compare, holm, questions_needed, randomization_p, units_of
from recallbench.systems.base import SystemRun
from recallstack.ranking.rows import Corpus, Memory


def values(seed: int, count: int = 128) -> tuple[np.ndarray, np.ndarray]:
    """Two systems' measures, most questions the same, the second a little better.

    Multiples of 1/8, whose sums are exact: ranx takes no care of sums that are equal but for rounding.
    """
    rng = np.random.default_rng(seed)
    one = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], count)
    moved = rng.random(count) < 0.3
    return one, np.where(moved, np.clip(one + rng.choice([-0.25, 0.125, 0.375], count), 0, 1), one)


def reaches_zero(differences: np.ndarray, p: float) -> None:
    """The p-value of a t test is the level at which the interval of the differences just reaches 0."""
    found = mean_interval(differences, level=1 - p)
    assert min(abs(found.low), abs(found.high)) == pytest.approx(0, abs=1e-9)


# SciPy.


@pytest.mark.parametrize("seed", range(4))
def test_t_is_scipys(seed: int) -> None:
    one, two = values(seed)
    reaches_zero(two - one, float(stats.ttest_rel(two, one).pvalue))


@pytest.mark.parametrize("seed", range(4))
def test_the_exact_randomization_test_is_scipys_of_the_two_samples(seed: int) -> None:
    """Ours flips signs of differences; SciPy exchanges the two values of each question, all 2^n ways."""
    one, two = values(seed, 12)
    two[0] = one[0] + 0.125  # at least one differs

    def difference(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
        return a.mean(axis=axis) - b.mean(axis=axis)

    theirs = stats.permutation_test(
        (two, one), difference, permutation_type="samples", vectorized=True, n_resamples=np.inf
    )
    assert randomization_p(units_of(two - one)) == pytest.approx(theirs.pvalue)


def test_the_bootstrap_is_scipys_within_monte_carlo_error() -> None:
    one, two = values(1)
    theirs = stats.bootstrap((two - one,), np.mean, method="percentile", n_resamples=9_999, rng=1).confidence_interval
    found = bootstrap_interval(units_of(two - one), seed=2)
    error = stats.sem(two - one)
    assert found == pytest.approx((theirs.low, theirs.high), abs=0.1 * error)


# statsmodels.


@pytest.mark.parametrize("groups", [3, 10, 30])
def test_the_cluster_robust_interval_is_statsmodels(groups: int) -> None:
    """A regression on a constant, errors by cluster with the small-sample factor G/(G-1), t with G - 1."""
    ols: Any = pytest.importorskip("statsmodels.regression.linear_model").OLS
    one, two = values(groups)
    rng = np.random.default_rng(groups)
    place = np.concatenate([np.arange(groups), rng.integers(0, groups, len(one) - groups)])  # uneven, none empty
    change = two - one + rng.normal(0, 0.1, groups)[place]
    fitted = ols(change, np.ones(len(change))).fit(cov_type="cluster", cov_kwds={"groups": place}, use_t=True)
    found = mean_interval(change, [str(name) for name in place])
    assert (found.low, found.high) == pytest.approx(tuple(fitted.conf_int()[0]), rel=1e-9)
    assert found.mean == pytest.approx(float(fitted.params[0]))
    counted = np.bincount(place)
    sums = np.bincount(place, weights=change)
    mean, half = cluster_intervals(sums[None], counted)
    assert (mean[0] - half[0], mean[0] + half[0]) == pytest.approx(tuple(fitted.conf_int()[0]), rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_holm_is_statsmodels(seed: int) -> None:
    multipletests = pytest.importorskip("statsmodels.stats.multitest").multipletests
    p_values = np.random.default_rng(seed).random(12) ** 3
    p_values[5] = p_values[3]  # equals
    assert holm(p_values.tolist()) == pytest.approx(multipletests(p_values, method="holm")[1])


@pytest.mark.parametrize("effect", [0.1, 0.2, 0.4])
def test_questions_needed_are_statsmodels_of_the_t_test(effect: float) -> None:
    """Theirs is exact (noncentral t), ours the usual approximation: within two questions or 1 %."""
    power = pytest.importorskip("statsmodels.stats.power").TTestPower()
    data = np.random.default_rng(3).normal(0, 1, 400)
    data = (data - data.mean()) / data.std(ddof=1)
    wanted = power.solve_power(effect_size=effect, power=0.8, alpha=0.05)
    assert questions_needed(mean_interval(data), effect) == pytest.approx(wanted, rel=0.01, abs=2)


# ranx.


@pytest.mark.parametrize("seed", range(4))
def test_t_is_ranxs(seed: int) -> None:
    ranx = pytest.importorskip("ranx.statistical_tests", reason="ranx is in the extra peers")
    one, two = values(seed)
    reaches_zero(two - one, float(ranx.paired_student_t_test(one, two)[0]))


@pytest.mark.parametrize("seed", range(4))
def test_the_randomization_test_is_ranxs_within_monte_carlo_error(seed: int) -> None:
    ranx = pytest.importorskip("ranx.statistical_tests", reason="ranx is in the extra peers")
    one, two = values(seed)
    theirs, _ = ranx.fisher_randomization_test(one, two, n_permutations=20_000, random_seed=1)
    ours = randomization_p(units_of(two - one), seed=1, resamples=20_000)
    error = np.sqrt(max(ours * (1 - ours), 1e-4) / 20_000)
    assert ours == pytest.approx(theirs, abs=6 * error)


# PyTerrier.


def test_an_experiment_is_pyterriers() -> None:
    """Three systems over sixty questions: means, wins and losses, p of the t test, and Holm's correction."""
    pt = pytest.importorskip("pyterrier", reason="PyTerrier is in the extra peers")
    import pandas as pd

    count, rows = 60, 6
    rng = np.random.default_rng(4)
    ranks = rng.integers(0, rows, (3, count))
    lists = [[[f"d{q}" if k == rank else f"x{k}" for k in range(rows)] for q, rank in enumerate(one)] for one in ranks]
    frames = [
        pd.DataFrame(
            [
                {"qid": f"q{q}", "docno": name, "rank": k, "score": -float(k)}
                for q, names in enumerate(one)
                for k, name in enumerate(names)
            ]
        )
        for one in lists
    ]
    topics = pd.DataFrame([{"qid": f"q{q}", "query": "x"} for q in range(count)])
    qrels = pd.DataFrame([{"qid": f"q{q}", "docno": f"d{q}", "label": 1} for q in range(count)])
    theirs = pt.Experiment(frames, topics, qrels, ["recip_rank"], baseline=0, correction="holm", names=["a", "b", "c"])

    memories = [Memory(id=name) for name in [f"d{q}" for q in range(count)] + [f"x{k}" for k in range(rows)]]
    questions = tuple(Question(id=f"q{q}", text="x", relevant={f"d{q}": 1}) for q in range(count))
    labelled = LabelledSet(SetInfo("t", default_rel=1), {"main": Corpus.of("main", memories)}, questions)
    scores = tuple(tuple(-float(k) for k in range(rows)) for _ in range(count))
    full, none = np.full(count, rows, np.int32), np.zeros(count, np.bool_)
    runs = [
        SystemRun(name, {}, tuple(map(tuple, one)), scores, full, none) for name, one in zip("abc", lists, strict=True)
    ]
    ours = evaluate(labelled, runs, parse_measures("RR"), rows).values[:, 0]
    assert ours.mean(axis=1) == pytest.approx(theirs["recip_rank"].to_numpy())
    for place in (1, 2):
        found = compare(ours[place] - ours[0])
        assert (found.better, found.worse) == tuple(theirs.loc[place, ["recip_rank +", "recip_rank -"]])
        reaches_zero(ours[place] - ours[0], float(theirs.loc[place, "recip_rank p-value"]))
    p_values = theirs.loc[1:, "recip_rank p-value"].tolist()
    assert holm(p_values) == pytest.approx(theirs.loc[1:, "recip_rank p-value corrected"].tolist())


def test_identical_systems_have_no_nan_where_others_do() -> None:
    """SciPy's paired t is NaN for identical systems; ours are 0 and 1 throughout."""
    one, _ = values(0)
    assert np.isnan(stats.ttest_rel(one, one).pvalue)
    for clusters in (None, ["a", "b"] * 64, ["a"] * 128):
        found = compare(one - one, clusters)
        numbers = [found.interval.low, found.interval.high, *found.bootstrap, found.effect, found.detectable]
        assert numbers == [0] * 6
        assert found.p == 1
