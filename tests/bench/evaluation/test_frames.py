"""Pandas in and out: round trips, order of answers, and one clear line for every mistake."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallbench import Experiment, from_frames, load, system_from_frame, to_frames
from recallstack.errors import InputError

MEMORIES = pd.DataFrame({"id": ["m1", "m2", "m3"], "content": ["kettle left", "tea at 80", "茶壶在左边"]})
QUESTIONS = pd.DataFrame({"text": ["kettle", "tea", "茶壶"], "relevant": ["m1", ["m2", "m3"], {"m3": 1}]})


def kitchen():
    return from_frames(MEMORIES, QUESTIONS, name="kitchen")


@pytest.mark.parametrize("name", ["mneme-memories", "notes-vault", "kb-preretrieval"])
def test_a_set_survives_the_round_trip(name: str) -> None:
    """Hashes cover every field of memories, what is asked, and labels."""
    one = load(name)
    again = from_frames(*to_frames(one), name=name)
    assert again.memories_hash == one.memories_hash
    assert again.questions_hash == one.questions_hash
    assert again.labels_hash == one.labels_hash


def test_labels_are_an_id_a_list_or_grades() -> None:
    made = kitchen()
    assert [dict(one.relevant) for one in made.questions] == [{"m1": 2}, {"m2": 2, "m3": 2}, {"m3": 1}]
    assert [one.id for one in made.questions] == ["q1", "q2", "q3"]


def test_cells_of_pandas_become_plain_values() -> None:
    memories = MEMORIES.assign(
        importance=np.array([5, 3, 1], np.int64),
        archived=[True, None, np.bool_(False)],
        updated_at=pd.to_datetime(["2026-05-01T09:00:00Z", None, "2026-05-02"], format="ISO8601", utc=True),
        tags=[np.array(["a", "b"]), None, ()],
        supersedes=[np.nan, "m1", pd.NA],
    )
    first, second, third = from_frames(memories, QUESTIONS).corpora["main"].memories
    assert (first.importance, first.archived, first.tags) == (5, True, ("a", "b"))
    assert first.updated_at == dt.datetime(2026, 5, 1, 9, tzinfo=dt.UTC)
    assert (second.archived, second.updated_at, second.supersedes) == (False, None, "m1")
    assert (third.archived, third.supersedes) == (False, None)


@pytest.mark.parametrize(
    ("memories", "questions", "says"),
    [
        (MEMORIES.drop(columns="content"), QUESTIONS, "memories: no column 'content'; columns there: id"),
        (MEMORIES, QUESTIONS.drop(columns="text"), "questions: no column 'text'"),
        (MEMORIES.assign(contents=1), QUESTIONS, "memories: unknown column 'contents'; did you mean 'content'"),
        (MEMORIES.assign(importance=[3, 9, 3]), QUESTIONS, r"memories.iloc\[1\].*importance"),
        (
            pd.concat([MEMORIES, MEMORIES.head(1)]),
            QUESTIONS,
            r"memories.iloc\[3\]: memory id 'm1' is already at memories.iloc\[0\]",
        ),
        (MEMORIES, QUESTIONS.assign(relevant="zz"), r"questions.iloc\[0\]: question 'q1'.*'zz'"),
        (MEMORIES, QUESTIONS.assign(id="q"), r"questions.iloc\[1\]: question 'q' is already"),
        (MEMORIES.head(0), QUESTIONS, "memories: holds no memory"),
        (MEMORIES, QUESTIONS.head(0), "questions: holds no question"),
    ],
)
def test_mistakes_get_one_line(memories: pd.DataFrame, questions: pd.DataFrame, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        from_frames(memories, questions)
    assert "\n" not in str(caught.value)


ANSWERS = pd.DataFrame({"question": ["q1", "q2", "q1"], "memory": ["m2", "m2", "m1"], "score": [0.2, 0.5, 0.9]})


def lists(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    return list(system_from_frame("mine", frame).run(kitchen(), 20).ids)


def test_answers_are_ordered_by_rank_then_score_then_row() -> None:
    assert lists(ANSWERS) == [("m1", "m2"), ("m2",), ()]
    assert lists(ANSWERS.drop(columns="score")) == [("m2", "m1"), ("m2",), ()]
    assert lists(ANSWERS.assign(rank=[1, 1, 2])) == [("m2", "m1"), ("m2",), ()]
    assert lists(ANSWERS.assign(score=0.5)) == [("m2", "m1"), ("m2",), ()]


def test_no_more_rows_come_back_than_were_asked_for() -> None:
    run = system_from_frame("mine", ANSWERS).run(kitchen(), 1)
    assert run.ids == (("m1",), ("m2",), ())
    assert run.scores == ((0.9,), (0.5,), ())


def test_an_answered_frame_is_measured_like_any_system() -> None:
    # RR: m1 at rank 1; m2 at rank 1; nothing for q3. Grade 2 counts: q3 has only a grade 1 and no say.
    table = Experiment(kitchen(), [system_from_frame("mine", ANSWERS)], ["RR"]).table()
    assert table["mean"].tolist() == [1.0]
    assert table["n"].tolist() == [2]


def test_the_hits_of_a_result_are_a_system_again() -> None:
    first = Experiment("kb-preretrieval", ["rrf-k60"], ["nDCG@5", "R@20"])
    again = Experiment("kb-preretrieval", [system_from_frame("rrf-k60", first.hits)], ["nDCG@5", "R@20"])
    pd.testing.assert_frame_equal(first.table(), again.table())


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (ANSWERS.drop(columns="memory"), "no column 'memory'"),
        (ANSWERS.assign(score=[0.1, np.nan, 0.2]), r"row iloc\[1\] has no score"),
        (pd.concat([ANSWERS, ANSWERS.head(1)]), "question 'q1' has memory 'm2' twice"),
        (ANSWERS.assign(memory=["zz", "m2", "m1"]), "question 'q1': no memory 'zz' in corpus 'main'"),
        (ANSWERS.assign(question=["x", "y", "z"]), "none of its questions is in set 'kitchen'"),
    ],
)
def test_bad_answers_get_one_line(frame: pd.DataFrame, says: str) -> None:
    with pytest.raises(InputError, match=says):
        lists(frame)


def test_questions_that_were_not_asked_are_told() -> None:
    more = pd.concat([ANSWERS, pd.DataFrame({"question": ["q9"], "memory": ["m1"], "score": [1.0]})])
    assert system_from_frame("mine", more).run(kitchen(), 20).notes == (
        "the frame also answers 1 questions that were not asked",
    )


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["q1", "q2", "q3"]), st.sampled_from(["m1", "m2", "m3"])), unique=True))
def test_any_frame_keeps_its_order(pairs: list[tuple[str, str]]) -> None:
    frame = pd.DataFrame(pairs, columns=["question", "memory"])
    if not len(frame):
        return
    assert lists(frame) == [tuple(m for q, m in pairs if q == name) for name in ("q1", "q2", "q3")]
