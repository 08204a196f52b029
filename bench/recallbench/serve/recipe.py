"""A labelled set or a folder of notes as a knowledge base: any recipe behind contract v0.2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recallstack.errors import InputError
from recallstack.ranking.candidates import Scores
from recallstack.ranking.channels import retrieve
from recallstack.ranking.injection import Scope
from recallstack.ranking.pipeline import Query, Retrieve, answer
from recallstack.ranking.recipes import InjectRecipe, Recipe
from recallstack.ranking.rows import Corpus, Memory
from recallstack.ranking.text import cut
from recallstack.systems.preretrieval.contract import Hit, SearchRequest, SearchResponse

SNIPPET_CHARS = 500
"""Characters of a snippet (contract v0.2 recommends at most 500)."""
SCOPE_KEYS = ("agent_scope", "workspace_scope")
"""What `scope` of a request may hold; recipes of kind inject use it."""
_SHOWN = 10


@dataclass(frozen=True, eq=False)
class KnowledgeBase:
    """Corpora behind a recipe. `sources` of a request name the corpus; with one corpus they may be left out.

    A question never leaves its corpus. Scores are divided by the best one of the answer, because the contract
    wants [0, 1] and a fused score has no scale of its own: the first hit that is ranked by score has 1, and
    `min_score` then means "at least this share of the best".
    """

    corpora: Mapping[str, Corpus]
    recipe: Recipe
    retrieve: Retrieve = field(default=retrieve)

    def __post_init__(self) -> None:
        if not self.corpora:
            raise InputError("there is nothing to serve: the set holds no memories")

    def about(self) -> dict[str, Any]:
        """What `GET /health` says: the recipe, and the number of memories by source."""
        return {"recipe": self.recipe.name, "sources": {name: len(one) for name, one in self.corpora.items()}}

    def check(self, request: SearchRequest) -> None:
        """Raises InputError for a source or a scope that this base does not know."""
        self._corpus(request)
        for key, value in (request.scope or {}).items():
            if key not in SCOPE_KEYS:
                raise InputError(f"bad request: unknown scope key {key!r}; use {' or '.join(SCOPE_KEYS)}")
            if value is not None and not isinstance(value, str):
                raise InputError(f"bad request: scope.{key} must be text, not {type(value).__name__}")

    def warm(self) -> tuple[str, ...]:
        """Build every index now, so that the first question is not the slow one; what the channels said."""
        notes: list[str] = []
        for name, corpus in self.corpora.items():
            if len(corpus):
                got = answer(corpus, [Query(corpus.texts[0])], self.recipe, 1, self.retrieve)
                notes.extend(f"{name}: {note}" for note in got.notes)
        return tuple(notes)

    def answer(self, requests: Sequence[SearchRequest]) -> list[SearchResponse]:
        """Answers in the order of the requests; those of one corpus and depth are one batch of the pipeline.

        Raises InputError as `check` does.
        """
        groups: dict[tuple[str, int], list[int]] = {}
        for place, request in enumerate(requests):
            self.check(request)
            groups.setdefault((self._corpus(request), request.top_k), []).append(place)
        answers: dict[int, SearchResponse] = {}
        for (name, top_k), places in groups.items():
            some = [requests[place] for place in places]
            answers.update(zip(places, self._batch(self.corpora[name], some, top_k), strict=True))
        return [answers[place] for place in range(len(requests))]

    def _batch(self, corpus: Corpus, requests: Sequence[SearchRequest], top_k: int) -> list[SearchResponse]:
        if not len(corpus):
            return [SearchResponse(hits=()) for _ in requests]
        queries = [Query(request.text, _scope(request)) for request in requests]
        final = answer(corpus, queries, self.recipe, top_k, self.retrieve).final
        scores = share_of_best(final.scores)
        capped = isinstance(self.recipe, InjectRecipe) and self.recipe.max_items < top_k
        return [
            SearchResponse(
                hits=tuple(
                    _hit(corpus.memories[row], corpus.name, float(score))
                    for row, score in zip(final.ids[place], scores[place], strict=True)
                    if row >= 0
                ),
                truncated=capped and int(final.present[place].sum()) == final.width > 0,
            )
            for place in range(len(requests))
        ]

    def _corpus(self, request: SearchRequest) -> str:
        names = request.sources or ()
        unknown = [name for name in names if name not in self.corpora]
        if unknown:
            raise InputError(f"bad request: unknown source {unknown[0]!r}; known: {self._known()}")
        chosen = tuple(dict.fromkeys(names)) or tuple(self.corpora)
        if len(chosen) > 1:
            raise InputError(f"bad request: name one source, a question stays in one; known: {self._known()}")
        return chosen[0]

    def _known(self) -> str:
        names = list(self.corpora)
        return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def share_of_best(scores: Scores) -> Scores:
    """float64 `[Q, N]` in [0, 1]: each score divided by the best of its list; 0 where the best is not above 0.

    scores: float64 `[Q, N]`, NaN where a list has ended (NaN stays).
    """
    best = np.max(np.nan_to_num(scores, nan=-np.inf), axis=1, initial=-np.inf, keepdims=True)
    positive = best > 0
    shares = np.clip(scores / np.where(positive, best, 1.0), 0.0, 1.0)
    return np.asarray(np.where(positive | np.isnan(scores), shares, 0.0), np.float64)


def _scope(request: SearchRequest) -> Scope:
    scope = request.scope or {}
    return Scope(scope.get("agent_scope"), scope.get("workspace_scope"))


def _hit(memory: Memory, source: str, score: float) -> Hit:
    path = ""
    if memory.source is not None:
        path = memory.source.file if memory.source.line is None else f"{memory.source.file}:{memory.source.line}"
    return Hit(
        doc_id=memory.id,
        title=memory.title,
        path=path,
        snippet=cut(memory.content, SNIPPET_CHARS),
        score=score,
        source=source,
    )
