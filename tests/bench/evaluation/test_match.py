"""From lists and labels to ranks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.evaluation.match import (
    from_arrays,
    from_dicts,
    from_lists,
    newest_successors,
    ranked_labels,
    tie_bounds,
)
from recallbench.measures import parse_measure
from recallbench.systems.base import SystemRun
from recallbench.trec.order import trec_order
from recallstack.ranking.rows import Corpus, Memory


def test_a_repeated_id_counts_once_at_its_first_place() -> None:
    ranked = from_lists([{"a": 1, "b": 1}], [["c", "a", "a", "c", "b"]])
    assert ranked.ranks.tolist() == [[2, 3]]
    assert ranked.returned.tolist() == [3]


@given(st.dictionaries(st.text("abcAB9", min_size=1, max_size=3), st.integers(0, 3), min_size=1, max_size=12))
@settings(deadline=None)
def test_the_order_of_ties_is_trec_evals(scores: dict[str, int]) -> None:
    """RR of each document alone gives its rank in trec_eval's order."""
    run = {"q": {name: float(value) for name, value in scores.items()}}
    order = trec_order(run["q"])
    for name in scores:
        found = pytrec_eval.RelevanceEvaluator({"q": {name: 1}}, {"recip_rank"}).evaluate(run)
        assert found["q"]["recip_rank"] == pytest.approx(1 / (order.index(name) + 1))


def test_a_question_that_the_run_lacks_has_an_empty_list() -> None:
    questions, ranked = from_dicts({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 1.0}, "other": {"b": 1.0}})
    assert questions == ["q1", "q2"]
    assert ranked.ranks.tolist() == [[1], [0]]
    assert ranked.returned.tolist() == [1, 0]


@given(st.integers(0, 6), st.data())
@settings(deadline=None)
def test_positions_give_the_same_ranks_as_ids(width: int, data: st.DataObject) -> None:
    ids = data.draw(st.permutations(range(9)))[:width]
    labels = data.draw(st.lists(st.integers(0, 8), min_size=1, max_size=4, unique=True))
    padded = np.array([[*labels, -1]], np.int32)
    lists = np.array([[*ids, -1, -1]], np.int32)
    got = from_arrays(padded, np.ones(padded.shape, np.int16), lists)
    want = from_lists([{str(one): 1 for one in labels}], [[str(one) for one in ids]])
    assert got.ranks[:, :-1].tolist() == want.ranks.tolist()
    assert got.ranks[0, -1] == 0
    assert got.returned.tolist() == want.returned.tolist() == [width]


CHAIN = Corpus.of(
    "main",
    [
        Memory(id="v1", content="Montag"),
        Memory(id="v2", content="星期二", supersedes="v1"),
        Memory(id="v3", content="Wed", supersedes="v2"),
        Memory(id="x", content="secret"),
        Memory(id="gone", supersedes="not-here"),
    ],
)


def test_the_newest_of_a_chain() -> None:
    assert newest_successors(CHAIN) == {"v1": "v3", "v2": "v3"}
    circle = Corpus.of("main", [Memory(id="a", supersedes="b"), Memory(id="b", supersedes="a")])
    assert set(newest_successors(circle)) == {"a", "b"}


def evaluated(question: Question, ids: list[str]) -> SystemRun:
    return SystemRun(
        "s", {}, (tuple(ids),), (tuple(1.0 - i / 10 for i in range(len(ids))),), np.array([1]), np.array([False])
    )


def labelled(question: Question) -> LabelledSet:
    return LabelledSet(SetInfo("t"), {"main": CHAIN}, (question,))


@pytest.mark.parametrize(
    ("ids", "stale"), [(["v1", "v3"], 1), (["v3", "v1"], 0), (["v2"], 1), (["x"], 0), ([], 0), (["v3", "v2", "v1"], 0)]
)
def test_stale_through_a_chain(ids: list[str], stale: int) -> None:
    question = Question(id="q", text="day", relevant={"v3": 2})
    ranked = ranked_labels(labelled(question), evaluated(question, ids))
    measure = parse_measure("Stale")
    assert measure.counts(ranked).tolist() == [True]
    assert measure.compute(ranked).tolist() == [stale]


