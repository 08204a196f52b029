"""`Experiment` and its tables, against hand computations."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from recallbench import Experiment
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.systems.base import SystemRun
from recallstack.errors import InputError
from recallstack.ranking.presets import preset
from recallstack.ranking.rows import Corpus, Memory

SET = LabelledSet(
    SetInfo("t", default_rel=1),
    {"main": Corpus.of("main", [Memory(id=name, content=f"{name} word") for name in "abcd"])},
    (
        Question(id="q1", text="a", relevant={"a": 1}, categories=("x", "y"), lang="en"),
        Question(id="q2", text="b", relevant={"b": 1}, categories=("x",), lang="en"),
        Question(id="q3", text="c", relevant={"c": 1}, categories=("y",), lang="zh"),
        Question(id="q4", text="d", relevant={"d": 1}, lang="zh"),
        Question(id="q5", text="e", expects_empty=True, lang="zh"),
    ),
)


class Fixed:
    """A system that returns what it was given."""

    def __init__(self, name: str, lists: list[str]) -> None:
        self.name, self.lists = name, lists

    def run(self, labelled: LabelledSet, depth: int) -> SystemRun:
        ids = tuple(tuple(one) for one in self.lists)
        scores = tuple(tuple(1.0 - i / 10 for i in range(len(one))) for one in ids)
        count = len(ids)
        return SystemRun(self.name, {"fixed": 1}, ids, scores, np.zeros(count, np.int32), np.zeros(count, np.bool_))


OLD = Fixed("old", ["a", "ab", "ab", "", "a"])
NEW = Fixed("new", ["a", "b", "ab", "d", ""])


def test_means_are_over_the_questions_that_count() -> None:
    table = Experiment(SET, [OLD, NEW], ["RR"]).table()
    # RR old: 1, 1/2, 0, 0 -> 0.375; new: 1, 1, 0, 1 -> 0.75; q5 has no relevant memory.
    assert table["mean"].tolist() == [0.375, 0.75]
    assert table["n"].tolist() == [4, 4]


def test_tables_by_category_and_language() -> None:
    result = Experiment(SET, [OLD, NEW], ["RR"])
    by = result.wide("category").set_index(["group", "system"])["RR"]
    # x: q1, q2; y: q1, q3.
    assert by["x", "old"] == 0.75
    assert by["y", "new"] == 0.5
    lang = result.wide("lang").set_index(["group", "system"])["RR"]
    assert lang["zh", "new"] == 0.5
    with pytest.raises(InputError, match="unknown grouping 'colour'"):
        result.table("colour")


def test_differences_to_the_baseline_are_paired() -> None:
    compared = Experiment(SET, [OLD, NEW], ["RR", "Leak"], baseline="old").compare()
    row = compared[compared["measure"] == "RR"].iloc[0]
    # Differences 0, 1/2, 0, 1: mean 0.375, sd 0.478714, t(0.975, 3) = 3.182446.
    assert row["mean"] == pytest.approx(0.375)
    assert row["high"] == pytest.approx(0.375 + 3.182446 * 0.4787136 / 2, abs=1e-5)
    assert row["n"] == 4


def test_lower_is_better_measures_are_turned_round() -> None:
    compared = Experiment(SET, [OLD, NEW], ["RR", "Chars"], baseline="old").compare()
    row = compared[compared["measure"] == "Chars"].iloc[0]
    # Each row has 6 characters. Old returns 1, 2, 2, 0, 1 rows, new 1, 1, 2, 1, 0: 6 and 5 in all.
    assert row["mean"] == pytest.approx((6 - 5) * 6 / 5)


def test_per_question_rows() -> None:
    frame = Experiment(SET, [OLD], ["RR"]).per_question
    assert isinstance(frame, pd.DataFrame)
    assert frame["value"].tolist() == [1, 0.5, 0, 0, 0]
    assert frame["counts"].tolist() == [True, True, True, True, False]


def test_recipes_presets_and_names_are_systems() -> None:
    renamed = dataclasses.replace(preset("bm25-okapi"), name="mine")
    result = Experiment(SET, ["bm25-okapi", renamed, preset("keyword-only")], ["RR"])
    # LIKE '%d%' hits "word" in all four rows; equals stand in corpus order, so d is fourth: (1 + 1 + 1 + 1/4) / 4.
    assert result.table()["mean"].tolist() == [1.0, 1.0, 0.8125]
    assert "saturated" in result.checks["name"].tolist()


def test_two_sets_in_one_experiment() -> None:
    other = dataclasses.replace(SET, info=SetInfo("u", default_rel=1))
    assert Experiment([SET, other], [OLD], ["RR"]).table()["dataset"].tolist() == ["t", "u"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"systems": []}, "at least one data set and one system"),
        ({"baseline": "older"}, "baseline 'older' is not among the systems: old"),
        ({"measures": ["zzz"]}, "unknown measure"),
        ({"split": "dev"}, "dev"),
    ],
)
def test_mistakes_get_one_line(change: dict[str, object], says: str) -> None:
    arguments = {"datasets": SET, "systems": [OLD], "measures": ["RR"], **change}
    with pytest.raises(InputError, match=says):
        Experiment(**arguments)  # type: ignore[arg-type]


def test_a_system_must_answer_every_question() -> None:
    with pytest.raises(InputError, match="answered 2 of 5 questions"):
        Experiment(SET, [Fixed("short", ["a", "b"])], ["RR"])


def test_compare_needs_a_baseline() -> None:
    with pytest.raises(InputError, match="no baseline"):
        Experiment(SET, [OLD], ["RR"]).compare()
