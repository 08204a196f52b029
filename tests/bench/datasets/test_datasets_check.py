"""Checks of a labelled set, each firing and silent."""

from __future__ import annotations

import pytest

from recallbench.datasets.model import LabelledSet, Question, Session, SetInfo
from recallbench.evaluation.check_set import check
from recallstack.ranking.rows import Corpus, Memory

MEMORIES = [
    Memory(id="a", content="The release window is on Thursday morning from ten to noon"),
    Memory(id="b", content="The release window is on Thursday morning from ten to noon."),
    Memory(id="c", content="The cat only eats fish", agent_scope="home-agent"),
    Memory(id="d", content="gone", archived=True),
]


def findings(*questions: Question) -> list[tuple[str, str, str]]:
    labelled = LabelledSet(SetInfo("t"), {"main": Corpus.of("main", MEMORIES)}, questions)
    return [(one.level, one.where, one.message) for one in check(labelled).findings if one.level != "info"]


def test_a_sound_question_is_silent() -> None:
    assert findings(Question(id="q", text="when do we ship", relevant={"a": 2, "b": 2})) == []


def test_contradictions_are_errors() -> None:
    found = findings(
        Question(id="q1", text="x", relevant={"c": 2}, expects_empty=True),
        Question(id="q2", text="y", relevant={"c": 2}, forbidden=("c",)),
        Question(id="q3", text="z", relevant={"c": 2}, not_relevant=("c",)),
    )
    assert [(level, where) for level, where, _ in found] == [("error", f"q{i}") for i in (1, 2, 3)]


def test_a_question_without_text_warns() -> None:
    """Public sets have some (CMRC 2018): no contradiction, so that a run of them is valid."""
    assert [one[:2] for one in findings(Question(id="q4", text=" ", relevant={"c": 2}))] == [("warning", "q4")]


def test_a_question_that_counts_nowhere_warns() -> None:
    assert findings(Question(id="q", text="x"))[0][:2] == ("warning", "q")
    assert findings(Question(id="q", text="x", expects_empty=True)) == []


def test_a_cluster_in_both_splits_is_an_error() -> None:
    found = findings(
        Question(id="q1", text="x", relevant={"c": 2}, cluster="k", split="dev"),
        Question(id="q2", text="y", relevant={"c": 2}, cluster="k", split="test"),
    )
    assert found == [("error", "cluster k", "stands in dev and in test; move it whole into one")]


def test_an_unlabelled_near_duplicate_warns() -> None:
    found = findings(Question(id="q", text="when do we ship", relevant={"a": 2}))
    assert len(found) == 1
    assert found[0][2].startswith("b has no label, and is ")


def test_relevant_memories_that_may_not_be_seen_warn() -> None:
    other = Session(agent_scope="ops-agent")
    assert "of agent home-agent" in findings(Question(id="q", text="x", relevant={"c": 2}, session=other))[0][2]
    assert "archived" in findings(Question(id="q", text="x", relevant={"d": 2}))[0][2]
    assert findings(Question(id="q", text="x", relevant={"c": 2}, session=Session(agent_scope="home-agent"))) == []


def test_questions_that_copy_their_memory_warn() -> None:
    labels = {"a": 2, "b": 2}
    assert "copy 80% or more" in findings(Question(id="q", text="the release window", relevant=labels))[0][2]
    exact = Question(id="q", text="the release window", relevant=labels, categories=("exact",))
    assert findings(exact) == []


def test_the_same_question_twice_warns() -> None:
    one = Question(id="q1", text="Fish?", relevant={"c": 2})
    assert "the same text" in findings(one, Question(id="q2", text="fish?", relevant={"c": 2}))[0][2]


def test_a_primary_measure_that_is_none_is_an_error() -> None:
    labelled = LabelledSet(
        SetInfo("t", primary_measure="nDGC@5"),
        {"main": Corpus.of("main", MEMORIES)},
        (Question(id="q", text="x", relevant={"a": 2, "b": 2}),),
    )
    [error] = [one for one in check(labelled).findings if one.level == "error"]
    assert error.where == "dataset.toml"
    assert "nDGC@5" in error.message


@pytest.mark.parametrize(("channel", "sees"), [("owner", True), ("group:1", False), ("guest-a", False), (None, False)])
def test_a_relevant_memory_above_the_level_of_the_channel_warns(channel: str | None, sees: bool) -> None:
    memories = [Memory(id="a", content="the safe is behind the picture", sensitivity="personal")]
    questions = (
        Question(id="q", text="where", relevant={"a": 2}, session=Session(channel=channel)),
        Question(id="r", text="who", expects_empty=True, session=Session(channel="owner")),
    )
    labelled = LabelledSet(SetInfo("t"), {"main": Corpus.of("main", memories)}, questions)
    found = [one.where for one in check(labelled).findings if "may not be seen" in one.message]
    assert found == ([] if sees else ["q"])
