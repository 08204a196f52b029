"""Vector channel: exact cosine search (recall semantics, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallstack.errors import InputError
from recallstack.ranking.candidates import NO_ROW, Candidates, Scores
from recallstack.ranking.channels.indexes import per_corpus
from recallstack.ranking.channels.retrieved import Retrieved
from recallstack.ranking.channels.threshold import adaptive_threshold
from recallstack.ranking.embedders import Embedder, Fittable, Vectors, resolve_embedder
from recallstack.ranking.rows import Corpus
from recallstack.ranking.specs import VectorSpec

DECIMALS = 7
"""Cosines are rounded to 1e-7 before they rank, so that no processor or thread count reorders equals."""
SPARE = 64
"""Rows fetched beyond the depth, for those that float32 or rounding would misplace at the cut."""
FLOAT32_ERROR = 1e-5
"""Bound on the error of a cosine in float32 (a few units of 6e-8 for each factor, with much to spare)."""
BATCH = 64
"""Queries looked at together, to bound memory."""

EVERY = slice(None)


class VectorIndex:
    """Unit vectors of a corpus; rows whose vector is all zero are not in it.

    embedded: bool `[n]`. dimensions: of the vectors.
    """

    def __init__(self, vectors: Vectors) -> None:
        unit, self.embedded = _unit(vectors)
        self.rows = np.flatnonzero(self.embedded)
        self.unit = np.ascontiguousarray(unit[self.rows])
        self.dimensions = int(vectors.shape[1])
        self._faiss: Any = None

    def top(self, queries: Vectors, depth: int) -> Candidates:
        """The best `depth` rows of each query (float64 `[Q, dimensions]`); none for a query that is all zero."""
        unit, asked = _unit(queries)
        width = min(depth, len(self.rows))
        ids = np.full((len(queries), width), NO_ROW, np.int32)
        scores = np.full((len(queries), width), np.nan)
        if width:
            where = np.flatnonzero(asked)
            for start in range(0, len(where), BATCH):
                batch = where[start : start + BATCH]
                ids[batch], scores[batch] = self._top(unit[batch], width)
        return Candidates(ids, scores)

    def _top(self, unit: Vectors, width: int) -> tuple[NDArray[np.int64], Scores]:
        near = self._near(unit, width + SPARE)
        best = []
        for query, vector in enumerate(unit):
            places = EVERY if near is None else np.sort(near[0][query])
            one = self._best(places, vector, width)
            # What FAISS left out lies at or below its last cosine: is that surely below ours?
            if near is not None and one[1][-1] <= near[1][query] + FLOAT32_ERROR:
                one = self._best(EVERY, vector, width)
            best.append(one)
        return self.rows[np.stack([found for found, _ in best])], np.stack([cosines for _, cosines in best])

    def _near(self, unit: Vectors, count: int) -> tuple[NDArray[np.int64], Scores] | None:
        """Places `[Q, count]` of the nearest rows by float32, and the last one's cosine; None: all rows are wanted."""
        if count >= len(self.rows):
            return None
        if self._faiss is None:
            import faiss

            self._faiss = faiss.IndexFlatIP(self.dimensions)
            self._faiss.add(self.unit.astype(np.float32))
        cosines, places = self._faiss.search(np.ascontiguousarray(unit, np.float32), count)
        return places, cosines[:, -1].astype(np.float64)

    def _best(self, places: NDArray[np.int64] | slice, query: Vectors, width: int) -> tuple[NDArray[np.int64], Scores]:
        """The best of the places (ascending) by the rounded float64 cosine, then by place."""
        # einsum adds up one row at a time: a row gets the same bits whatever stands beside it.
        exact = np.einsum("md,d->m", self.unit[places], query)
        cosines = np.round(exact, DECIMALS) + 0.0  # + 0.0: no negative zero
        order = np.argsort(-cosines, kind="stable")[:width]
        return (order if isinstance(places, slice) else places[order]), cosines[order]


