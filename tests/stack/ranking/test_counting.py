"""Counting against sorting: `fuse` is the oracle, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallstack.ranking.candidates import Candidates
from recallstack.ranking.fusion import Fusion, Weights, fuse
from recallstack.ranking.kernels.counting import (
    fast_available,
    fused_lengths,
    label_ranks,
    many_ranks,
    prepare,
    rank_blocks,
)
from recallstack.ranking.specs import CHANNEL_ORDER

ENGINES = [False, pytest.param(True, marks=pytest.mark.skipif(not fast_available(), reason="numba is off"))]
SMALL = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@st.composite
def lists(draw, questions):
    """One channel: short lists over eight rows, few distinct scores, some below 0, best first."""
    out = []
    for _ in range(questions):
        rows = draw(st.permutations(range(8)))[: draw(st.integers(0, 8))]
        scores = sorted((draw(st.integers(-1, 3)) / 4 for _ in rows), reverse=True)
        out.append(list(zip(rows, scores, strict=True)))
    return Candidates.from_lists(out)


@st.composite
def batches(draw):
    """Channels in any order, and labels of which some are in no list and some are padding."""
    questions = draw(st.integers(1, 4))
    names = draw(st.lists(st.sampled_from(CHANNEL_ORDER), min_size=1, max_size=5, unique=True))
    channels = {name: draw(lists(questions)) for name in names}
    labels = np.full((questions, draw(st.integers(0, 4))), -1, np.int32)
    for row in labels:
        found = draw(st.lists(st.integers(0, 9), max_size=len(row), unique=True))
        row[draw(st.permutations(range(len(row))))[: len(found)]] = found
    return channels, labels


FUSIONS = st.builds(
    Fusion,
    method=st.sampled_from(["single", "rrf", "minmax", "blend"]),
    mode=st.sampled_from(["auto", "hybrid", "vector", "keyword"]),
    k=st.sampled_from([1, 10, 60, 2.5]),
    weighted=st.booleans(),
    weights=st.builds(Weights, **dict.fromkeys(CHANNEL_ORDER, SMALL)),
    like_override=st.booleans(),
)
POOLED = st.tuples(FUSIONS, st.integers(1, 10))
LIMITS = st.one_of(st.none(), st.integers(1, 12))


def looked_up(channels, labels, fusion, pool, limit):
    """Ranks and lengths read off the list that `fuse` builds."""
    cut = {name: one.head(pool) for name, one in channels.items()}
    whole = sum(one.width for one in channels.values()) or 1
    rows = fuse(cut, fusion, whole if limit is None else limit)
    ranks = np.zeros(labels.shape, np.int32)
    for q, slot in np.argwhere(labels >= 0):
        where = np.flatnonzero(rows.ids[q] == labels[q, slot])
        ranks[q, slot] = where[0] + 1 if len(where) else 0
    return ranks, rows.lengths


@pytest.mark.parametrize("fast", ENGINES)
@settings(max_examples=300, deadline=None)
@given(batches(), st.lists(POOLED, min_size=1, max_size=6), LIMITS)
def test_equals_the_ranks_in_the_fused_list(fast, batch, recipes, limit):
    channels, labels = batch
    prepared = prepare(channels, labels)
    got = many_ranks(prepared, recipes, limit, fast=fast)
    assert got.shape == (len(recipes), *labels.shape)
    assert got.dtype == np.int32
    for (fusion, pool), ranks in zip(recipes, got, strict=True):
        expected, lengths = looked_up(channels, labels, fusion, pool, limit)
        np.testing.assert_array_equal(ranks, expected, err_msg=f"{fusion} pool {pool} limit {limit}")
        np.testing.assert_array_equal(fused_lengths(prepared, fusion, pool, limit), lengths)


@pytest.mark.skipif(not fast_available(), reason="numba is off")
@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["rrf", "minmax", "blend"]), st.integers(1, 40))
def test_compiled_and_plain_kernels_agree_on_long_lists(seed, method, pool):
    """More recipes than one block of lanes, real-valued and rounded scores (many ties)."""
    rng = np.random.default_rng(seed)
    channels = {}
    for name in ("keyword", "vector", "bm25"):
        scores = np.round(rng.standard_normal((5, 60)), int(rng.integers(1, 8)))
        order = np.argsort(-scores, axis=1, kind="stable")[:, :40].astype(np.int32)
        channels[name] = Candidates(order, np.take_along_axis(scores, order, axis=1))
    labels = rng.integers(0, 60, (5, 3)).astype(np.int32)
    labels[:, 1:][labels[:, 1:] == labels[:, :1]] = -1
    labels[:, 2][labels[:, 2] == labels[:, 1]] = -1
    weights = [Weights(*values) for values in rng.choice([0, 0.3, 1 / 3, 0.7, 1], (70, 5))]
    recipes = [(Fusion(method, "hybrid", k=k, weighted=bool(k % 2), weights=w), pool) for k, w in enumerate(weights, 1)]
    prepared = prepare(channels, labels)
    got = many_ranks(prepared, recipes, fast=True)
    np.testing.assert_array_equal(got, many_ranks(prepared, recipes, fast=False))
    np.testing.assert_array_equal(got[-1], looked_up(channels, labels, *recipes[-1], None)[0])


@pytest.mark.parametrize("fast", ENGINES)
@settings(max_examples=60, deadline=None)
@given(batches(), st.lists(POOLED, min_size=1, max_size=4), LIMITS)
def test_a_batch_equals_its_single_questions(fast, batch, recipes, limit):
    channels, labels = batch
    whole = many_ranks(prepare(channels, labels), recipes, limit, fast=fast)
    for q in range(len(labels)):
        one = {name: Candidates(c.ids[q : q + 1], c.scores[q : q + 1]) for name, c in channels.items()}
        alone = many_ranks(prepare(one, labels[q : q + 1]), recipes, limit, fast=fast)
        np.testing.assert_array_equal(alone[:, 0], whole[:, q])


@settings(max_examples=60, deadline=None)
@given(batches(), FUSIONS.filter(lambda f: f.method != "single"), st.integers(1, 10), LIMITS)
def test_a_channel_that_ranks_nothing_changes_nothing(batch, fusion, pool, limit):
    channels, labels = batch
    more = {**channels}
    for name in CHANNEL_ORDER:
        more.setdefault(name, Candidates.empty(len(labels)))
    np.testing.assert_array_equal(
        label_ranks(prepare(more, labels), fusion, pool, limit),
        label_ranks(prepare(channels, labels), fusion, pool, limit),
    )


def test_worked_example_of_recall_semantics_section_4():
    """k = 60, limit 3: keyword [k1], vector [a, b], BM25 [b, a]; fixed [a, b, k1], legacy [k1, a, b]."""
    a, b, k1 = 0, 1, 2
    channels = {
        "keyword": Candidates.from_lists([[(k1, 1.0)]]),
        "vector": Candidates.from_lists([[(a, 0.9), (b, 0.8)]]),
        "bm25": Candidates.from_lists([[(b, 7.0), (a, 6.0)]]),
    }
    prepared = prepare(channels, np.array([[a, b, k1]], np.int32))
    assert label_ranks(prepared, Fusion(), 3, 3).tolist() == [[1, 2, 3]]
    assert label_ranks(prepared, Fusion(like_override=True), 3, 3).tolist() == [[2, 3, 1]]
    assert label_ranks(prepared, Fusion(like_override=True), 3, 2).tolist() == [[2, 0, 1]]


def test_blocks_hold_each_recipe_once():
    channels = {"vector": Candidates.from_lists([[(0, 1.0)]]), "bm25": Candidates.from_lists([[(1, 1.0)]])}
    prepared = prepare(channels, np.array([[1]], np.int32))
    recipes = [(Fusion(k=k), 1 + k % 3) for k in range(1, 400)]
    places = [place for block, _ in rank_blocks(prepared, recipes) for place in block]
    assert sorted(places) == list(range(len(recipes)))
    assert max(len(block) for block, _ in rank_blocks(prepared, recipes)) <= 64


def test_the_environment_turns_compiled_kernels_off(monkeypatch):
    monkeypatch.setenv("RECALLBENCH_FAST", "0")
    assert not fast_available()


@pytest.mark.parametrize(("pool", "limit"), [(0, None), (1, 0)])
def test_a_pool_or_limit_below_one_is_refused(pool, limit):
    prepared = prepare({"vector": Candidates.empty(1)}, np.zeros((1, 1), np.int32))
    with pytest.raises(ValueError, match="at least 1"):
        label_ranks(prepared, Fusion(), pool, limit)


def test_lists_and_labels_must_be_of_the_same_questions():
    with pytest.raises(ValueError, match="same questions"):
        prepare({"vector": Candidates.empty(2)}, np.zeros((1, 1), np.int32))
    with pytest.raises(ValueError, match="at least one channel"):
        prepare({}, np.zeros((1, 1), np.int32))
