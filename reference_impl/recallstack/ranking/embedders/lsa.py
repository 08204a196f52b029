"""Latent semantic analysis of character n-grams (Deerwester et al. 1990): the embedder that downloads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recallstack.ranking.embedders import Embedder, Vectors

DIMENSIONS = 256
NGRAMS = (2, 4)
SEED = 0
GRAM_LIMIT = 2048
"""Up to so many texts their full matrix of products is decomposed, which is quicker than the iterative solver."""
NOISE = 1e-6
"""Directions whose singular value is below this share of the greatest are rounding noise, and are left out."""


class LSA:
    """TF-IDF of character n-grams (across words, tf = 1 + ln tf), cut to at most 256 dimensions by SVD."""

    name = "lsa"

    def fit(self, texts: Sequence[str]) -> Embedder:
        """Fitted on the texts of a corpus, however few; texts that hold nothing give 0 dimensions."""
        return FittedLSA(texts)


class FittedLSA:
    """LSA of one corpus. Directions may differ in sign between machines; cosines do not."""

    name = "lsa"

    def __init__(self, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._tfidf: Any = None
        self._directions = np.empty((0, 0))
        if not any(text.strip() for text in texts):
            return
        self._tfidf = TfidfVectorizer(analyzer="char", ngram_range=NGRAMS, sublinear_tf=True, dtype=np.float64)
        self._directions = _directions(self._tfidf.fit_transform(_padded(texts)))

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        if self._tfidf is None:
            return np.zeros((len(texts), 0))
        return np.asarray(self._tfidf.transform(_padded(texts)) @ self._directions, np.float64)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self.encode_documents(texts)


def _padded(texts: Sequence[str]) -> list[str]:
    """A lone character gets spaces around it: it has no n-gram of its own. (Padding all texts ranks worse.)"""
    return [text if len(text.strip()) > 1 else f" {text} " for text in texts]


def _directions(matrix: Any) -> Vectors:
    """float64 `[features, k]`: the right singular vectors of the greatest singular values, k <= 256."""
    texts = matrix.shape[0]
    if texts > GRAM_LIMIT:
        from scipy.sparse.linalg import svds

        start = np.random.default_rng(SEED).uniform(-1, 1, min(matrix.shape))
        _, values, rows = svds(matrix, k=min(DIMENSIONS, min(matrix.shape) - 1), v0=start)
        return np.ascontiguousarray(rows[values > NOISE * values.max()].T)
    # Few texts: the eigenvectors u of the products of all pairs give the same directions, matrix.T @ u / s.
    from scipy.linalg import eigh

    first = max(0, texts - DIMENSIONS)
    squares, left = eigh((matrix @ matrix.T).toarray(), subset_by_index=(first, texts - 1))
    kept = squares > NOISE**2 * squares.max()
    return np.asarray(matrix.T @ (left[:, kept] / np.sqrt(squares[kept])), np.float64)
