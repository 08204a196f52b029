"""BM25 from float64 postings: rank-bm25's three variants, and Lucene's.

Scores of `okapi` equal rank-bm25's to the last bit, because every product, quotient and sum is taken in the
library's order; `l` and `plus` equal it to within rounding.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from recallstack.ranking.candidates import NO_ROW, Candidates, Scores
from recallstack.ranking.channels.bm25_library import LibraryIndex
from recallstack.ranking.channels.indexes import per_corpus
from recallstack.ranking.channels.postings import Postings, Tokens
from recallstack.ranking.channels.retrieved import Retrieved
from recallstack.ranking.rows import Corpus
from recallstack.ranking.specs import BM25Spec
from recallstack.ranking.tokens import tokenize

Tokenizer = Callable[[str], list[str]]

BLOCKS = 64
"""Rows in a column of the search for the best."""
DENSE = 4
"""A term held by more than one document in this many is kept as a full row: adding that is quicker."""

_DELTA = {"l": 0.5, "plus": 1.0}
"""The library's defaults."""


def _idf(held: NDArray[np.int64], n: int, spec: BM25Spec) -> Scores:
    """float64 `[T]`; `held` int64 `[T]`: documents that hold each term, in order of first appearance."""
    # math.log, as in the library: NumPy's logarithm may differ in the last bit.
    counts = held.tolist()
    if spec.variant == "lucene":
        return np.array([math.log((n - f + 0.5) / (f + 0.5) + 1) for f in counts], np.float64)
    if spec.variant == "l":
        return np.array([math.log(n + 1) - math.log(f + 0.5) for f in counts], np.float64)
    if spec.variant == "plus":
        return np.array([math.log((n + 1) / f) for f in counts], np.float64)
    values = [math.log(n - f + 0.5) - math.log(f + 0.5) for f in counts]
    total = 0.0
    for value in values:  # one by one, since sum() of Python 3.12 and later compensates
        total += value
    floor = spec.epsilon * (total / len(values)) if values else 0.0
    return np.array([floor if value < 0 else value for value in values], np.float64)


def _weights(held: Postings, idf: Scores, delta: float, spec: BM25Spec) -> Scores:
    """float64 `[P]`, in the library's order of operations."""
    if not len(held.rows):
        return np.empty(0, np.float64)
    k1, b, tf = spec.k1, spec.b, held.counts
    each = np.repeat(idf, np.diff(held.start))
    average = held.lengths.sum() / len(held.lengths)
    norm: Scores = (1 - b + b * held.lengths / average)[held.rows]
    if spec.variant == "lucene":
        return each * (tf / (tf + k1 * norm))
    if spec.variant == "l":
        ctd = tf / norm
        return each * tf * (k1 + 1) * (ctd + delta) / (k1 + ctd + delta)
    return each * (tf * (k1 + 1) / (tf + k1 * norm))


