"""Entity and recent channels, and the adaptive threshold."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from recallstack.ranking.channels import retrieve
from recallstack.ranking.channels.threshold import adaptive_threshold
from recallstack.ranking.rows import Corpus, Memory
from recallstack.ranking.specs import EntitySpec, RecentSpec

LINKED = Corpus.of(
    "c",
    [
        Memory(id="0", entities={"Kafka": "relation"}),
        Memory(id="1", entities={"kafka": "attribute", "C++": "attribute"}),
        Memory(id="2", entities={"数据库": "relation", "Kafka": "relation"}),
        Memory(id="3", entities={" ": "attribute", "": "attribute", "Big Bird": "attribute"}),
        Memory(id="4"),
    ],
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Where does KAFKA run?", [(1, 1.0), (0, 0.9), (2, 0.9)]),
        ("kafkaesque", []),
        ("zkafka", []),
        ("kafka_2", []),
        ("Kafka是什么", [(1, 1.0), (0, 0.9), (2, 0.9)]),
        ("主数据库在哪", [(2, 0.9)]),
        ("c++11 or c", [(1, 1.0)]),
        ("abc++", []),
        ("c", []),
        ("big bird", [(3, 1.0)]),
        ("数据库 and big bird and kafka", [(1, 1.0), (3, 1.0), (0, 0.9), (2, 0.9)]),
        ("", []),
        ("\0\ud800", []),
    ],
)
def test_entities_that_a_query_names(query: str, expected: list[tuple[int, float]]) -> None:
    assert retrieve(LINKED, [query], EntitySpec(), 10).candidates.to_lists() == [expected]
    assert retrieve(LINKED, [query], EntitySpec(), 1).candidates.to_lists() == [expected[:1]]


def test_entity_scores_are_settings() -> None:
    spec = EntitySpec(attribute_score=0.2, relation_score=0.5)
    assert retrieve(LINKED, ["kafka"], spec, 10).candidates.to_lists() == [[(0, 0.5), (2, 0.5), (1, 0.2)]]
    assert retrieve(Corpus.of("c", []), ["kafka"], spec, 10).candidates.to_lists() == [[]]


def test_recent_is_newest_first_whatever_the_query() -> None:
    days = [dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 2, 3)]
    times = [None, days[0], days[2], days[1], days[2], None]
    corpus = Corpus.of("c", [Memory(id=str(i), updated_at=time) for i, time in enumerate(times)])
    # Rows 2 and 4: none is newer, 6/6. Row 3: two are, 4/6. Row 1: 3/6. Rows 0 and 5 without a time: 2/6.
    expected = [(2, 1.0), (4, 1.0), (3, 4 / 6), (1, 3 / 6), (0, 2 / 6), (5, 2 / 6)]
    assert retrieve(corpus, ["a", ""], RecentSpec(), 9).candidates.to_lists() == [expected, expected]
    assert retrieve(corpus, ["a"], RecentSpec(), 3).candidates.to_lists() == [expected[:3]]
    assert retrieve(Corpus.of("c", []), ["a"], RecentSpec(), 3).candidates.to_lists() == [[]]
    assert retrieve(corpus, [], RecentSpec(), 3).candidates.questions == 0


def test_negative_depth_is_refused() -> None:
    with pytest.raises(ValueError, match="depth is -1"):
        retrieve(LINKED, ["a"], RecentSpec(), -1)


@pytest.mark.parametrize(
    ("query", "scores", "expected"),
    [
        ("entity:x", [0.9, 0.1, 0.1, 0.1, 0.1], 0.5),
        ("attr:" + "x" * 60, [], 0.5),
        ("abcd", [0.9, 0.1, 0.1, 0.1, 0.1], 0.7),  # 4 characters
        ("", [], 0.7),
        ("abcde", [], 0.65),
        ("x" * 50, [], 0.65),
        ("x" * 51, [0.9, 0.1, 0.1, 0.1, 0.1], 0.6),  # 51 characters
        ("abcde", [0.9, 0.8, 0.7, 0.6, 0.5], 0.5),  # 0.4 above the fifth
        ("abcde", [0.75, 0.7, 0.6, 0.55, 0.5], 0.65),  # 0.25 above the fifth
        ("abcde", [0.9, 0.1, 0.1, 0.1], 0.65),  # four scores
    ],
)
def test_adaptive_threshold(query: str, scores: list[float], expected: float) -> None:
    alone = adaptive_threshold([query], np.array([scores], np.float64).reshape(1, len(scores)))
    assert alone.tolist() == [expected]
    padded = np.full((2, 7), np.nan)
    padded[0, : len(scores)] = scores
    assert adaptive_threshold([query, "abcde"], padded).tolist() == [expected, 0.65]
