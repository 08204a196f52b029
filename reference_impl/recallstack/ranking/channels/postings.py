"""Postings: which documents hold which term."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

Tokens = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Which documents hold which term, how often; independent of the settings of BM25.

    vocabulary: term -> number t, by first appearance. start: int64 `[T + 1]`, where the postings of t begin.
    rows: int64 `[P]`, documents, ascending within a term. counts: int64 `[P]`. lengths: int64 `[n]`, tokens.
    """

    vocabulary: dict[str, int]
    start: NDArray[np.int64]
    rows: NDArray[np.int64]
    counts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, documents: Tokens) -> Postings:
        n = len(documents)
        lengths = np.fromiter(map(len, documents), np.int64, n)
        numbers: defaultdict[str, int] = defaultdict()
        numbers.default_factory = numbers.__len__
        total = int(lengths.sum())
        terms = np.fromiter(map(numbers.__getitem__, chain.from_iterable(documents)), np.int64, total)
        pairs, counts = np.unique(terms * max(n, 1) + np.repeat(np.arange(n), lengths), return_counts=True)
        start = np.searchsorted(pairs, np.arange(len(numbers) + 1) * max(n, 1))
        return cls(dict(numbers), start, pairs % max(n, 1), counts, lengths)

    def terms(self, query: Sequence[str]) -> list[int]:
        """The terms of a query in order, repeated as there; tokens that no document holds are left out."""
        known = self.vocabulary.get
        return [number for number in map(known, query) if number is not None]
