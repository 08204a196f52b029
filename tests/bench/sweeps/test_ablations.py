"""Effects of switches, against hand computations of a 2^2 design."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from recallbench import Experiment, ablation
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.statistics.intervals import mean_interval
from recallbench.systems.base import SystemRun
from recallstack.errors import InputError
from recallstack.ranking.rows import Corpus, Memory

SET = LabelledSet(
    SetInfo("t", default_rel=1),
    {"main": Corpus.of("main", [Memory(id=name, content=name) for name in "abcd"])},
    tuple(
        Question(id=f"q{n}", text="x", relevant={"a": 1}, lang=lang, cluster=f"c{n // 2}")
        for n, lang in enumerate(("en", "en", "zh", "zh"))
    ),
)


class Switched:
    """A system with two switches that returns `a` at a given rank of each question (RR = 1 / rank)."""

    def __init__(self, one: bool, two: bool, ranks: list[int], **more: object) -> None:
        self.name = f"{one}-{two}-{more}"
        self.spec = {"name": self.name, "one": one, "two": two, **more}
        self._lists = tuple((*"bcd"[: rank - 1], "a") for rank in ranks)

    def run(self, labelled: LabelledSet, depth: int) -> SystemRun:
        scores = tuple(tuple(-float(i) for i in range(len(one))) for one in self._lists)
        count = len(self._lists)
        return SystemRun(self.name, self.spec, self._lists, scores, np.zeros(count, np.int32), np.zeros(count, bool))


NONE = Switched(False, False, [4, 4, 2, 4])  # RR 1/4 1/4 1/2 1/4: mean 5/16
ONE = Switched(True, False, [2, 4, 2, 4])  # 1/2 1/4 1/2 1/4: 6/16
TWO = Switched(False, True, [4, 4, 2, 2])  # 1/4 1/4 1/2 1/2: 6/16
BOTH = Switched(True, True, [1, 4, 2, 2])  # 1 1/4 1/2 1/2: 9/16


def effects(by: str | None = None, systems=(NONE, ONE, TWO, BOTH)):
    found = ablation(Experiment(SET, list(systems), ["RR"]), ["one", "two"], by=by).table
    return {(r.group, r.kind, r.effect): r for r in found.itertuples()}


def test_effects_are_those_of_the_design() -> None:
    at = effects()
    sixteenths = {key[1:]: row.difference * 16 for key, row in at.items()}
    assert sixteenths == pytest.approx(
        {
            ("alone", "one"): 1,
            ("alone", "two"): 1,
            ("last", "one"): 3,  # both - two = 9 - 6
            ("last", "two"): 3,
            ("shapley", "one"): 2,  # (alone + last) / 2: of two switches there are two orders
            ("shapley", "two"): 2,
            ("pair", "one × two"): 2,  # (both - two) - (one - none) = 3 - 1
            ("all", "all"): 4,
        }
    )


def test_intervals_are_over_the_questions_of_the_contrast() -> None:
    row = effects()["", "pair", "one × two"]
    # By question: (1 - 1/4) - (1/2 - 1/4) = 1/2, then 0, 0, 0; clusters of two questions.
    wanted = mean_interval(np.array([0.5, 0, 0, 0]), ["c0", "c0", "c1", "c1"])
    assert (row.low, row.high, row.n, row.clusters) == pytest.approx((wanted.low, wanted.high, 4, 2))


def test_groups() -> None:
    at = effects(by="lang")
    assert at["en", "all", "all"].difference == pytest.approx((1 - 1 / 4) / 2)
    assert at["zh", "all", "all"].difference == pytest.approx((1 / 2 - 1 / 4) / 2)
    assert at["en", "all", "all"].n == 2


def test_lower_is_better_measures_are_turned_round() -> None:
    found = ablation(Experiment(SET, [NONE, ONE, TWO, BOTH], ["Chars"]), ["one", "two"]).table
    # Rows have one character each: 14, 12, 12 and 9 rows came back, over four questions.
    assert found[found["kind"] == "all"]["difference"].tolist() == [pytest.approx((14 - 9) / 4)]


def test_another_recipe_is_left_out() -> None:
    other = Switched(True, True, [1, 1, 1, 1], scope="strict")
    assert effects(systems=(NONE, ONE, TWO, BOTH, other))["", "all", "all"].difference == pytest.approx(4 / 16)


def test_shapley_values_add_up_for_any_switches() -> None:
    """Of the sixteen injection recipes, whatever the figures are."""
    table = ablation(Experiment("kb-preretrieval", ["presets:inject"], ["nDCG@5", "Leak"])).table
    for measure, part in table.groupby("measure"):
        at = part.set_index(["kind", "effect"])["difference"]
        assert at["shapley"].sum() == pytest.approx(at["all", "all"], abs=1e-12), measure
        names = ("dual", "overfetch", "capacity", "rerank")
        assert set(at["pair"].index) == {f"{a} × {b}" for a, b in itertools.combinations(names, 2)}


def test_groups_in_which_nothing_counts_are_left_out() -> None:
    table = ablation(Experiment(SET, [NONE, ONE, TWO, BOTH], ["RR", "Stale"]), ["one", "two"]).table
    assert set(table["measure"]) == {"RR"}


@pytest.mark.parametrize(
    ("systems", "switches", "measures", "says"),
    [
        ([NONE, ONE, TWO], ["one", "two"], [], "no system has on exactly: one, two"),
        ([ONE, TWO, BOTH], ["one", "two"], [], "no system has on exactly: none of the switches"),
        ([NONE, ONE, TWO, BOTH], ["one", "three"], [], "no system has the switches one, three"),
        ([NONE, ONE, TWO, BOTH], [], [], "at least one switch"),
        ([NONE, ONE, TWO, BOTH], ["one", "two"], ["AP"], "no measure 'AP' in the experiment; there are: RR"),
    ],
)
def test_mistakes_get_one_line(systems, switches, measures, says: str) -> None:
    with pytest.raises(InputError, match=says):
        ablation(Experiment(SET, systems, ["RR"]), switches, measures)


def test_it_shows_itself() -> None:
    text = repr(ablation(Experiment(SET, [NONE, ONE, TWO, BOTH], ["RR"]), ["one", "two"]))
    assert "| one " in text
    assert "+0.188" in text  # 3/16
    assert "one × two" in text