def _unit(vectors: Vectors) -> tuple[Vectors, NDArray[np.bool_]]:
    """Vectors of length 1, and bool `[n]`: which had a length at all."""
    greatest = np.abs(vectors).max(axis=1, initial=0.0)
    has = greatest > 0
    scaled = vectors / np.where(has, greatest, 1.0)[:, None]  # first, lest tiny or huge squares are lost
    length = np.sqrt(np.einsum("nd,nd->n", scaled, scaled))
    return scaled / np.where(has, length, 1.0)[:, None], has


def checked(vectors: Vectors, count: int, name: str) -> Vectors:
    """The same vectors. Raises InputError unless they are finite and one a text, `[count, dimensions]`."""
    if vectors.ndim != 2 or len(vectors) != count:
        raise InputError(
            f"embedder {name!r} returned an array of shape {vectors.shape} for {count} texts; "
            "it must return one vector a text"
        )
    if not np.isfinite(vectors).all():
        raise InputError(f"embedder {name!r} returned a number that is not finite; mend the embedder")
    return vectors


def index_of(corpus: Corpus, spec: VectorSpec) -> tuple[Embedder, VectorIndex]:
    """The embedder, fitted if it must be, and the index of a corpus. Made once for each corpus and embedder.

    Raises InputError for an unknown embedder or one that returns what is not a vector a text.
    """
    base = resolve_embedder(spec.embedder)

    # The held tuple keeps `base` alive, so that its id stays its own.
    def build() -> tuple[object, Embedder, VectorIndex]:
        fitted = base.fit(corpus.texts) if isinstance(base, Fittable) else base
        vectors = fitted.encode_documents(corpus.texts)
        return base, fitted, VectorIndex(checked(vectors, len(corpus), spec.embedder))

    _, embedder, index = per_corpus(corpus, ("vector", spec.embedder, id(base)), build)
    return embedder, index


def retrieve(corpus: Corpus, queries: Sequence[str], spec: VectorSpec, depth: int) -> Retrieved:
    """The channel. Embeddings are made once for each corpus and embedder.

    Query vectors of other dimensions than the index's bring nothing, and a note. With `adaptive` the floor of a
    query is the adaptive threshold (or `floor`, if that is higher). Raises InputError for an unknown embedder or
    one that returns what is not a vector a text.
    """
    if not len(corpus):
        resolve_embedder(spec.embedder)  # an unknown one is an error with or without work to do
        return Retrieved(Candidates.empty(len(queries)), embedded=np.zeros(0, np.bool_))
    embedder, index = index_of(corpus, spec)
    if not len(queries):
        return Retrieved(Candidates.empty(0), embedded=index.embedded)
    asked = embedder.encode_queries([spec.instruction + query for query in queries])
    return search(index, queries, checked(asked, len(queries), spec.embedder), spec, depth)


def search(index: VectorIndex, queries: Sequence[str], asked: Vectors, spec: VectorSpec, depth: int) -> Retrieved:
    """The best `depth` rows for query vectors that are there already (float64 `[Q, dimensions]`)."""
    if asked.shape[1] != index.dimensions:
        note = (
            f"vector: query vectors of {spec.embedder!r} have {asked.shape[1]} dimensions, "
            f"the index has {index.dimensions}; the channel returns nothing"
        )
        return Retrieved(Candidates.empty(len(queries)), (note,), index.embedded)
    # Five scores at least, because the adaptive threshold looks at the fifth.
    found = index.top(asked, max(depth, 5) if spec.adaptive else depth)
    floor = np.full(len(queries), -np.inf if spec.floor is None else spec.floor)
    if spec.adaptive:
        floor = np.maximum(floor, adaptive_threshold(queries, found.scores))
    return Retrieved(found.keep(found.scores >= floor[:, None]).head(depth), (), index.embedded)
