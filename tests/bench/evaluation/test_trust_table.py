"""The fourteen trust checks, row by row in the order of the design: each one firing, and silent where all is well."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from gate_sets import gated, made_set, policy, system
from made import native_set, refused
from systems_support import python_command, run_system

from recallbench.cache.candidates import CandidateCache
from recallbench.cli import _run
from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import LabelledSet
from recallbench.datasets.registry import load
from recallbench.datasets.select import select
from recallbench.evaluation.evaluate import Evaluation, evaluate
from recallbench.evaluation.summary import summary_markdown
from recallbench.gate.baselines.changes import places_of
from recallbench.gate.baselines.model import baseline_of
from recallbench.gate.outcome import Verdict
from recallbench.measures import parse_measure, parse_measures
from recallbench.sweeps.choose import sweep_set
from recallbench.sweeps.grid import Grid
from recallbench.systems.base import SystemRun
from recallstack.ranking.recipes import SearchRecipe
from recallstack.ranking.rows import Corpus

Captured = pytest.CaptureFixture[str]
JUDGED = made_set(10, judged=[f"x-{n}" for n in range(30)])
"""Ten questions; memory m-N answers q-N, and the labels leave nothing open."""
MIXED = {n: 1 + n % 3 for n in range(10)}
"""Ranks of the answers, so that no measure is 1 everywhere."""


def measured(
    *runs: SystemRun, labelled: LabelledSet = JUDGED, names: str = "nDCG@5 RR Judged@5", depth: int = 5, **more: Any
) -> Evaluation:
    return evaluate(labelled, runs, parse_measures(names), depth, **more)


def fired(evaluation: Evaluation, name: str, level: str, said: str) -> None:
    """One finding of this name and level, in the report too; an error makes the run INVALID."""
    [found] = [one for one in evaluation.checks if one.name == name]
    assert found.level == level
    assert said in found.message
    assert evaluation.valid == (level != "error")
    assert found.message in summary_markdown(evaluation, None)


def silent(evaluation: Evaluation) -> None:
    """Not one finding of any check."""
    assert evaluation.checks == ()
    assert evaluation.valid


def changed(labelled: LabelledSet, **fields: Any) -> LabelledSet:
    """The set with fields of its first question replaced."""
    first, *rest = labelled.questions
    return hashed(labelled.info, labelled.corpora, [msgspec.structs.replace(first, **fields), *rest])


# 1. A label names a memory that is not in the corpus.


def unknown_label(folder: Path, capsys: Captured) -> None:
    memories = [{"id": "m-1", "content": "one"}, {"id": "m-2", "content": "two"}]
    questions = [{"id": "q-1", "text": "one?", "relevant": {"m-1": 2, "gone-1": 2, "gone-2": 2}}]
    dataset = native_set(folder / "set", memories, questions)
    code = _run(["run", "--dataset", str(dataset), "--system", "bm25-okapi", "--out", str(folder / "out")])
    assert code == 2
    assert "'gone-1', 'gone-2'" in capsys.readouterr().err
    assert not (folder / "out").exists() or not any((folder / "out").iterdir())


def known_labels(folder: Path, capsys: Captured) -> None:
    memories = [{"id": "m-1", "content": "one"}, {"id": "m-2", "content": "two"}]
    questions = [{"id": "q-1", "text": "one?", "relevant": {"m-1": 2, "m-2": 2}}]
    assert len(load(str(native_set(folder / "set", memories, questions))).questions[0].relevant) == 2


# 2. No question left after filtering.


def nothing_left(folder: Path, capsys: Captured) -> None:
    part = changed(JUDGED, split="dev")
    assert "no question is left of split 'test'" in refused(lambda: select(part, split="test"))
    unasked = hashed(part.info, {**part.corpora, "unasked": part.corpora["main"]}, part.questions)
    assert "no question is left after the selection" in refused(lambda: select(unasked, corpora=["unasked"]))
    nothing = select(JUDGED, limit=1)
    empty = changed(nothing, relevant={}, expects_empty=True)
    fired(measured(system(empty), labelled=empty), "nothing-measured", "error", "no question counts in nDCG@5")


def something_left(folder: Path, capsys: Captured) -> None:
    part = select(changed(JUDGED, split="dev"), split="dev")
    assert [one.id for one in part.questions] == ["q-0"]
    silent(measured(system(part, {0: 2}), labelled=part))


# 3. The primary measure is 0 on every question for every system.

LOST = dict.fromkeys(range(10), 0)


def all_zero(folder: Path, capsys: Captured) -> None:
    one, two = system(JUDGED, LOST, "one"), system(JUDGED, LOST, "two", fill="x-1")
    fired(measured(one, two), "all-zero", "error", "labels and returned ids do not meet")
    # By name it is allowed; a single system at 0 is a warning.
    assert measured(one, two, allow_zero=["one", "two"]).valid
    assert not measured(one, two, allow_zero=["one"]).valid
    fired(measured(one, system(JUDGED, MIXED)), "zero", "warning", "nDCG@5 is 0 on every question")


def not_all_zero(folder: Path, capsys: Captured) -> None:
    silent(measured(system(JUDGED, {**LOST, 3: 1})))
    # Of a lower-is-better measure 0 is what one hopes for.
    leaky = made_set(10, forbidden=range(10), judged=[f"x-{n}" for n in range(30)])
    leaky = hashed(
        leaky.info,
        leaky.corpora,
        [msgspec.structs.replace(q, not_relevant=q.not_relevant[1:]) for q in leaky.questions],
    )
    assert measured(system(leaky, MIXED), labelled=leaky, names="Leak Judged@5").valid


# 4. Saturated, or two systems equal on every question.


def saturated(folder: Path, capsys: Captured) -> None:
    fired(measured(system(JUDGED)), "saturated", "warning", "plugin reaches nDCG@5 1.000: saturated from 0.98 on")
    twins = measured(system(JUDGED, MIXED, "one"), system(JUDGED, MIXED, "two", fill="x-1"))
    fired(twins, "equal-systems", "warning", "equal in every measure on every question: one, two")


def tells_apart(folder: Path, capsys: Captured) -> None:
    # Nine of ten at rank 1 and one not found: 0.9 is under 0.98; the second differs on one question.
    silent(measured(system(JUDGED, {0: 0}, "one"), system(JUDGED, {0: 0, 1: 2}, "two")))


# 5. Questions without a relevant memory counted in recall.


def without_relevant(folder: Path, capsys: Captured) -> None:
    """`all([])` would be 1 and `any([])` 0; neither enters: the mean is over the nine others."""
    labelled = changed(JUDGED, relevant={}, expects_empty=True)
    names = "AllR@5 Success@5 R@5 Abstain Judged@5"
    found = measured(system(labelled, {1: 0}), labelled=labelled, names=names)
    fired(found, "no-relevant", "info", "1 of 10 questions have no relevant memory; they count in Abstain and Leak")
    for m in range(3):
        assert found.counts[0, m].tolist() == [False] + [True] * 9
        assert found.values[0, m][found.counts[0, m]].mean() == pytest.approx(8 / 9)
    assert found.counts[0, 3].tolist() == [True] + [False] * 9


def all_with_relevant(folder: Path, capsys: Captured) -> None:
    silent(measured(system(JUDGED, {1: 0}), names="AllR@5 Success@5 R@5 Judged@5"))


# 6. Any-hit printed as recall.


def any_hit(folder: Path, capsys: Captured) -> None:
    """Of two relevant memories one comes back: any hit 1, recall 1/2, all of them 0. Each has its own name."""
    labelled = changed(JUDGED, relevant={"m-0": 2, "m-1": 2})
    found = measured(system(labelled, {2: 0}), labelled=labelled, names="Success@5 R@5 AllR@5 Judged@5")
    assert found.values[0, :3, 0].tolist() == [1, 1 / 2, 0]
    report = summary_markdown(found, None)
    assert [f" {name} " in report for name in ("Success@5", "R@5", "AllR@5")] == [True] * 3
    assert "recall@" not in report.lower()
    for name in ("Recall@5", "recall@5", "Hit@5", "hit_rate@5", "Recall_any@5"):
        assert "unknown measure" in refused(parse_measure, name)


def any_hit_is_recall(folder: Path, capsys: Captured) -> None:
    """With one relevant memory a question, or none found, the three are the same number."""
    found = measured(system(JUDGED, {2: 0}), names="Success@5 R@5 AllR@5 Judged@5")
    assert (found.values[0, 0] == found.values[0, 1]).all()
    assert (found.values[0, 1] == found.values[0, 2]).all()
    silent(found)


# 7. Always the same number of rows, fewer than asked for and than the declared capacity.


def swallowed_limit(folder: Path, capsys: Captured) -> None:
    fired(measured(system(JUDGED, MIXED), depth=20), "short-lists", "warning", "where 20 were asked for")
    wide = dataclasses.replace(system(JUDGED, MIXED), capacity=10)
    fired(measured(wide, depth=20), "short-lists", "warning", "plugin 5")


def whole_lists(folder: Path, capsys: Captured) -> None:
    silent(measured(dataclasses.replace(system(JUDGED, MIXED), capacity=5), depth=20))
    uneven = system(JUDGED, MIXED)
    ids = (uneven.ids[0][:4], *uneven.ids[1:])
    scores = (uneven.scores[0][:4], *uneven.scores[1:])
    silent(measured(dataclasses.replace(uneven, ids=ids, scores=scores), depth=20))


# 8. Repeated ids fill slots.


def repeated(folder: Path, capsys: Captured) -> None:
    run = system(JUDGED, {**MIXED, 0: 1})
    ids = (("x-1", "x-1", "m-0", "m-0", "x-2"), *run.ids[1:])
    found = measured(dataclasses.replace(run, ids=ids))
    fired(found, "repeated-ids", "warning", "2 repeated ids; each counted once, at its first place")
    assert found.values[0, 1, 0] == 1 / 2  # x-1, m-0, x-2


def not_repeated(folder: Path, capsys: Captured) -> None:
    silent(measured(system(JUDGED, MIXED)))


# 9. A baseline made from other memories.


def other_memories(folder: Path, capsys: Captured) -> None:
    made = baseline_of(measured(system(JUDGED, MIXED)), "task", {}, {}, "")
    memories = list(JUDGED.corpora["main"].memories)
    memories[3] = msgspec.structs.replace(memories[3], content="as many rows, another text")
    other = hashed(JUDGED.info, {"main": Corpus("main", memories)}, JUDGED.questions)
    message = refused(places_of, made, other, "baseline")
    assert "was made on other memories than made has now: 1 changed ('m-3')" in message


def other_labels(folder: Path, capsys: Captured) -> None:
    made = baseline_of(measured(system(JUDGED, MIXED)), "task", {}, {}, "")
    assert places_of(made, JUDGED, "baseline") == (list(range(10)), [])
    _, [note] = places_of(made, changed(JUDGED, relevant={"m-0": 1}), "baseline")
    assert "scored anew from its stored lists" in note


# 10. Answers differ between repeats.


def flaky(folder: Path, capsys: Captured) -> None:
    """A real process that answers another list the second time; the first one counts, not the better one."""
    found = run_system(
        folder, capsys, f"stdio:{python_command('better-later', str(folder))}", "--repeats", "2", stop_s=0.5
    )
    assert found.code == 0
    assert found.checks["flaky"] == [
        "another list came back for 6 of 6 questions in 2 repeats; the first answer counts"
    ]
    assert set(found.rr.values()) == {1 / 2}


def steady(folder: Path, capsys: Captured) -> None:
    found = run_system(folder, capsys, f"stdio:{python_command('good', str(folder))}", "--repeats", "2", stop_s=0.5)
    assert found.code == 0
    assert "flaky" not in found.checks


# 11. Ties at the cutoff.


def tied(folder: Path, capsys: Captured) -> None:
    """Rows 1 and 2 share a score in q-0: its answer stands at 1 or at 2. RR is 1 or 1/2 there; others as they are."""
    run = system(JUDGED, {**MIXED, 0: 1})
    scores = ((0.0, 0.0, -2.0, -3.0, -4.0), *run.scores[1:])
    found = measured(dataclasses.replace(run, scores=scores), names="RR Judged@5")
    mean = np.mean([1 / MIXED[n] if n else 1 for n in range(10)])
    fired(found, "ties", "info", f"plugin {mean:.3f} in [{mean - 0.05:.3f}, {mean:.3f}]")


def harmless_ties(folder: Path, capsys: Captured) -> None:
    run = system(JUDGED, {**MIXED, 0: 1})
    scores = ((0.0, -1.0, -2.0, -4.0, -4.0), *run.scores[1:])  # two rows that answer nothing
    silent(measured(dataclasses.replace(run, scores=scores)))


# 12. Scores not in the order of the list.


def disordered(folder: Path, capsys: Captured) -> None:
    run = system(JUDGED, {**MIXED, 0: 2})
    scores = ((-1.0, 0.0, -2.0, -3.0, -4.0), *run.scores[1:])  # by score the answer would be first
    found = measured(dataclasses.replace(run, scores=scores))
    fired(found, "scores-not-in-order", "warning", "the order of the list counts): plugin 1")
    assert found.values[0, 1, 0] == 1 / 2


def ordered(folder: Path, capsys: Captured) -> None:
    silent(measured(system(JUDGED, {**MIXED, 0: 2})))


# 13. Unjudged hits.


def unjudged(folder: Path, capsys: Captured) -> None:
    """Four of each five rows carry no label; the gate lists them where they could change its verdict."""
    labelled = made_set(10)
    fired(measured(system(labelled, MIXED), labelled=labelled), "unjudged", "info", "plugin 0.20")
    rules = policy(margins={"P@5": 0.05}, unjudged="bounds")
    result = gated(labelled, system(labelled, MIXED), system(labelled, MIXED, fill="x-1"), rules)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert len(result.unjudged) == 8 * 10


def judged(folder: Path, capsys: Captured) -> None:
    silent(measured(system(JUDGED, MIXED)))
    rules = policy(margins={"P@5": 0.05}, unjudged="bounds")
    result = gated(JUDGED, system(JUDGED, MIXED), system(JUDGED, MIXED, fill="x-1"), rules)
    assert (result.verdict, len(result.unjudged)) == (Verdict.PASS, 0)


# 14. Chosen and judged on the same questions.


def swept(**fields: Callable[[int], Any]) -> Any:
    questions = [
        msgspec.structs.replace(one, **{name: value(n) for name, value in fields.items()})
        for n, one in enumerate(JUDGED.questions)
    ]
    labelled = hashed(JUDGED.info, JUDGED.corpora, questions)
    grid = Grid(SearchRecipe("sweep", channels=("keyword", "bm25")), methods=("rrf",), k=(1, 60), pools=(5,))
    return sweep_set(labelled, CandidateCache(), grid, [parse_measure("RR")])


def same_questions(folder: Path, capsys: Captured) -> None:
    found = swept(cluster=lambda n: None)
    assert found.how == "descriptive"
    assert "chosen and judged on the same 10 questions; not a held-out figure" in found.sentence


def held_out(folder: Path, capsys: Captured) -> None:
    found = swept(split=lambda n: "dev" if n < 4 else "test")
    assert found.how == "dev/test"
    assert "on 6 test questions" in found.sentence
    folds = swept(cluster=lambda n: f"c-{n % 5}")
    assert folds.how == "cross-validation"
    assert "on 10 held-out questions (5 folds of whole clusters" in folds.sentence
    assert not any("not a held-out figure" in one.sentence for one in (found, folds))


class Row(NamedTuple):
    """A trust check and the tests that show it firing and silent."""

    check: str
    fires: Callable[[Path, Captured], None]
    silent: Callable[[Path, Captured], None]


TABLE = [
    Row("a label names a memory that is not in the corpus", unknown_label, known_labels),
    Row("no question left after filtering", nothing_left, something_left),
    Row("the primary measure is 0 on every question for every system", all_zero, not_all_zero),
    Row("saturated, or two systems equal on every question", saturated, tells_apart),
    Row("questions without a relevant memory counted in recall", without_relevant, all_with_relevant),
    Row("any-hit printed as recall", any_hit, any_hit_is_recall),
    Row("always the same number of rows, fewer than asked for", swallowed_limit, whole_lists),
    Row("repeated ids fill slots", repeated, not_repeated),
    Row("baseline made from other memories", other_memories, other_labels),
    Row("answers differ between repeats", flaky, steady),
    Row("ties at the cutoff", tied, harmless_ties),
    Row("scores not in the order of the list", disordered, ordered),
    Row("unjudged hits", unjudged, judged),
    Row("chosen and judged on the same questions", same_questions, held_out),
]


def test_there_are_fourteen() -> None:
    assert len({row.check for row in TABLE}) == 14


@pytest.mark.parametrize("row", TABLE, ids=[f"{n}-{row.check}" for n, row in enumerate(TABLE, 1)])
def test_it_fires(row: Row, tmp_path: Path, capsys: Captured) -> None:
    row.fires(tmp_path, capsys)


@pytest.mark.parametrize("row", TABLE, ids=[f"{n}-{row.check}" for n, row in enumerate(TABLE, 1)])
def test_it_is_silent(row: Row, tmp_path: Path, capsys: Captured) -> None:
    row.silent(tmp_path, capsys)