class BM25Index:
    """BM25 of a corpus of tokenised documents.

    Formulas: Trotman, Puurula and Burgess 2014 (`okapi` with the ATIRE idf and rank-bm25's floor of
    `epsilon * average idf` for a negative idf, `l`, `plus`), as rank-bm25 0.2 computes them; `lucene`:
    Kamphuis, de Vries, Boytsov and Lin 2020, `idf * tf / (tf + k1 * (1 - b + b * length / average))`.
    """

    def __init__(self, documents: Tokens | Postings, spec: BM25Spec) -> None:
        held = documents if isinstance(documents, Postings) else Postings.of(documents)
        self.postings = held
        self.size = len(held.lengths)
        per_term = np.diff(held.start)
        idf = _idf(per_term, self.size, spec)
        delta = _DELTA.get(spec.variant, 0.0) if spec.delta is None else spec.delta
        self.base: Scores | None = idf * delta if spec.variant == "plus" else None
        """float64 `[T]`: what a term adds to the score of every document, with it or without (`plus` only)."""
        self.weights = _weights(held, idf, delta, spec)
        """float64 `[P]`: what a posting adds to the score of its document."""
        often = np.flatnonzero(per_term * DENSE > self.size)
        self.dense_number = np.full(len(per_term), -1, np.int64)
        """int64 `[T]`: the row in `dense` of a frequent term, else -1."""
        self.dense_number[often] = np.arange(len(often))
        self.dense = np.zeros((len(often), self.size))
        """float64 `[D, n]`: the weights of the frequent terms, 0 where a document lacks the term."""
        for number, term in enumerate(often.tolist()):
            part = self._part(term)
            self.dense[number, held.rows[part]] = self.weights[part]
        self._positive = bool(self.weights.min(initial=1.0) > 0)
        """Whether a score above 0 tells the rows that share a token (a floor of 0 or below hides them)."""

    def scores(self, queries: Tokens) -> Scores:
        """float64 `[Q, n]`: the score of every document, as the library's `get_scores`."""
        out = np.empty((len(queries), self.size))
        for row, query in zip(out, queries, strict=True):
            terms = self.postings.terms(query)
            self._sum(terms, row)
            row += self._added(terms)
        return out

    def top(self, queries: Tokens, depth: int) -> Candidates:
        """The best `depth` documents of each query among those that share a token with it."""
        terms = [self.postings.terms(query) for query in queries]
        width = min(depth, self.size)
        ids = np.full((len(terms), width), NO_ROW, np.int32)
        scores = np.full((len(terms), width), np.nan)
        if width and any(terms):
            if self._positive and _compiled():
                self._top_fast(terms, ids, scores)
            else:
                total = np.empty(self.size)  # used again for each query: fresh pages cost as much as the sums
                for row, one in enumerate(terms):
                    found, values = self._best(one, width, total)
                    ids[row, : len(found)], scores[row, : len(found)] = found, values
        used = int((ids >= 0).sum(axis=1).max(initial=0))
        return Candidates(ids[:, :used], scores[:, :used])

    def _added(self, terms: Sequence[int]) -> float:
        """What all documents get alike (`plus`)."""
        return 0.0 if self.base is None else float(np.cumsum(self.base[list(terms)])[-1]) if terms else 0.0

    def _part(self, term: int) -> slice:
        return slice(int(self.postings.start[term]), int(self.postings.start[term + 1]))

    def _sum(self, terms: Sequence[int], total: Scores) -> None:
        """Write the sums of the weights into `total`, float64 `[n]`.

        They add up in the order of the query's terms, so that the last bit is the library's.
        """
        total.fill(0.0)
        for term in terms:
            dense = self.dense_number[term]
            if dense >= 0:
                total += self.dense[dense]
            else:
                part = self._part(term)
                np.add.at(total, self.postings.rows[part], self.weights[part])

    def _best(self, terms: Sequence[int], depth: int, total: Scores) -> tuple[NDArray[np.int64], Scores]:
        self._sum(terms, total)
        added = self._added(terms)
        if self._positive:
            return best_positive(np.where(total > 0, total + added, 0.0) if added else total, depth)
        shares = np.zeros(self.size, np.bool_)
        for term in terms:
            shares[self.postings.rows[self._part(term)]] = True
        rows = np.flatnonzero(shares)
        rows = rows[np.argsort(-total[rows], kind="stable")][:depth]
        return rows, total[rows] + added

    def _top_fast(self, terms: list[list[int]], ids: NDArray[np.int32], scores: Scores) -> None:
        from recallstack.ranking.channels.bm25_fast import top

        lengths = np.fromiter(map(len, terms), np.int64, len(terms))
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        flat = np.fromiter(chain.from_iterable(terms), np.int64, int(ends[-1]))
        added = np.array([self._added(one) for one in terms], np.float64)
        postings = (self.postings.start, self.postings.rows.view(np.uint64), self.weights)
        top(ends, flat, *postings, self.dense_number, self.dense, added, ids, scores)


def best_positive(total: Scores, depth: int) -> tuple[NDArray[np.int64], Scores]:
    """Positions and values of the `depth` greatest values above 0, greatest first, equals by position.

    Rows are dealt to columns; the depth-th greatest column maximum is a value that at least `depth` rows reach,
    so that no row below it is wanted. (Sorting, or partitioning all rows, is slower by far.)
    """
    columns = len(total) // BLOCKS
    floor = np.nextafter(0.0, 1.0)
    if columns > depth:
        greatest = total[: columns * BLOCKS].reshape(BLOCKS, columns).max(axis=0)
        floor = max(floor, np.partition(greatest, columns - depth)[columns - depth])
    rows = np.flatnonzero(total >= floor)
    values = total[rows]
    order = np.argsort(-values, kind="stable")[:depth]
    return rows[order], values[order]


@cache
def _numba_is_there() -> bool:
    return importlib.util.find_spec("numba") is not None


def _compiled() -> bool:
    """Whether the compiled kernels are there (extra `fast`) and not turned off by RECALLBENCH_FAST=0."""
    return os.environ.get("RECALLBENCH_FAST") != "0" and _numba_is_there()


def retrieve(
    corpus: Corpus, queries: Sequence[str], spec: BM25Spec, depth: int, tokenizer: Tokenizer = tokenize
) -> Retrieved:
    """The channel. Index and postings are built once for each corpus, tokenizer and setting."""

    def index() -> BM25Index | LibraryIndex:
        postings = per_corpus(
            corpus, ("bm25", tokenizer), lambda: Postings.of([tokenizer(text) for text in corpus.texts])
        )
        if spec.backend == "rank-bm25":
            return LibraryIndex(postings, [tokenizer(text) for text in corpus.texts], spec)
        return BM25Index(postings, spec)

    found = per_corpus(corpus, ("bm25", tokenizer, spec), index).top([tokenizer(q) for q in queries], depth)
    return Retrieved(_normalised(found) if spec.normalise else found)


def _normalised(found: Candidates) -> Candidates:
    """Scores divided by the best of each question, where that is above 0."""
    if not found.width:
        return found
    best = found.scores[:, :1]
    return Candidates(found.ids, found.scores / np.where(best > 0, best, 1.0))
