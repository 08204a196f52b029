"""BM25 through rank-bm25 itself (backend `rank-bm25`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallstack.errors import InputError
from recallstack.ranking.candidates import Candidates
from recallstack.ranking.channels.postings import Postings, Tokens
from recallstack.ranking.specs import BM25Spec


class LibraryIndex:
    """As `BM25Index`, with the scores that the library computes."""

    def __init__(self, postings: Postings, documents: Tokens, spec: BM25Spec) -> None:
        import rank_bm25

        if spec.variant == "lucene":
            raise InputError("bm25: rank-bm25 has no variant 'lucene'; use backend = \"postings\"")
        self.spec = spec
        self.postings = postings
        self._model: Any = None
        if postings.vocabulary:  # the library divides by zero where there is no token
            if spec.variant == "okapi":
                self._model = rank_bm25.BM25Okapi(documents, k1=spec.k1, b=spec.b, epsilon=spec.epsilon)
            else:
                delta = {} if spec.delta is None else {"delta": spec.delta}
                kind = rank_bm25.BM25L if spec.variant == "l" else rank_bm25.BM25Plus
                self._model = kind(documents, k1=spec.k1, b=spec.b, **delta)

    def top(self, queries: Tokens, depth: int) -> Candidates:
        """As `BM25Index.top`. Raises InputError where the library divides by zero."""
        lists: list[list[tuple[int, float]]] = []
        for query in queries:
            shares = np.zeros(len(self.postings.lengths), np.bool_)
            for term in self.postings.terms(query):
                shares[self.postings.rows[self.postings.start[term] : self.postings.start[term + 1]]] = True
            rows = np.flatnonzero(shares)
            if not len(rows):
                lists.append([])
                continue
            with np.errstate(invalid="ignore", divide="ignore"):
                total = self._model.get_scores(list(query))
            if np.isnan(total[rows]).any():
                raise InputError(
                    f"bm25: rank-bm25 divides by zero with k1 = {self.spec.k1} and b = {self.spec.b}; "
                    'use backend = "postings"'
                )
            rows = rows[np.argsort(-total[rows], kind="stable")][:depth]
            lists.append(list(zip(rows.tolist(), total[rows].tolist(), strict=True)))
        return Candidates.from_lists(lists)