def test_an_old_version_that_answers_is_not_stale() -> None:
    question = Question(id="q", text="before", relevant={"v1": 2, "v3": 2})
    ranked = ranked_labels(labelled(question), evaluated(question, ["v1"]))
    assert parse_measure("Stale").compute(ranked).tolist() == [0]


def test_forbidden_memories_leak_and_count_as_judged() -> None:
    question = Question(id="q", text="x", relevant={"v3": 2}, forbidden=("x",), not_relevant=("v1",))
    ranked = ranked_labels(labelled(question), evaluated(question, ["x", "gone", "v1", "v3"]))
    assert parse_measure("Leak").compute(ranked).tolist() == [1]
    assert parse_measure("Judged@4").compute(ranked).tolist() == [0.75]
    assert parse_measure("R@4").compute(ranked).tolist() == [1]


def test_costs_are_those_of_the_returned_texts() -> None:
    question = Question(id="q", text="x", relevant={"v3": 2})
    ranked = ranked_labels(labelled(question), evaluated(question, ["v2", "v3", "v2"]))
    assert ranked.chars is not None
    assert ranked.tokens is not None
    assert ranked.chars.tolist() == [6]  # 星期二 and Wed; the repeat costs nothing
    assert ranked.tokens.tolist() == [4]  # 3 ideographs and one token of three letters


SCORED = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(0, 2)), min_size=1, max_size=6, unique_by=lambda p: p[0]
)


@given(SCORED, st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 2), max_size=4))
@settings(deadline=None, max_examples=60)
def test_tie_bounds_are_the_extremes_over_all_orders(scored: list[tuple[str, int]], labels: dict[str, int]) -> None:
    scored = sorted(scored, key=lambda pair: -pair[1])
    corpus = Corpus.of("main", [Memory(id=name) for name in "abcdef"])
    question = Question(id="q", text="x", relevant=labels)
    one = LabelledSet(SetInfo("t", default_rel=1), {"main": corpus}, (question,))
    run = SystemRun(
        "s", {}, (tuple(n for n, _ in scored),), (tuple(float(v) for _, v in scored),), np.array([0]), np.array([False])
    )
    groups = [list(group) for _, group in itertools.groupby(scored, key=lambda pair: pair[1])]
    orders = [
        [name for part in parts for name, _ in part]
        for parts in itertools.product(*(itertools.permutations(group) for group in groups))
    ]
    for name in ("nDCG@2", "RR", "R@1", "AP"):
        measure = parse_measure(name)
        values = [measure.compute(from_lists([labels], [order], default_rel=1))[0] for order in orders]
        bounds = tie_bounds(measure, one, run)
        if bounds is None:
            assert len(orders) == 1
            continue
        assert bounds[0][0] == pytest.approx(min(values))
        assert bounds[1][0] == pytest.approx(max(values))


def test_a_list_that_does_not_fall_along_its_scores_has_no_tie_bounds() -> None:
    question = Question(id="q", text="x", relevant={"v1": 2})
    run = SystemRun("s", {}, (("v1", "v2", "v3"),), ((1.0, 1.0, 2.0),), np.array([0]), np.array([False]))
    assert tie_bounds(parse_measure("RR"), labelled(question), run) is None


def test_forbidden_memories_bound_a_leak_at_a_cutoff() -> None:
    """[a, b] with equal scores, b forbidden: at cutoff 1 it leaks in one order and not in the other."""
    question = Question(id="q", text="x", forbidden=("b",))
    run = SystemRun("s", {}, (("a", "b"),), ((1.0, 1.0),), np.zeros(1, np.int32), np.zeros(1, np.bool_))
    bounds = tie_bounds(parse_measure("Leak@1"), labelled(question), run)
    assert bounds is not None
    assert sorted(float(one[0]) for one in bounds) == [0.0, 1.0]
