"""Fusion: the known answers, and what must hold for any lists."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import CASES

from recallstack.errors import InputError
from recallstack.ranking.candidates import Candidates
from recallstack.ranking.fusion import Fusion, Weights, fuse
from recallstack.ranking.specs import CHANNEL_ORDER

KNOWN = [json.loads(line) for line in (CASES / "fusion.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", KNOWN, ids=[f"{n}-{one['recipe']}-{one['mode']}" for n, one in enumerate(KNOWN)])
def test_known_answers(case):
    names = sorted({hit["id"] for hits in case["channels"].values() for hit in hits})
    channels = {
        name: Candidates.from_lists([[(names.index(hit["id"]), hit["score"]) for hit in hits]])
        for name, hits in case["channels"].items()
    }
    fusion = Fusion(
        case["recipe"],
        case["mode"],
        k=case.get("k") or 60,
        weights=Weights(**case["weights"]),
        like_override=case["like_override"],
    )
    got = fuse(channels, fusion, case["limit"])
    assert [names[i] for i in got.ids[0] if i >= 0] == case["expected"]


@st.composite
def channel_lists(draw):
    """Lists of one question by channel, best first, few distinct scores."""
    out = {}
    for name in draw(st.lists(st.sampled_from(CHANNEL_ORDER), min_size=1, max_size=5, unique=True)):
        rows = draw(st.permutations(range(8)))[: draw(st.integers(0, 8))]
        scores = sorted((draw(st.integers(0, 4)) / 4 for _ in rows), reverse=True)
        out[name] = list(zip(rows, scores, strict=True))
    return out


FUSIONS = st.builds(
    Fusion,
    method=st.sampled_from(["rrf", "minmax", "blend"]),
    mode=st.sampled_from(["auto", "hybrid", "vector", "keyword"]),
    k=st.sampled_from([1, 10, 60]),
    weighted=st.booleans(),
    weights=st.builds(Weights, **dict.fromkeys(CHANNEL_ORDER, st.sampled_from([0.0, 0.3, 0.5, 1.0]))),
    like_override=st.booleans(),
)
LIMITS = st.integers(1, 12)


def batch_of(lists):
    return {name: Candidates.from_lists([one]) for name, one in lists.items()}


@settings(deadline=None)
@given(channel_lists(), FUSIONS, LIMITS)
def test_a_fused_list_holds_rows_of_the_lists_once_each(lists, fusion, limit):
    rows = [row for row, _ in fuse(batch_of(lists), fusion, limit).to_lists()[0]]
    union = {row for one in lists.values() for row, _ in one}
    assert len(rows) == len(set(rows)) <= limit
    assert set(rows) <= union
    if fusion.mode != "keyword":
        assert len(rows) == min(limit, len(union))


@settings(deadline=None)
@given(channel_lists(), FUSIONS, LIMITS, st.permutations(range(8)))
def test_corpus_positions_are_only_names(lists, fusion, limit, renamed):
    """No two rows first appear at the same place, so the last tie rule (corpus position) never decides."""
    other = {name: [(renamed[row], score) for row, score in one] for name, one in lists.items()}
    plain, moved = fuse(batch_of(lists), fusion, limit), fuse(batch_of(other), fusion, limit)
    assert [(renamed[row], score) for row, score in plain.to_lists()[0]] == moved.to_lists()[0]


@settings(deadline=None)
@given(channel_lists(), FUSIONS, LIMITS)
def test_an_empty_channel_changes_nothing(lists, fusion, limit):
    more = {**batch_of(lists), **{name: Candidates.empty(1) for name in CHANNEL_ORDER if name not in lists}}
    assert fuse(more, fusion, limit).to_lists() == fuse(batch_of(lists), fusion, limit).to_lists()


@settings(deadline=None)
@given(channel_lists(), st.sampled_from([1, 10, 60]), st.booleans(), LIMITS)
def test_rank_fusion_sees_ranks_only(lists, k, weighted, limit):
    """Any rescaling that keeps the order of a list keeps the fused list, scores included."""
    fusion = Fusion("rrf", k=k, weighted=weighted)
    other = {name: [(row, np.exp(3 * score) - 7) for row, score in one] for name, one in lists.items()}
    assert fuse(batch_of(lists), fusion, limit).to_lists() == fuse(batch_of(other), fusion, limit).to_lists()


@settings(deadline=None)
@given(channel_lists(), channel_lists(), FUSIONS, LIMITS)
def test_a_batch_equals_its_single_questions(one, two, fusion, limit):
    names = list(dict.fromkeys((*one, *two)))
    both = {name: Candidates.from_lists([one.get(name, []), two.get(name, [])]) for name in names}
    apart = [{name: Candidates.from_lists([lists.get(name, [])]) for name in names} for lists in (one, two)]
    expected = [fuse(lists, fusion, limit).to_lists()[0] for lists in apart]
    assert fuse(both, fusion, limit).to_lists() == expected


@settings(deadline=None)
@given(channel_lists(), FUSIONS, LIMITS)
def test_a_lower_limit_is_a_prefix_unless_overridden(lists, fusion, limit):
    if fusion.overrides:
        return
    whole = fuse(batch_of(lists), fusion, 40).to_lists()[0]
    assert fuse(batch_of(lists), fusion, limit).to_lists()[0] == whole[:limit]


def test_equal_scores_are_ordered_by_first_appearance():
    """Reciprocal rank sums of 0 and 1 are equal; the keyword list is laid out first, in blend the vector list."""
    lists = {"vector": [(0, 1.0), (1, 1.0)], "keyword": [(1, 1.0), (0, 1.0)]}
    assert [row for row, _ in fuse(batch_of(lists), Fusion("rrf"), 5).to_lists()[0]] == [1, 0]
    assert [row for row, _ in fuse(batch_of(lists), Fusion("minmax"), 5).to_lists()[0]] == [1, 0]
    assert [row for row, _ in fuse(batch_of(lists), Fusion("blend", "hybrid"), 5).to_lists()[0]] == [0, 1]


def test_reciprocal_ranks_by_hand():
    """1/61 + 1/62 and 1/62 + 1/61 are equal to the last bit; a third row gets 1/61 from its only list."""
    lists = {"keyword": [(2, 1.0)], "vector": [(0, 0.9), (1, 0.8)], "bm25": [(1, 7.0), (0, 6.0)]}
    got = fuse(batch_of(lists), Fusion(), 3).to_lists()[0]
    assert got == [(0, 1 / 61 + 1 / 62), (1, 1 / 61 + 1 / 62), (2, 1 / 61)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Fusion("rff"), "unknown fusion method"),
        (lambda: Fusion(mode="fast"), "unknown fusion mode"),
        (lambda: Fusion(k=0), "k is 0"),
        (lambda: Weights(vector=-1), "weight of vector"),
    ],
)
def test_bad_settings_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_no_channel_is_a_programming_error():
    with pytest.raises(ValueError, match="at least one channel"):
        fuse({}, Fusion(), 3)
