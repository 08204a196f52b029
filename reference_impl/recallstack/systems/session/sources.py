"""Where the candidates of a step come from: searched when they are needed, or for many questions ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from recallstack.ranking.candidates import Candidates, Mask
from recallstack.ranking.channels import Retrieved, retrieve
from recallstack.ranking.channels.vector import VectorIndex, checked, index_of, search
from recallstack.ranking.embedders import Vectors
from recallstack.ranking.pipeline import Retrieve, needs
from recallstack.ranking.recipes import InjectRecipe
from recallstack.ranking.rows import Corpus
from recallstack.ranking.specs import ChannelName, VectorSpec
from recallstack.systems.session.prefetch import Embed, Vector


class CandidateSource(Protocol):
    """Channel candidates for one query at a time."""

    @property
    def corpus(self) -> Corpus:
        """The memories."""

    @property
    def embedded(self) -> Mask:
        """bool `[n]`: rows that have an embedding."""

    def vector(self, query: str, vector: Vector) -> Retrieved:
        """The vector channel's list, `[1, N]`, for a query whose vector is there."""

    def bm25(self, query: str) -> Retrieved:
        """BM25's list, `[1, N]`."""


class LiveSource:
    """Searches when asked. The vectors of the memories are made once.

    memory_vectors: float64 `[n, d]`, all zero where a row has none; None: by the recipe's embedder.
    Raises InputError for vectors that are not one a memory, or an unknown embedder.
    """

    def __init__(self, corpus: Corpus, recipe: InjectRecipe, memory_vectors: Vectors | None = None) -> None:
        self._corpus = corpus
        self._recipe = recipe
        self._depth = {name: depth for name, (_, depth) in needs(recipe, recipe.max_items, corpus).items()}
        if memory_vectors is not None:
            given = np.asarray(memory_vectors, np.float64)
            self._index = VectorIndex(checked(given, len(corpus), "given vectors"))
        elif len(corpus):
            self._index = index_of(corpus, recipe.vector)[1]
        else:
            self._index = VectorIndex(np.zeros((0, 0)))

    @property
    def corpus(self) -> Corpus:
        return self._corpus

    @property
    def embedded(self) -> Mask:
        return self._index.embedded

    def vector(self, query: str, vector: Vector) -> Retrieved:
        return search(self._index, [query], vector[None, :], self._recipe.vector, self._depth["vector"])

    def bm25(self, query: str) -> Retrieved:
        return retrieve(self._corpus, [query], self._recipe.bm25, self._depth["bm25"])


class BatchSource:
    """Candidates that were searched ahead for many queries at once; a query that is not among them is searched.

    The vector that a step brings is not looked at: it must be that of the query by the recipe's own embedder.
    retrieve: as in `recallstack.ranking.pipeline`, for instance from a cache.
    """

    def __init__(
        self, corpus: Corpus, recipe: InjectRecipe, queries: Sequence[str], retrieve: Retrieve = retrieve
    ) -> None:
        self._corpus = corpus
        self._retrieve = retrieve
        self._needs = needs(recipe, recipe.max_items, corpus)
        distinct = list(dict.fromkeys(queries))
        self._place: Mapping[str, int] = {query: place for place, query in enumerate(distinct)}
        self._held = {name: retrieve(corpus, distinct, spec, depth) for name, (spec, depth) in self._needs.items()}
        embedded = self._held["vector"].embedded
        self._embedded = np.ones(len(corpus), np.bool_) if embedded is None else embedded

    @property
    def corpus(self) -> Corpus:
        return self._corpus

    @property
    def embedded(self) -> Mask:
        return self._embedded

    def vector(self, query: str, vector: Vector) -> Retrieved:
        return self._of("vector", query)

    def bm25(self, query: str) -> Retrieved:
        return self._of("bm25", query)

    def _of(self, channel: ChannelName, query: str) -> Retrieved:
        place = self._place.get(query)
        if place is None:
            spec, depth = self._needs[channel]
            return self._retrieve(self._corpus, [query], spec, depth)
        found, one = self._held[channel], slice(place, place + 1)
        return Retrieved(Candidates(found.candidates.ids[one], found.candidates.scores[one]), found.notes)


def embed_with(corpus: Corpus, spec: VectorSpec, ahead: Sequence[str] = ()) -> Embed:
    """An `Embed` by the embedder of a recipe, fitted on the corpus; the queries in `ahead` are embedded now, in one go.

    Raises InputError as `index_of` does.
    """
    embedder, _ = index_of(corpus, spec)
    queries = list(dict.fromkeys(ahead))

    def encode(texts: Sequence[str]) -> Vectors:
        return checked(embedder.encode_queries([spec.instruction + text for text in texts]), len(texts), spec.embedder)

    held = dict(zip(queries, encode(queries), strict=True)) if queries else {}

    async def embed(query: str) -> Vector:
        vector: Vector = held[query] if query in held else encode([query])[0]
        return vector

    return embed
