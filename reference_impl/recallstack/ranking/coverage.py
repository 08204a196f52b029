"""The share of a query's n-grams that a text covers (recall semantics, section 7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from recallstack.ranking.candidates import Candidates
from recallstack.ranking.tokens import tokenize

Grams = Callable[[str], Sequence[str]]


def coverage(query: str, texts: Sequence[str], grams: Grams = tokenize) -> NDArray[np.float64]:
    """float64 `[n]` in [0, 1]: of the query's distinct n-grams, the share that each text has.

    grams: bigrams over CJK and whole words over Latin, which are the tokens of section 2. A query without any is
    covered by nothing.
    """
    wanted = set(grams(query))
    if not wanted:
        return np.zeros(len(texts))
    return np.array([len(wanted.intersection(grams(text))) / len(wanted) for text in texts], np.float64)


def rerank(queries: Sequence[str], texts: Sequence[str], rows: Candidates) -> Candidates:
    """Each list stably sorted by coverage, which becomes its score; where nothing is covered, order and scores stay.

    queries: Q. texts: of all rows of the corpus. rows: `[Q, N]`.
    """
    keys = np.zeros(rows.ids.shape)
    for number, (query, ids) in enumerate(zip(queries, rows.ids, strict=True)):
        there = ids >= 0
        keys[number, there] = coverage(query, [texts[row] for row in ids[there]])
    reranked = (keys > 0).any(axis=1, keepdims=True)
    scores = np.where(reranked & rows.present, keys, rows.scores)
    return Candidates(rows.ids, scores).sorted_by(keys)
