"""The sweep on arrays: every figure equals the measures of the fused list."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallbench.evaluation.match import from_arrays
from recallbench.measures import compute_all, parse_measure
from recallbench.sweeps.score import group_sums, sweep
from recallstack.ranking.candidates import Candidates
from recallstack.ranking.fusion import Fusion, Weights, fuse
from recallstack.ranking.kernels.counting import fast_available, prepare

ENGINES = [False, pytest.param(True, marks=pytest.mark.skipif(not fast_available(), reason="numba is off"))]
NAMES = "nDCG@5 nDCG R@3 P@4 Success@2 RR RR@2 AP AP@4 AllR@6 Success(rel=2)@3 R(rel=1)@3 Rprec Judged@5"
MEASURES = [parse_measure(name) for name in [*NAMES.split(), "nDCG(dcg='exp-log2')@4"]]


def random_batch(rng, questions=7, rows=12, labels=4):
    """Three channels with ties, some lists empty; grades 0 to 3, some questions without a relevant row."""
    channels = {}
    for name in ("keyword", "vector", "bm25"):
        one = []
        for _ in range(questions):
            scores = np.sort(rng.integers(0, 4, rng.integers(0, 9)) / 4)[::-1]
            one.append(list(zip(rng.permutation(rows)[: len(scores)].tolist(), scores.tolist(), strict=True)))
        channels[name] = Candidates.from_lists(one)
    wanted = np.array([rng.permutation(rows + 2)[:labels] for _ in range(questions)], np.int32)
    grades = rng.integers(-1, 4, wanted.shape).astype(np.int16)
    grades[0] = np.minimum(grades[0], 0)
    return channels, np.where(grades >= 0, wanted, -1).astype(np.int32), grades


RECIPES = [
    *((Fusion("rrf", k=k), pool) for k in (1, 60) for pool in (2, 8)),
    (Fusion("rrf", weighted=True, weights=Weights(vector=0, bm25=1)), 8),
    (Fusion("rrf", like_override=True), 5),
    (Fusion("minmax", weights=Weights(0.3, 0.3, 0.3)), 8),
    (Fusion("blend", "hybrid"), 6),
    (Fusion("blend"), 6),
    (Fusion("rrf", "keyword"), 6),
]


@pytest.mark.parametrize("fast", ENGINES)
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([None, 3, 10]), st.sampled_from([1, 2]))
def test_figures_equal_the_measures_of_the_fused_list(fast, seed, limit, rel):
    channels, labels, grades = random_batch(np.random.default_rng(seed))
    prepared = prepare(channels, labels)
    options = {"limit": limit, "default_rel": rel, "fast": fast}
    values = sweep(prepared, grades, RECIPES, MEASURES, per_question=True, **options)
    means = sweep(prepared, grades, RECIPES, MEASURES, **options)
    assert values.shape == (len(RECIPES), len(MEASURES), len(labels))
    for (fusion, pool), one, mean in zip(RECIPES, values, means, strict=True):
        rows = fuse({name: c.head(pool) for name, c in channels.items()}, fusion, limit or 100)
        ranked = from_arrays(labels, grades, rows.ids, default_rel=rel)
        expected = compute_all(MEASURES, ranked)
        np.testing.assert_allclose(one, expected, rtol=0, atol=1e-12)
        for m, measure in enumerate(MEASURES):
            counts = measure.counts(ranked)
            assert mean[m] == pytest.approx(expected[m][counts].mean() if counts.any() else np.nan, nan_ok=True)


@pytest.mark.parametrize("fast", ENGINES)
def test_groups_add_up_to_the_whole(fast):
    channels, labels, grades = random_batch(np.random.default_rng(3), questions=20)
    prepared = prepare(channels, labels)
    groups = np.arange(20) % 3 * 2  # group 1 and 3 hold no question
    sums, counted = group_sums(prepared, grades, RECIPES, MEASURES, groups, fast=fast)
    values = sweep(prepared, grades, RECIPES, MEASURES, per_question=True, fast=fast)
    assert sums.shape == counted.shape == (len(RECIPES), len(MEASURES), 5)
    for group in range(5):
        np.testing.assert_allclose(sums[:, :, group], values[:, :, groups == group].sum(axis=2), atol=1e-12)
    assert not counted[:, :, [1, 3]].any()


def test_nothing_that_counts_gives_no_mean():
    channels = {"vector": Candidates.from_lists([[(0, 1.0)]])}
    prepared = prepare(channels, np.array([[0]], np.int32))
    measures = [parse_measure("R@5")]
    assert np.isnan(sweep(prepared, np.array([[0]], np.int16), [(Fusion(), 5)], measures)).all()


def test_no_question_gives_no_mean():
    prepared = prepare({"vector": Candidates.empty(0)}, np.empty((0, 1), np.int32))
    grades = np.empty((0, 1), np.int16)
    assert np.isnan(sweep(prepared, grades, [(Fusion(), 5)], MEASURES)).shape == (1, len(MEASURES))
    assert sweep(prepared, grades, [(Fusion(), 5)], MEASURES, per_question=True).shape == (1, len(MEASURES), 0)


def test_grades_must_be_of_the_prepared_labels():
    prepared = prepare({"vector": Candidates.empty(1)}, np.zeros((1, 2), np.int32))
    with pytest.raises(ValueError, match="prepared labels"):
        sweep(prepared, np.zeros((1, 1), np.int16), [(Fusion(), 5)], MEASURES)
