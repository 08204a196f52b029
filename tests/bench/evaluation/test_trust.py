"""Each trust check of a run, firing and silent."""

from __future__ import annotations

import numpy as np
import pytest

from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.evaluation.evaluate import Evaluation, evaluate
from recallbench.measures import parse_measure
from recallbench.systems.base import SystemRun
from recallstack.errors import InputError
from recallstack.ranking.rows import Corpus, Memory

CORPUS = Corpus.of("main", [Memory(id=name) for name in "abcdefgh"])
QUESTIONS = (
    Question(id="q1", text="1", relevant={"a": 2}, not_relevant=("b", "c", "d", "e", "f", "g", "h")),
    Question(id="q2", text="2", relevant={"b": 2}, not_relevant=("a", "c", "d", "e", "f", "g", "h")),
)
GOOD = ["abcde", "cbade"]
OTHER = ["bacd", "abcde"]


def system(name: str, lists: list[str], **more: object) -> SystemRun:
    values = {
        "scores": tuple(tuple(1.0 - i / 10 for i in range(len(one))) for one in lists),
        "semantic": np.ones(len(lists), np.int32),
        "failed": np.zeros(len(lists), np.bool_),
    }
    return SystemRun(name, {}, tuple(tuple(one) for one in lists), **{**values, **more})  # type: ignore[arg-type]


def run(*systems: SystemRun, questions: tuple[Question, ...] = QUESTIONS, depth: int = 5, **more: object) -> Evaluation:
    labelled = LabelledSet(SetInfo("t"), {"main": CORPUS}, questions)
    measures = [parse_measure("nDCG@5"), parse_measure("RR"), parse_measure("Judged@5")]
    return evaluate(labelled, systems, measures, depth, **more)  # type: ignore[arg-type]


def named(evaluation: Evaluation, name: str) -> list[str]:
    return [one.message for one in evaluation.checks if one.name == name]


def test_a_sound_run_is_silent_and_valid() -> None:
    evaluation = run(system("one", GOOD), system("two", OTHER))
    assert evaluation.checks == ()
    assert evaluation.valid


def test_labels_that_contradict_themselves_make_a_run_invalid() -> None:
    both = Question(id="q1", text="1", relevant={"a": 2}, forbidden=("a",))
    evaluation = run(system("one", GOOD), questions=(both, QUESTIONS[1]))
    assert not evaluation.valid
    [message] = named(evaluation, "labels")
    assert message.startswith("the labels contradict themselves: q1: relevant and forbidden at once: a")
    assert named(run(system("one", GOOD)), "labels") == []


def test_all_zero_is_an_error_unless_allowed_by_name() -> None:
    evaluation = run(system("one", ["cd", "de"]), system("two", ["cde", "d"]))
    assert not evaluation.valid
    assert "labels and returned ids do not meet" in named(evaluation, "all-zero")[0]
    assert run(system("one", ["cd", "de"]), allow_zero=["one"]).valid


def test_one_system_at_zero_is_a_warning() -> None:
    evaluation = run(system("one", ["cd", "de"]), system("two", GOOD))
    assert evaluation.valid
    assert named(evaluation, "zero") == ["nDCG@5 is 0 on every question"]


def test_nothing_measured_is_an_error() -> None:
    nothing = (Question(id="q", text="x", expects_empty=True), Question(id="r", text="y", expects_empty=True))
    evaluation = run(system("one", GOOD), questions=nothing)
    assert not evaluation.valid
    assert "no question counts in nDCG@5" in named(evaluation, "nothing-measured")[0]


def test_questions_without_a_relevant_memory_are_told() -> None:
    evaluation = run(system("one", GOOD), questions=(QUESTIONS[0], Question(id="r", text="y", expects_empty=True)))
    assert "1 of 2 questions have no relevant memory" in named(evaluation, "no-relevant")[0]


def test_saturation_warns() -> None:
    assert "saturated" in named(run(system("one", ["abc", "bacde"])), "saturated")[0]
    assert named(run(system("one", GOOD)), "saturated") == []


