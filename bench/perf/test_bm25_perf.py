"""BM25: the best 100 of 100,000 documents of about 40 tokens, for 200 queries, against bm25s on one thread.

Each peer runs in this process on the same tokens. Before anything is timed, okapi must equal rank-bm25 to within
1e-9 and lucene must equal bm25s to within float32. The ratio is the peer's median over ours: above 1, we are
faster. Wanted: at least 1 against bm25s with numba for the compiled path, at least 3 against bm25s with NumPy
for the NumPy path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from recallstack.channels.bm25 import BM25Index
from recallstack.channels.postings import Postings
from recallstack.specs import BM25Spec

bm25s = pytest.importorskip("bm25s")
rank_bm25 = pytest.importorskip("rank_bm25")
pytest.importorskip("numba")

DOCUMENTS, QUERIES, WORDS, DEPTH = 100_000, 200, 50_000, 100
WANTED = {"numba": 1.0, "numpy": 3.0}


@dataclass
class Setup:
    """The data, our index, and medians by (group, who)."""

    documents: list[list[str]]
    queries: list[list[str]]
    okapi: BM25Index
    lucene: BM25Index
    medians: dict[tuple[str, str], float] = field(default_factory=dict)


def _tokens(draw: np.random.Generator, lengths: np.ndarray) -> list[list[str]]:
    share = 1 / np.arange(1, WORDS + 1)
    words = np.array([f"w{i}" for i in range(WORDS)])
    flat = words[draw.choice(WORDS, lengths.sum(), p=share / share.sum())]
    return [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])]


@pytest.fixture(scope="module")
def setup() -> Iterator[Setup]:
    draw = np.random.default_rng(0)
    documents = _tokens(draw, draw.poisson(40, DOCUMENTS).clip(1))
    queries = _tokens(draw, draw.integers(4, 13, QUERIES))
    postings = Postings.of(documents)
    made = Setup(documents, queries, BM25Index(postings, BM25Spec()), BM25Index(postings, BM25Spec(variant="lucene")))
    yield made
    for group in WANTED:
        ours, theirs = made.medians.get((group, "ours")), made.medians.get((group, "bm25s"))
        if ours and theirs:
            print(f"\nbm25 {group}: {theirs / ours:.2f} times as fast as bm25s (wanted: {WANTED[group]:g})")


def _peer(setup: Setup, backend: str) -> Callable[[], Any]:
    peer = bm25s.BM25(method="lucene", backend=backend)
    peer.index(setup.documents, show_progress=False)
    options = {"n_threads": 1} if backend == "numba" else {"backend_selection": "numpy"}
    return lambda: peer.retrieve(setup.queries, k=DEPTH, show_progress=False, **options)


def _timed(benchmark: Any, setup: Setup, group: str, who: str, function: Callable[[], Any]) -> Any:
    benchmark.group = f"bm25 top-{DEPTH}, {QUERIES} queries, {group}"
    out = benchmark.pedantic(function, warmup_rounds=1, rounds=7)
    if benchmark.stats is not None:
        setup.medians[group, who] = benchmark.stats.stats.median
        benchmark.extra_info["ms_per_query"] = 1000 * setup.medians[group, who] / QUERIES
    return out


@pytest.mark.parametrize("group", WANTED)
def test_bm25s(benchmark: Any, setup: Setup, group: str) -> None:
    _, scores = _timed(benchmark, setup, group, "bm25s", _peer(setup, group))
    ours = setup.lucene.top(setup.queries, DEPTH).scores
    np.testing.assert_allclose(np.nan_to_num(ours), scores, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("group", WANTED)
def test_ours(benchmark: Any, setup: Setup, group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALLBENCH_FAST", "1" if group == "numba" else "0")
    got = _timed(benchmark, setup, group, "ours", lambda: setup.okapi.top(setup.queries, DEPTH))
    theirs = setup.medians.get((group, "bm25s"))
    if theirs:
        benchmark.extra_info["times_as_fast_as_bm25s"] = theirs / setup.medians[group, "ours"]
    library = rank_bm25.BM25Okapi(setup.documents)
    for query, found in list(zip(setup.queries, got.to_lists(), strict=True))[:5]:
        scores = library.get_scores(query)
        shared = np.array([bool(documents & set(query)) for documents in map(set, setup.documents)])
        best = np.lexsort((np.arange(DOCUMENTS), -scores, ~shared))[: min(DEPTH, shared.sum())]
        assert [i for i, _ in found] == best.tolist()
        np.testing.assert_allclose([s for _, s in found], scores[best], rtol=0, atol=1e-9)
