"""`recallbench datasets power`: what a set can tell apart, against SciPy and hand counts."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from paths import ROOT
from scipy import stats

from recallbench import Experiment
from recallbench.cli import _run
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.labelling.power import PowerReport, power_report
from recallbench.labelling.power_table import power_markdown, power_values
from recallbench.systems.base import SystemRun
from recallstack.errors import InputError
from recallstack.ranking.rows import Corpus, Memory

COUNT = 20
SET = LabelledSet(
    SetInfo("t", default_rel=1),
    {"main": Corpus.of("main", [Memory(id=name, content=name) for name in "abcd"])},
    tuple(Question(id=f"q{i}", text="x", relevant={"a": 1}) for i in range(COUNT)),
)


class Fixed:
    """A system with `a` at the given 1-based rank of each question (0: nowhere)."""

    def __init__(self, name: str, ranks: list[int]) -> None:
        self.name, self.ranks = name, ranks

    def run(self, labelled: LabelledSet, depth: int) -> SystemRun:
        lists = [["b", "c", "d"][: max(rank - 1, 0)] + (["a"] if rank else []) for rank in self.ranks]
        ids = tuple(tuple(one) for one in lists)
        scores = tuple(tuple(1.0 - i / 10 for i in range(len(one))) for one in ids)
        return SystemRun(self.name, {}, ids, scores, np.zeros(COUNT, np.int32), np.zeros(COUNT, np.bool_))


BEST, TWIN = [1] * 15 + [2] * 5, [1] * 15 + [2] * 5
MIDDLE = [1] * 5 + [2] * 15
WORST = [0] * COUNT


def report(*systems: Fixed, difference: float | None = None) -> PowerReport:
    return power_report(Experiment(SET, list(systems), ["RR", "Success@1"]).evaluations[0], difference)


def test_the_smallest_detectable_difference_is_that_of_a_paired_t_test() -> None:
    """RR differs by 1/2 on 10 of 20 questions; (t.975 + t.8) times the standard error of the mean, 19 degrees."""
    found = report(Fixed("best", BEST), Fixed("middle", MIDDLE), difference=0.05).measures[0]
    change = np.array([0.0] * 5 + [0.5] * 10 + [0.0] * 5)
    error = stats.sem(change)
    wanted = (stats.t.ppf(0.975, 19) + stats.t.ppf(0.8, 19)) * error
    assert found.detectable is not None
    assert found.detectable.median == pytest.approx(wanted)
    assert (found.questions, found.pairs, found.equal) == (20, 1, 0)
    # SciPy's own power at that difference: the noncentral t is near to 80 %.
    shift, limit = wanted / error, stats.t.ppf(0.975, 19)
    assert stats.nct.sf(limit, 19, shift) == pytest.approx(0.8, abs=0.01)
    # Questions for a tenth of that: the error falls with the root of the count, so about (wanted / 0.05)^2 times 20.
    assert found.needed is not None
    assert found.needed.median == pytest.approx(20 * (wanted / 0.05) ** 2, rel=0.1)


def test_equal_systems_have_no_say_in_what_is_detectable() -> None:
    found = report(Fixed("best", BEST), Fixed("twin", TWIN), Fixed("middle", MIDDLE))
    alone = report(Fixed("best", BEST), Fixed("middle", MIDDLE))
    assert (found.measures[0].pairs, found.measures[0].equal) == (3, 1)
    assert found.measures[0].detectable == alone.measures[0].detectable
    none = report(Fixed("best", BEST), Fixed("twin", TWIN))
    assert none.measures[0].detectable is None
    assert none.significant == 0
    assert "–" in power_markdown(none)


def test_the_better_half_its_pairs_and_saturation() -> None:
    """Means of RR: best 0.875, middle 0.625, worst 0. The better half of three is two; p of 10 equal signs: 2/1024."""
    found = report(Fixed("worst", WORST), Fixed("middle", MIDDLE), Fixed("best", BEST))
    assert [(name, one.mean) for name, one in found.half] == [("best", 0.875), ("middle", 0.625)]
    (pair,) = found.pairs
    assert (pair.better, pair.worse, pair.difference, pair.equal) == ("best", "middle", 0.25, False)
    assert pair.p == pytest.approx(2 / 1024, abs=0.0015)
    assert (pair.adjusted, pair.significant, found.significant) == (pair.p, True, 1)
    assert not found.saturated
    top = [1] * 19 + [2]  # 0.975
    assert report(Fixed("top", top), Fixed("worst", WORST)).saturated
    assert "**saturated**" in power_markdown(report(Fixed("top", top), Fixed("worst", WORST)))


def test_values_are_json_without_nan() -> None:
    values = power_values(report(Fixed("best", BEST), Fixed("twin", TWIN), Fixed("worst", WORST), difference=0.1))
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert values["significant_share"] == 0


@pytest.mark.parametrize("difference", [0.0, -1.0, 1e-300, math.nan, math.inf])
def test_bad_differences(difference: float) -> None:
    with pytest.raises(InputError, match=r"must be at least 0\.0001"):
        report(Fixed("best", BEST), Fixed("middle", MIDDLE), difference=difference)


def test_one_system_is_no_pair() -> None:
    with pytest.raises(InputError, match="name at least two"):
        report(Fixed("best", BEST))


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["datasets", "power", str(ROOT / "datasets/kb-preretrieval"), "--quiet"]
    systems = ["--system", "bm25-okapi", "--system", "keyword-only", "--system", "rrf-k10"]
    assert _run([*arguments, *systems, "--difference", "0.05"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("# Power of kb-preretrieval")
    assert "questions for 0.05 (greatest)" in page
    assert _run([*arguments, *systems, "--json", "--split", "test"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["split"], values["measures"][0]["pairs"], len(values["half"])) == ("test", 3, 2)
    assert _run([*arguments, "--system", "bm25-okapi"]) == 2


def test_pairs_are_corrected_for_their_number() -> None:
    """Of five systems the better half is three: three pairs, whose p-values Holm multiplies by 3, 2 and 1 in order."""
    near = [1] * 14 + [2] * 6  # differs from best on one question
    found = report(
        Fixed("best", BEST), Fixed("near", near), Fixed("middle", MIDDLE), Fixed("worst", WORST), Fixed("last", WORST)
    )
    assert len(found.pairs) == 3
    running, wanted = 0.0, {}
    for place, pair in enumerate(sorted(found.pairs, key=lambda one: one.p)):
        running = max(running, min(1.0, (3 - place) * pair.p))
        wanted[pair.better, pair.worse] = running
    assert {(one.better, one.worse): one.adjusted for one in found.pairs} == pytest.approx(wanted)
    assert any(one.adjusted != one.p for one in found.pairs)