def test_systems_that_are_equal_on_every_question_are_named_together() -> None:
    evaluation = run(system("one", GOOD), system("two", GOOD), system("three", OTHER))
    assert named(evaluation, "equal-systems") == ["equal in every measure on every question: one, two"]


def test_a_swallowed_limit_warns_with_the_number() -> None:
    swallowed = ["abc", "cba"]
    [message] = named(run(system("one", swallowed)), "short-lists")
    assert message.startswith("always the same number of rows where 5 were asked for")
    assert message.endswith(": one 3")
    whole = "".join(memory.id for memory in CORPUS.memories)
    assert named(run(system("one", [whole, whole[::-1]]), depth=50), "short-lists") == []  # no more are there
    assert named(run(system("one", swallowed, capacity=3)), "short-lists") == []
    assert named(run(system("one", ["abc", "cb"])), "short-lists") == []


def test_repeated_ids_are_told_and_counted_once() -> None:
    evaluation = run(system("one", ["cac", "bbbb"]))
    assert named(evaluation, "repeated-ids") == ["4 repeated ids; each counted once, at its first place"]
    assert evaluation.values[0, 1].tolist() == [0.5, 1.0]


def test_scores_out_of_order_warn() -> None:
    scores = ((0.1, 0.9, 0.5, 0.4, 0.3), (0.5, 0.4, 0.3, 0.2, 0.1))
    assert (
        "(questions of 2; the order of the list counts): one 1"
        in named(run(system("one", GOOD, scores=scores)), "scores-not-in-order")[0]
    )


def test_ties_show_their_bounds_where_they_matter() -> None:
    scores = ((1.0, 1.0, 0.5, 0.4, 0.3), (1.0, 1.0, 0.3, 0.2, 0.1))
    message = named(run(system("one", GOOD, scores=scores)), "ties")[0]
    # nDCG@5 of rank 1 is 1, of rank 2 1/log2(3) = 0.631: q1 lies in [0.631, 1], q2 (c, b tied) too.
    assert "one 0.815 in [0.631, 1.000]" in message
    same = ((1.0, 0.9, 0.4, 0.4, 0.3), (1.0, 0.9, 0.3, 0.3, 0.1))
    assert named(run(system("one", GOOD, scores=same)), "ties") == []


def test_unjudged_hits_are_told() -> None:
    bare = tuple(Question(id=q.id, text=q.text, relevant=q.relevant) for q in QUESTIONS)
    assert "one 0.20" in named(run(system("one", GOOD), questions=bare), "unjudged")[0]


def test_failed_questions_make_a_run_invalid() -> None:
    evaluation = run(system("one", ["", "bacde"], failed=np.array([True, False])))
    assert not evaluation.valid
    assert "no valid answer to 1 of 2 questions (first: q1)" in named(evaluation, "failed-questions")[0]
    assert evaluation.values[0, 0].tolist() == [0, 1]


def test_what_a_system_says_is_shown() -> None:
    assert named(run(system("one", GOOD, notes=("index of another dimension",))), "system-note")


def test_two_systems_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="two systems are named 'one'"):
        run(system("one", GOOD), system("one", OTHER))


@pytest.mark.parametrize("primary", ["Leak", "Stale", "Abstain", "Judged@5", "Tokens"])
def test_any_measure_may_be_the_primary_one_where_scores_tie(primary: str) -> None:
    """Leak of [a, b] with b forbidden and both scores equal: 1 in either order, and no missing facts."""
    questions = (Question(id="q1", text="1", relevant={"a": 2}, forbidden=("b",)), QUESTIONS[1])
    labelled = LabelledSet(SetInfo("t"), {"main": CORPUS}, questions)
    one = system("one", ["ab", "ba"], scores=((1.0, 1.0), (1.0, 0.5)))
    evaluation = evaluate(labelled, [one], [parse_measure(primary)], 5, allow_zero=["one"])
    assert len(evaluation.values) == 1
    if primary == "Leak":
        assert evaluation.values[0, 0, 0] == 1.0
