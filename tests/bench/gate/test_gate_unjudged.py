"""Bounds over the labels of hits that nobody judged, against each question relabelled and scored on its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.evaluation.match import from_lists, labels_of
from recallbench.gate.unjudged import Deciding, Listed, Lists, Unjudged, label_bounds
from recallbench.measures import parse_measure
from recallbench.systems.base import SystemRun
from recallstack.ranking.rows import Corpus, Memory

NAMES = "abcdefgh"
CORPUS = Corpus.of("main", [Memory(id=name) for name in NAMES])
MEASURES = [
    "nDCG@3",
    "nDCG(dcg=exp-log2)",
    "RR",
    "RR@2",
    "P@3",
    "R@3",
    "R(rel=1)@2",
    "AP",
    "AllR@3",
    "Success@2",
    "Rprec",
]
LIST = st.lists(st.sampled_from(NAMES), max_size=6)  # with repeats


def run(name: str, lists: list[list[str]], failed: list[bool]) -> SystemRun:
    scores = tuple(tuple(-float(place) for place in range(len(one))) for one in lists)
    lengths = np.array([len(one) for one in lists], np.int32)
    return SystemRun(name, {}, tuple(map(tuple, lists)), scores, lengths, np.array(failed, np.bool_))


@st.composite
def cases(draw: Any) -> tuple[LabelledSet, SystemRun, SystemRun]:
    count = draw(st.integers(1, 4))
    questions = []
    for place in range(count):
        labels = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(-1, 3), max_size=4))
        relevant = {name: grade for name, grade in labels.items() if grade > 0}
        judged = tuple(name for name, grade in labels.items() if grade == 0)
        forbidden = tuple(name for name, grade in labels.items() if grade < 0)
        questions.append(
            Question(id=f"q{place}", text="x", relevant=relevant, not_relevant=judged, forbidden=forbidden)
        )
    labelled = LabelledSet(SetInfo("t", default_rel=draw(st.integers(1, 2))), {"main": CORPUS}, tuple(questions))
    sides = []
    for name in ("before", "after"):
        failed = draw(st.lists(st.booleans(), min_size=count, max_size=count))
        lists = [[] if bad else draw(LIST) for bad in failed]
        sides.append(run(name, lists, failed))
    return labelled, sides[0], sides[1]


def cut(ids: tuple[str, ...], cutoff: int | None) -> list[str]:
    return list(dict.fromkeys(ids))[:cutoff]


def one_by_one(
    labelled: LabelledSet, before: SystemRun, after: SystemRun, name: str, change: np.ndarray, counted: np.ndarray
) -> tuple[list[float], list[float], list[tuple[str, str]]]:
    """(worst, best, what moved): each question's labels with every riser, or every faller, given the top grade."""
    measure = parse_measure(name)
    top = max([labelled.info.default_rel, *(g for q in labelled.questions for g in q.relevant.values())])
    worst, best, moved = list(change), list(change), []
    for place, question in enumerate(labelled.questions):
        old, new = (cut(side.ids[place], measure.cutoff) for side in (before, after))
        judged = labels_of(question)
        rank = {n: ([*old, n].index(n) if n in old else 99, [*new, n].index(n) if n in new else 99) for n in NAMES}
        movers = [n for n in NAMES if n not in judged and rank[n][0] != rank[n][1]]
        if not counted[place] or not movers:
            continue
        moved += [(question.id, n) for n in movers]
        for out, rises in ((best, True), (worst, False)):
            labels = {**judged, **{n: top for n in movers if (rank[n][1] < rank[n][0]) == rises}}
            values = [
                measure.compute(from_lists([labels], [ids], side.failed[[place]], labelled.info.default_rel))[0]
                for ids, side in ((old, before), (new, after))
            ]
            out[place] = values[1] - values[0]
    return worst, best, moved


@pytest.mark.parametrize("name", MEASURES)
@given(cases(), st.data())
@settings(deadline=None, max_examples=60)
def test_the_bounds_are_those_of_each_question_alone(
    name: str, case: tuple[LabelledSet, SystemRun, SystemRun], data: st.DataObject
) -> None:
    labelled, before, after = case
    count = len(labelled.questions)
    change = np.linspace(-0.3, 0.3, count)
    counted = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    worst, best, moved = one_by_one(labelled, before, after, name, change, counted)
    found = label_bounds(Lists(labelled, before, after), parse_measure(name), change, counted)
    if not moved:
        assert found is None
        return
    assert found is not None
    assert found.worst == pytest.approx(worst, abs=1e-12)
    assert found.best == pytest.approx(best, abs=1e-12)
    listed = Listed([found.deciding(np.arange(count))])
    assert sorted((one.question, one.memory) for one in listed) == sorted(moved)
    assert len(found.deciding(np.arange(count))) == len(moved)


@pytest.mark.parametrize("name", ["Leak", "Tokens", "Judged@5", "Abstain"])
def test_a_measure_that_takes_no_labels_has_no_bounds(name: str) -> None:
    labelled = LabelledSet(SetInfo("t"), {"main": CORPUS}, (Question(id="q", text="x", relevant={"a": 1}),))
    lists = Lists(labelled, run("b", [["b"]], [False]), run("a", [["c"]], [False]))
    assert label_bounds(lists, parse_measure(name), np.zeros(1), np.ones(1, np.bool_)) is None


def test_each_memory_is_listed_once_with_its_ranks_highest_first() -> None:
    """Two rules of different cutoffs name the same memories; b went from 4 to 1, c is gone from 1, d from 3."""
    questions = tuple(Question(id=f"q{n}", text="x", relevant={"a": 1}) for n in range(2))
    labelled = LabelledSet(SetInfo("t"), {"main": CORPUS}, questions)
    before = run("b", [["c", "a", "d", "b"], ["a", "e"]], [False, False])
    after = run("a", [["b", "a"], ["a", "f"]], [False, False])
    lists = Lists(labelled, before, after)
    both = np.ones(2, np.bool_)
    bounds = [label_bounds(lists, parse_measure(name), np.zeros(2), both) for name in ("P@1", "P@4")]
    deciding: list[Deciding] = [one.deciding(np.arange(2)) for one in bounds if one is not None]
    assert [len(one) for one in deciding] == [2, 5]
    found = Listed(deciding)
    assert list(found) == [
        Unjudged("q0", "b", 4, 1),
        Unjudged("q0", "c", 1, 0),
        Unjudged("q1", "f", 0, 2),
        Unjudged("q1", "e", 2, 0),
        Unjudged("q0", "d", 3, 0),
    ]
    assert found[0].memory == "b"
    assert found[1:3] == (Unjudged("q0", "c", 1, 0), Unjudged("q1", "f", 0, 2))
    assert len(Listed([])) == 0
    # A rule on one category lists what is of its questions.
    assert bounds[1] is not None
    assert [one.memory for one in Listed([bounds[1].deciding(np.array([1]))])] == ["f", "e"]
