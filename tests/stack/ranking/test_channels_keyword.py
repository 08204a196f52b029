"""Keyword channel: SQLite LIKE."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallstack.ranking.channels import retrieve
from recallstack.ranking.rows import Corpus, Memory
from recallstack.ranking.specs import KeywordSpec

SPEC = KeywordSpec()
awkward = st.text(st.sampled_from("aAb%_\\\0\ud800é É狐"), max_size=4)


def corpus_of(*rows: tuple[str, str]) -> Corpus:
    return Corpus.of("c", [Memory(id=str(i), title=t, content=c) for i, (t, c) in enumerate(rows)])


def found(corpus: Corpus, query: str, depth: int = 10) -> list[tuple[int, float]]:
    return retrieve(corpus, [query], SPEC, depth).candidates.to_lists()[0]


def test_scores_and_order() -> None:
    day = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    rows = [
        Memory(id="a", title="x", content="Blue lantern", importance=5),  # 0.6 * 1.0
        Memory(id="b", title="blue LANTERN", content="blue lantern", importance=1),  # 1 * 0.6, title wins
        Memory(id="c", title="blue lantern", importance=3),  # 1 * 0.8
        Memory(id="d", content="a blue lantern here", importance=5, updated_at=day),  # 0.6, newer than a and b
        Memory(id="e", content="lantern blue"),
    ]
    corpus = Corpus.of("c", rows)
    assert found(corpus, "blue lantern") == [
        (2, pytest.approx(0.8)),
        (3, pytest.approx(0.6)),
        (0, pytest.approx(0.6)),
        (1, pytest.approx(0.6)),
    ]
    assert [i for i, _ in found(corpus, "blue lantern", 2)] == [2, 3]


@pytest.mark.parametrize("query", ["", " ", "\n\t"])
def test_blank_query_holds_nothing(query: str) -> None:
    assert found(corpus_of(("", ""), (" ", "\n\t ")), query) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [("100%", [0]), ("a_b", [1]), ("c\\d", [2]), ("%", [0]), ("_", [1]), ("\\", [2]), ("É", [4]), ("жук", [5])],
)
def test_special_characters_and_other_scripts(query: str, expected: list[int]) -> None:
    corpus = corpus_of(("", "100% of"), ("", "a_b"), ("", "c\\d"), ("", "100x axb cxd"), ("", "café"), ("ЖУК", ""))
    assert [i for i, _ in found(corpus, query)] == expected


def test_nul_and_lone_surrogates() -> None:
    corpus = corpus_of(("", "ab\0cd"), ("", "ab"), ("", "x\ud800y"))
    assert [i for i, _ in found(corpus, "b\0c")] == [0]
    assert [i for i, _ in found(corpus, "cd")] == [0]
    assert [i for i, _ in found(corpus, "x\ud800y")] == [2]
    assert found(corpus, "\0") == [(0, pytest.approx(0.48))]


@pytest.mark.parametrize("length", [49_997, 49_998, 49_999, 100_000])
def test_query_at_and_over_the_limit_of_like(length: int) -> None:
    query = "aB%_" * (length // 4) + "x" * (length % 4)
    corpus = corpus_of(("", f"<{query.upper()}>"), (query, ""), ("", query[:-1]), ("", "aBxx" * (length // 4)))
    assert [i for i, _ in found(corpus, query)] == [1, 0]


@settings(deadline=None)
@given(st.lists(st.tuples(awkward, awkward), max_size=6), st.lists(awkward, max_size=4))
def test_equals_substring_search_alone_and_in_a_batch(rows: list[tuple[str, str]], queries: list[str]) -> None:
    corpus = corpus_of(*rows)
    got = retrieve(corpus, queries, SPEC, 10).candidates.to_lists()
    for query, one in zip(queries, got, strict=True):
        holds = {
            i: (1.0 if query.lower() in t.lower() else 0.6) * 0.8
            for i, (t, c) in enumerate(rows)
            if query.strip() and (query.lower() in t.lower() or query.lower() in c.lower())
        }
        assert one == sorted(holds.items(), key=lambda hit: (-hit[1], hit[0]))
        assert one == found(corpus, query)


def test_empty_corpus() -> None:
    assert found(corpus_of(), "a") == []
