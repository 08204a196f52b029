"""BM25 against rank-bm25, bm25s and the known answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pytest
import rank_bm25
from hypothesis import given, settings
from hypothesis import strategies as st

from recallstack.errors import InputError
from recallstack.ranking.channels import retrieve
from recallstack.ranking.channels.bm25 import BM25Index, best_positive
from recallstack.ranking.rows import Corpus, Memory
from recallstack.ranking.specs import BM25Spec
from recallstack.ranking.tokens import tokenize

Variant = Literal["okapi", "l", "plus", "lucene"]
CASES = Path(__file__).parents[2] / "cases" / "bm25.jsonl"
LIBRARY = {"okapi": rank_bm25.BM25Okapi, "l": rank_bm25.BM25L, "plus": rank_bm25.BM25Plus}
NAMES: dict[str, Variant] = {"BM25Okapi": "okapi", "BM25L": "l", "BM25Plus": "plus"}

tokens = st.lists(st.sampled_from([f"t{i}" for i in range(12)]), max_size=12)
corpora = st.lists(tokens, min_size=1, max_size=90).filter(any)
batches = st.lists(tokens, min_size=1, max_size=4)
untimed = settings(deadline=None)  # the first call may compile
settings_of_bm25 = st.tuples(st.floats(0.1, 3), st.floats(0, 0.99))


def memories(*contents: str) -> Corpus:
    return Corpus.of("c", [Memory(id=str(i), content=text) for i, text in enumerate(contents)])


def expected_top(scores: np.ndarray, documents: list[list[str]], query: list[str], depth: int) -> list[int]:
    shares = [i for i, document in enumerate(documents) if set(document) & set(query)]
    return sorted(shares, key=lambda i: (-scores[i], i))[:depth]


@pytest.mark.parametrize("line", CASES.read_text(encoding="utf-8").splitlines())
def test_known_answers(line: str) -> None:
    case = json.loads(line)
    for name, expected in case["expected"].items():
        spec = BM25Spec(variant=NAMES[name], k1=case["k1"], b=case["b"])
        got = BM25Index(case["documents"], spec).scores(case["queries"])
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9)


@untimed
@given(corpora, batches, settings_of_bm25, st.floats(0, 1))
def test_okapi_is_the_library_to_the_last_bit(
    documents: list[list[str]], queries: list[list[str]], k1_b: tuple[float, float], epsilon: float
) -> None:
    k1, b = k1_b
    library = rank_bm25.BM25Okapi(documents, k1=k1, b=b, epsilon=epsilon)
    index = BM25Index(documents, BM25Spec(k1=k1, b=b, epsilon=epsilon))
    got = index.scores(queries)
    top = index.top(queries, 5)
    for query, row, found in zip(queries, got, top.to_lists(), strict=True):
        scores = library.get_scores(query)
        assert np.array_equal(row, scores)
        rows = expected_top(scores, documents, query, 5)
        assert found == [(i, scores[i]) for i in rows]


@untimed
@given(st.sampled_from(["l", "plus"]), corpora, batches, settings_of_bm25)
def test_l_and_plus_equal_the_library(
    variant: Variant, documents: list[list[str]], queries: list[list[str]], k1_b: tuple[float, float]
) -> None:
    k1, b = k1_b
    library = LIBRARY[variant](documents, k1=k1, b=b)
    index = BM25Index(documents, BM25Spec(variant=variant, k1=k1, b=b))
    got = index.scores(queries)
    for query, row, found in zip(queries, got, index.top(queries, 100).to_lists(), strict=True):
        np.testing.assert_allclose(row, library.get_scores(query), rtol=0, atol=1e-9)
        assert sorted(i for i, _ in found) == sorted(expected_top(row, documents, query, 100))
        np.testing.assert_allclose([s for _, s in found], row[[i for i, _ in found]], rtol=0, atol=1e-9)
        assert found == sorted(found, key=lambda one: (-one[1], one[0]))


@untimed
@given(st.sampled_from(get_args(Variant)), corpora, batches, st.integers(1, 100))
def test_compiled_equals_numpy_to_the_last_bit(
    variant: Variant, documents: list[list[str]], queries: list[list[str]], depth: int
) -> None:
    pytest.importorskip("numba")
    index = BM25Index(documents, BM25Spec(variant=variant))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RECALLBENCH_FAST", raising=False)
        fast = index.top(queries, depth)
        patch.setenv("RECALLBENCH_FAST", "0")
        plain = index.top(queries, depth)
    assert fast.to_lists() == plain.to_lists()


@pytest.mark.parametrize("fast", ["0", "1"])
def test_large_corpus_with_many_ties(fast: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 documents of few words: whole blocks tie at the cut, and position decides."""
    monkeypatch.setenv("RECALLBENCH_FAST", fast)
    draw = np.random.default_rng(1)
    documents = [[f"t{t}" for t in draw.zipf(1.6, draw.integers(0, 6)).clip(1, 300)] for _ in range(20_003)]
    queries = [["t1"], ["t2", "t1", "t2"], ["t250"], ["t9", "t30", "t8"], ["none"], []]
    library = rank_bm25.BM25Okapi(documents)
    got = BM25Index(documents, BM25Spec()).top(queries, 50)
    for query, found in zip(queries, got.to_lists(), strict=True):
        scores = library.get_scores(query)
        assert found == [(i, scores[i]) for i in expected_top(scores, documents, query, 50)]


@untimed
@given(st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.0]), max_size=400), st.integers(1, 5))
def test_best_positive_is_a_stable_sort(values: list[float], depth: int) -> None:
    total = np.array(values)
    rows, found = best_positive(total, depth)
    expected = [i for i in np.argsort(-total, kind="stable") if total[i] > 0][:depth]
    assert rows.tolist() == expected
    assert found.tolist() == total[expected].tolist()


