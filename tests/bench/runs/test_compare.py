"""`recallbench compare`: paired differences of two systems, against SciPy and hand counts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy import stats

from recallbench import Experiment
from recallbench.cli import _run
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.runs.comparing import pair, pairing_markdown
from recallbench.systems.base import SystemRun
from recallstack.errors import InputError
from recallstack.ranking.rows import Corpus, Memory

COUNT = 12
SET = LabelledSet(
    SetInfo("t", default_rel=1),
    {"main": Corpus.of("main", [Memory(id=name, content=name) for name in "abcd"])},
    tuple(
        Question(id=f"q{i:02d}", text="x", relevant={"a": 1}, categories=("even",) if i % 2 == 0 else ("odd",))
        for i in range(COUNT)
    ),
)
OLD = [1] * 8 + [2] * 4
NEW = [2] * 2 + [1] * 10  # worse on q00 and q01, better on q08 to q11


class Fixed:
    """A system with `a` at the given 1-based rank of each question."""

    def __init__(self, name: str, ranks: list[int]) -> None:
        self.name, self.ranks = name, ranks

    def run(self, labelled: LabelledSet, depth: int) -> SystemRun:
        ids = tuple((*("b", "c", "d")[: rank - 1], "a") for rank in self.ranks)
        scores = tuple(tuple(1.0 - i / 10 for i in range(len(one))) for one in ids)
        lost = tuple({"a": "out-fused" if rank > 1 else "kept"} for rank in self.ranks)
        return SystemRun(self.name, {}, ids, scores, np.zeros(COUNT, np.int32), np.zeros(COUNT, np.bool_), lost)


EVALUATION = Experiment(SET, [Fixed("old", OLD), Fixed("new", NEW)], ["RR", "Success@1"]).evaluations[0]


def test_the_paired_interval_is_scipys_and_flips_are_in_order() -> None:
    found = pair(EVALUATION, "old", "new")
    row = found.rows[0]
    # RR: 1 or 1/2. Differences: -1/2 twice, +1/2 four times, 0 six times.
    change = np.array([-0.5] * 2 + [0.0] * 6 + [0.5] * 4)
    low, high = stats.ttest_1samp(change, 0).confidence_interval(0.95)
    assert (row.a, row.b) == (pytest.approx(10 / 12), pytest.approx(11 / 12))
    interval = row.comparison.interval
    assert (interval.mean, interval.low, interval.high) == pytest.approx((change.mean(), low, high))
    assert (row.comparison.better, row.comparison.worse, row.comparison.same) == (4, 2, 6)
    assert row.comparison.effect == pytest.approx(change.mean() / change.std(ddof=1))
    assert [(one.question, one.change) for one in found.flips] == [
        ("q00", -0.5), ("q01", -0.5), ("q08", 0.5), ("q09", 0.5), ("q10", 0.5), ("q11", 0.5),
    ]  # fmt: skip
    assert found.flips[0].lost == {"a": "out-fused"}
    assert found.flips[2].lost == {}  # what was kept is not lost
    # Exact sign flips: six differences of equal size, |sum| >= 2 of ±1 six times: 1 - P(sum = 0) = 1 - 20/64.
    assert row.comparison.p == pytest.approx(44 / 64)
    # Two measures with the same differences: Holm doubles the first.
    assert row.holm == pytest.approx(min(1.0, 2 * 44 / 64))


def test_categories_have_rows_of_their_own_and_small_ones_are_marked() -> None:
    found = pair(EVALUATION, "old", "new")
    # even: q00 worse; q08, q10 better: (-0.5 + 1) / 6.
    assert [(row.group, row.comparison.interval.n) for row in found.by] == [("even", 6), ("odd", 6)]
    assert found.by[0].comparison.interval.mean == pytest.approx(0.5 / 6)
    page = pairing_markdown(found, 1)
    assert "even (few)" in page
    assert "Worse in new: 2 questions, 1 of them" in page
    assert page.index("q00") < page.index("q11")


def test_lower_is_better_measures_are_turned() -> None:
    forbidding = tuple(msgspec.structs.replace(one, forbidden=("b",)) for one in SET.questions)
    labelled = LabelledSet(SetInfo("t", default_rel=1), SET.corpora, forbidding)
    found = pair(
        Experiment(labelled, [Fixed("old", [2] * COUNT), Fixed("new", [1] * COUNT)], ["Leak", "RR"]).evaluations[0],
        "old",
        "new",
    )
    row = found.rows[0]
    # old returns b (forbidden) before a on every question, new never does: Leak 1 to 0 is better by 1.
    assert (row.measure, row.a, row.b, row.comparison.interval.mean) == ("Leak", 1.0, 0.0, 1.0)
    assert len(found.flips) == COUNT
    assert all(one.change > 0 for one in found.flips)
    assert "Worse in new" not in pairing_markdown(found, 5)


def test_identical_systems_have_no_nan() -> None:
    evaluation = Experiment(SET, [Fixed("one", OLD), Fixed("two", OLD)], ["RR"]).evaluations[0]
    row = pair(evaluation, "one", "two").rows[0]
    assert (row.comparison.interval.low, row.comparison.interval.high, row.comparison.p) == (0, 0, 1)
    assert "nan" not in pairing_markdown(pair(evaluation, "one", "two"), 5)


def test_unknown_and_same_systems() -> None:
    with pytest.raises(InputError, match="no system 'x' in this run; it has old, new"):
        pair(EVALUATION, "old", "x")
    with pytest.raises(InputError, match="compared with itself"):
        pair(EVALUATION, "old", "old")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("runs")
    made = {}
    for name, arguments in {
        "two": ["--system", "bm25-okapi", "--system", "rrf-k10"],
        "bm25": ["--system", "bm25-okapi"],
        "rrf": ["--system", "rrf-k10"],
        "dev": ["--system", "rrf-k10", "--split", "dev"],
    }.items():
        assert _run(["run", "--dataset", "kb-preretrieval", *arguments, "--quiet", "--out", str(out / name)]) == 0
        [made[name]] = (out / name).iterdir()
    return made


def test_the_command(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert _run(["compare", str(runs["two"]), "bm25-okapi", "rrf-k10", "--json"]) == 0
    [inside] = json.loads(capsys.readouterr().out)
    assert _run(["compare", str(runs["bm25"]), str(runs["rrf"]), "--json"]) == 0
    [across] = json.loads(capsys.readouterr().out)
    assert inside == {**across, "a": "bm25-okapi", "b": "rrf-k10"}  # the same, whichever way the answers came
    assert _run(["compare", str(runs["two"]), str(runs["rrf"])]) == 0
    page = capsys.readouterr().out
    assert page.startswith("# rrf-k10 (B) against rrf-k10 (A) on kb-preretrieval")
    assert re.search(r"\+0\.000 \[\+0\.000, \+0\.000\]", page)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["two"], "give RUN SYSTEM_A SYSTEM_B, or RUN_A RUN_B"),
        (["two", "dev"], "have other questions; run both with the same --split"),
        (["nothing", "two"], "nothing: no such folder; give the folder of a run"),
    ],
)
def test_bad_input(
    runs: dict[str, Path], arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    capsys.readouterr()
    assert _run(["compare", *(str(runs.get(one, tmp_path / one)) for one in arguments)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert says in err


def test_one_question_has_no_interval_and_no_minus_zero() -> None:
    one = LabelledSet(SetInfo("t", default_rel=1), SET.corpora, SET.questions[:1])

    class Short(Fixed):
        def run(self, labelled: LabelledSet, depth: int) -> SystemRun:
            ids = (("a",),) if self.ranks[0] == 1 else (("b", "a"),)
            scores = tuple(tuple(1.0 - i for i in range(len(row))) for row in ids)
            return SystemRun(self.name, {}, ids, scores, np.zeros(1, np.int32), np.zeros(1, np.bool_))

    page = pairing_markdown(
        pair(Experiment(one, [Short("a", [1]), Short("b", [2])], ["RR"]).evaluations[0], "a", "b"), 3
    )
    assert "-0.500 [–]" in page
    assert "nan" not in page
    assert "-0.000" not in page
