"""Vector channel: exact cosines, rounded, in a defined order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recallstack.errors import InputError
from recallstack.ranking import embedders as embed
from recallstack.ranking.channels import retrieve
from recallstack.ranking.channels.vector import VectorIndex
from recallstack.ranking.rows import Corpus, Memory
from recallstack.ranking.specs import VectorSpec

small = st.integers(-3, 3).map(float)
rows_of_3 = st.lists(st.tuples(small, small, small), max_size=120)


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "_REGISTERED", {})


def corpus_of(*contents: str) -> Corpus:
    return Corpus.of("c", [Memory(id=str(i), content=text) for i, text in enumerate(contents)])


def numbers(texts: Sequence[str]) -> list[list[float]]:
    """The numbers in a text are its vector."""
    return [[float(part) for part in text.split()] for text in texts]


def brute_force(vectors: NDArray[np.float64], query: NDArray[np.float64], depth: int) -> list[tuple[int, float]]:
    if not query.any():
        return []
    cosine = {
        i: round(float(row @ query / (np.linalg.norm(row) * np.linalg.norm(query))), 7)
        for i, row in enumerate(vectors)
        if row.any()
    }
    return sorted(cosine.items(), key=lambda one: (-one[1], one[0]))[:depth]


@settings(deadline=None)
@given(rows_of_3, rows_of_3, st.integers(0, 8))
def test_equals_brute_force(rows: list[tuple[float, ...]], queries: list[tuple[float, ...]], depth: int) -> None:
    vectors, asked = np.reshape(np.array(rows), (-1, 3)), np.reshape(np.array(queries), (-1, 3))
    got = VectorIndex(vectors).top(asked, depth).to_lists()
    for query, found in zip(asked, got, strict=True):
        expected = brute_force(vectors, query, depth)
        assert [i for i, _ in found] == [i for i, _ in expected]
        assert [s for _, s in found] == pytest.approx([s for _, s in expected], abs=1e-12)


@pytest.mark.parametrize("copies", [1, 40])
def test_ties_at_the_cut_go_by_position(copies: int) -> None:
    """3,000 rows through FAISS; many equal cosines, more than are fetched in reserve."""
    draw = np.random.default_rng(3)
    kinds = draw.normal(size=(3000 // copies, 8))
    vectors = kinds[draw.integers(0, len(kinds), 3000)] * draw.uniform(0.1, 9, (3000, 1))
    queries = draw.normal(size=(70, 8))
    queries[5] = 0
    got = VectorIndex(vectors).top(queries, 20).to_lists()
    for query, found in zip(queries, got, strict=True):
        assert [i for i, _ in found] == [i for i, _ in brute_force(vectors, query, 20)]
    alone = [VectorIndex(vectors).top(query[None], 20).to_lists()[0] for query in queries[:8]]
    assert alone == got[:8]


def test_cosines_that_differ_by_less_than_the_rounding_are_equal() -> None:
    vectors = np.array([[1.0, 2e-5], [1.0, 1e-5], [1.0, 0.0], [0.0, 1.0]])
    # cos = 1 - 2e-10, 1 - 5e-11, 1, 0: the first three round to 1.
    assert VectorIndex(vectors).top(np.array([[2.0, 0.0]]), 3).to_lists() == [[(0, 1.0), (1, 1.0), (2, 1.0)]]


def test_tiny_and_huge_vectors_have_a_cosine() -> None:
    vectors = np.array([[1e-300, 1e-300], [1e300, 0.0]])
    got = VectorIndex(vectors).top(np.array([[1e-310, 0.0]]), 2).to_lists()
    assert got == [[(1, 1.0), (0, 0.7071068)]]


def test_zero_vectors_are_unembedded() -> None:
    embed.register_embedder("numbers", numbers)
    corpus = corpus_of("1 0", "0 0", "1 1")
    got = retrieve(corpus, ["1 0", "0 0"], VectorSpec("numbers"), 5)
    assert got.candidates.to_lists() == [[(0, 1.0), (2, 0.7071068)], []]
    assert got.embedded is not None
    assert got.embedded.tolist() == [True, False, True]
    assert got.notes == ()


def test_other_dimensions_bring_nothing_and_a_note() -> None:
    embed.register_embedder("numbers", numbers)
    got = retrieve(corpus_of("1 0 0", "0 0 0"), ["1 0", "0 1"], VectorSpec("numbers"), 5)
    assert got.candidates.to_lists() == [[], []]
    assert got.embedded is not None
    assert got.embedded.tolist() == [True, False]
    (note,) = got.notes
    assert "2 dimensions" in note
    assert "index has 3" in note


def test_floor_and_adaptive_floor() -> None:
    embed.register_embedder("numbers", numbers)
    corpus = corpus_of("1 0", "0.6 0.8", "0.8 0.6", "0 1", "-1 0")
    everything = [(0, 1.0), (2, 0.8), (1, 0.6), (3, 0.0), (4, -1.0)]

    def ask(query: str, depth: int = 5, **settings: object) -> list[tuple[int, float]]:
        return retrieve(corpus, [query], VectorSpec("numbers", **settings), depth).candidates.to_lists()[0]  # type: ignore[arg-type]

    assert ask("1 0") == everything
    assert ask("1 0", floor=0.0) == everything[:4]
    assert ask("1 0", floor=0.8) == everything[:2]
    assert ask("1 0", adaptive=True) == everything[:2]  # 3 characters: 0.7
    assert ask("1.00 0", adaptive=True) == everything[:3]  # first exceeds fifth by 2: 0.5
    assert ask("1.00 0", 1, adaptive=True) == everything[:1]
    assert ask("1.00 0", 4, floor=0.7, adaptive=True) == everything[:2]


def test_instruction_goes_before_queries_only() -> None:
    seen: list[list[str]] = []

    def record(texts: list[str]) -> list[list[float]]:
        seen.append(texts)
        return [[1.0]] * len(texts)

    embed.register_embedder("record", record)
    retrieve(corpus_of("a"), ["b"], VectorSpec("record", instruction="Find: "), 1)
    assert seen == [[" a"], ["Find: b"]]


def test_documents_are_embedded_once_for_an_embedder() -> None:
    calls: list[int] = []

    def count(texts: list[str]) -> NDArray[np.float64]:
        calls.append(len(texts))
        return np.ones((len(texts), 2))

    embed.register_embedder("count", count)
    corpus = corpus_of("a", "b", "c")
    for floor in (None, 0.5):
        retrieve(corpus, ["x"], VectorSpec("count", floor=floor), 2)
    assert calls == [3, 1, 1]
    embed.register_embedder("count", numbers)  # replaced: the old index does not serve
    with pytest.raises(ValueError, match="could not convert"):
        retrieve(corpus, ["x"], VectorSpec("count"), 2)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda texts: [1.0] * len(texts), "one vector a text"),
        (lambda texts: [[1.0]], "one vector a text"),
        (lambda texts: [[float("nan")]] * len(texts), "not finite"),
    ],
)
def test_bad_embedders_are_named(function, message: str) -> None:  # type: ignore[no-untyped-def]
    embed.register_embedder("bad", function)
    with pytest.raises(InputError, match=f"embedder 'bad'.*{message}"):
        retrieve(corpus_of("a", "b"), ["x"], VectorSpec("bad"), 2)


@pytest.mark.parametrize("embedder", ["lsa", "hash3"])
@pytest.mark.parametrize("contents", [(), ("",), ("", " "), ("red",), ("red", "red"), ("红", "狐狸", "\0\ud800")])
def test_small_corpora(embedder: str, contents: tuple[str, ...]) -> None:
    corpus = corpus_of(*contents)
    queries = ["red", "", "红狐狸", "\0", "\ud800", "x" * 100_000]
    got = retrieve(corpus, queries, VectorSpec(embedder), 5)
    assert got.candidates.questions == len(queries)
    assert got.embedded is not None
    assert got.embedded.tolist() == [bool(text.strip()) for text in contents]
    if "red" in contents:
        assert got.candidates.to_lists()[0] == [(i, 1.0) for i in range(len(contents))]
    assert got.candidates.to_lists()[1] == []


def test_order_of_the_corpus_changes_ties_only() -> None:
    texts = [f"note {i % 7} about {'fox' if i % 3 else 'hen'} number {i}" for i in range(40)]
    turn = np.random.default_rng(4).permutation(40)
    first = retrieve(corpus_of(*texts), ["fox 3", "hen"], VectorSpec(), 40).candidates.to_lists()
    second = retrieve(corpus_of(*[texts[i] for i in turn]), ["fox 3", "hen"], VectorSpec(), 40).candidates.to_lists()
    for one, two in zip(first, second, strict=True):
        assert dict(one) == pytest.approx({int(turn[i]): s for i, s in two}, abs=2e-7)