@untimed
@given(corpora, batches)
def test_a_batch_equals_single_queries(documents: list[list[str]], queries: list[list[str]]) -> None:
    index = BM25Index(documents, BM25Spec())
    alone = [index.top([query], 10).to_lists()[0] for query in queries]
    assert index.top(queries, 10).to_lists() == alone


@untimed
@given(corpora, batches, st.randoms())
def test_order_of_the_corpus_changes_ties_only(documents: list[list[str]], queries: list[list[str]], random) -> None:  # type: ignore[no-untyped-def]
    order = list(range(len(documents)))
    random.shuffle(order)
    first = BM25Index(documents, BM25Spec()).top(queries, 200).to_lists()
    second = BM25Index([documents[i] for i in order], BM25Spec()).top(queries, 200).to_lists()
    for one, two in zip(first, second, strict=True):
        # The average idf adds up in another order: equal to within rounding, not to the last bit.
        assert {i: pytest.approx(s, abs=1e-12) for i, s in one} == {order[i]: s for i, s in two}


def test_lucene_by_hand() -> None:
    # N = 2, n(a) = 1: idf = ln(1.5/1.5 + 1) = ln 2; length 2, average 1.5: tf part = 1/(1 + 1.5*(0.25 + 0.75*2/1.5)).
    got = BM25Index([["a", "b"], ["b"]], BM25Spec(variant="lucene")).scores([["a"]])
    np.testing.assert_allclose(got, [[np.log(2) / (1 + 1.5 * 1.25), 0.0]], rtol=1e-12)


def test_lucene_equals_bm25s() -> None:
    bm25s = pytest.importorskip("bm25s")
    draw = np.random.default_rng(2)
    documents = [[f"t{t}" for t in draw.integers(0, 40, draw.integers(1, 20))] for _ in range(200)]
    peer = bm25s.BM25(method="lucene", k1=1.2, b=0.6, dtype="float64")
    peer.index(documents, show_progress=False)
    index = BM25Index(documents, BM25Spec(variant="lucene", k1=1.2, b=0.6))
    for query in (["t1", "t5"], ["t7", "t8", "t9"]):
        np.testing.assert_allclose(index.scores([query])[0], peer.get_scores(query), rtol=1e-6)


@pytest.mark.parametrize("variant", ["okapi", "l", "plus"])
def test_backend_of_the_library_gives_the_same(variant: Variant) -> None:
    corpus = memories("red fox", "red red hen", "blue fox", "", "grey wolf", "red")
    queries = ["red fox", "wolf wolf", "nothing", ""]
    ours = retrieve(corpus, queries, BM25Spec(variant=variant), 3).candidates.to_lists()
    theirs = retrieve(corpus, queries, BM25Spec(variant=variant, backend="rank-bm25"), 3).candidates.to_lists()
    for one, two in zip(ours, theirs, strict=True):
        assert [i for i, _ in one] == [i for i, _ in two]
        assert [s for _, s in one] == pytest.approx([s for _, s in two], abs=1e-9)
    assert ours[2] == ours[3] == []


def test_backend_of_the_library_says_what_it_cannot_do() -> None:
    corpus = memories("red fox", "hen")
    with pytest.raises(InputError, match="no variant 'lucene'"):
        retrieve(corpus, ["red"], BM25Spec(variant="lucene", backend="rank-bm25"), 3)
    with pytest.raises(InputError, match="divides by zero"):
        retrieve(corpus, ["red hen"], BM25Spec(k1=0, backend="rank-bm25"), 3)


@pytest.mark.parametrize("backend", ["postings", "rank-bm25"])
@pytest.mark.parametrize("contents", [(), ("", "!?")])
def test_corpus_without_tokens_gives_nothing(backend: Literal["postings", "rank-bm25"], contents: tuple[str]) -> None:
    got = retrieve(memories(*contents), ["red", ""], BM25Spec(backend=backend), 3).candidates
    assert got.to_lists() == [[], []]


def test_rows_with_a_score_of_zero_or_below_stay() -> None:
    # One term in both documents: its idf is negative, and so is the floor, 0.25 * average idf (= that idf).
    got = BM25Index([["a"], ["a"]], BM25Spec()).top([["a"]], 5).to_lists()[0]
    scores = rank_bm25.BM25Okapi([["a"], ["a"]]).get_scores(["a"])
    assert scores[0] < 0
    assert got == [(0, scores[0]), (1, scores[1])]
    zero = BM25Index([["a"], ["a", "b"], ["c"], ["d"]], BM25Spec(epsilon=0)).top([["a"]], 5).to_lists()[0]
    assert [i for i, _ in zero] == [0, 1]


def test_normalise_divides_by_the_best() -> None:
    corpus = memories("red fox", "red hen egg", "cow", "owl", "cat")
    raw, unit = (
        retrieve(corpus, ["red fox", "x"], BM25Spec(normalise=on), 5).candidates.to_lists() for on in (False, True)
    )
    assert unit[0] == [(i, s / raw[0][0][1]) for i, s in raw[0]]
    assert unit[0][0][1] == 1.0
    assert unit[1] == []


def test_long_query_and_depth_zero() -> None:
    corpus = memories("red fox", "hen", "cow")
    long = "red 红狐狸 " * 12_500
    assert len(long) == 100_000
    got = retrieve(corpus, [long], BM25Spec(), 2).candidates.to_lists()
    library = rank_bm25.BM25Okapi([tokenize(text) for text in corpus.texts])
    assert got == [[(0, library.get_scores(tokenize(long))[0])]]
    assert retrieve(corpus, ["red"], BM25Spec(), 0).candidates.ids.shape == (1, 0)
