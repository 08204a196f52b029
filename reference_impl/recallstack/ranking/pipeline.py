"""One recipe over a batch of questions of one corpus: channels, stages, the answer, the trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from recallstack.ranking.candidates import Candidates, Mask
from recallstack.ranking.channels import Retrieved, retrieve
from recallstack.ranking.coverage import rerank as rerank_by_coverage
from recallstack.ranking.fusion import apply_like_override, fuse
from recallstack.ranking.injection import COSINE_HITS, Scope, build_rules, fetch_depth, inject
from recallstack.ranking.recipes import InjectRecipe, Recipe, SearchRecipe
from recallstack.ranking.rows import Corpus, Sensitivity
from recallstack.ranking.source_weights import source_weight
from recallstack.ranking.specs import CHANNEL_ORDER, ChannelName, ChannelSpec

Retrieve = Callable[[Corpus, Sequence[str], ChannelSpec, int], Retrieved]
"""How channel candidates are got: computed here, or from a cache that the caller keeps."""


@dataclass(frozen=True, slots=True)
class Query:
    """One question as the stack sees it."""

    text: str
    scope: Scope = field(default_factory=Scope)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Answers of a batch.

    final: the rows that came back, best first. semantic: bool `[Q, N]`, which of them a channel brought.
    stages: the rows that were left after each step, by name, in order; see `trace.STAGES` for their meaning.
    notes: what a channel had to say (a dimension that did not fit, …), once each.
    """

    final: Candidates
    semantic: Mask
    stages: Mapping[str, Candidates]
    notes: tuple[str, ...] = ()


def needs(recipe: Recipe, top_k: int, corpus: Corpus) -> dict[ChannelName, tuple[ChannelSpec, int]]:
    """The channels of a recipe with their settings and the depth that each must reach."""
    if isinstance(recipe, InjectRecipe):
        depth = max(fetch_depth(recipe), COSINE_HITS)
        return {"vector": (recipe.vector, depth), "bm25": (recipe.bm25, depth)}
    depth = (recipe.pool or 2 * top_k) + (0 if recipe.include_hidden else _hidden(corpus).sum())
    return {name: (recipe.spec(name), int(depth)) for name in CHANNEL_ORDER if name in recipe.channels}


def answer(
    corpus: Corpus,
    queries: Sequence[Query],
    recipe: Recipe,
    top_k: int,
    retrieve: Retrieve = retrieve,
) -> Answer:
    """Answer Q queries with a recipe.

    top_k: rows asked for; an injection returns at most its own `max_items`.
    """
    texts = [query.text for query in queries]
    got = {name: retrieve(corpus, texts, spec, depth) for name, (spec, depth) in needs(recipe, top_k, corpus).items()}
    notes = tuple(dict.fromkeys(note for one in got.values() for note in one.notes))
    channels = {name: one.candidates for name, one in got.items()}
    if isinstance(recipe, SearchRecipe):
        return _search(corpus, channels, recipe, top_k, notes, queries)
    embedded = got["vector"].embedded
    result = inject(
        channels["vector"],
        channels["bm25"],
        np.ones(len(queries), np.bool_),
        np.ones(len(corpus), np.bool_) if embedded is None else embedded,
        build_rules(corpus, [query.scope for query in queries], recipe),
        recipe,
    )
    return Answer(result.final.head(top_k), result.semantic[:, :top_k], result.stages, notes)


def _hidden(corpus: Corpus) -> Mask:
    return np.array([m.archived or m.forgotten for m in corpus.memories], dtype=np.bool_)


def _search(
    corpus: Corpus,
    channels: dict[ChannelName, Candidates],
    recipe: SearchRecipe,
    top_k: int,
    notes: tuple[str, ...],
    queries: Sequence[Query],
) -> Answer:
    levels = [query.scope.levels for query in queries]
    stages: dict[str, Candidates] = {str(name): one for name, one in channels.items()}
    if not recipe.include_hidden:
        hidden = _hidden(corpus)
        channels = {
            name: one.keep(~hidden[np.maximum(one.ids, 0)] & one.present) if len(corpus) else one
            for name, one in channels.items()
        }
        stages.update({f"{name}.eligible": one for name, one in channels.items()})
    pool = recipe.pool or 2 * top_k
    channels = {name: one.head(pool) for name, one in channels.items()}
    stages.update({f"{name}.pool": one for name, one in channels.items()})
    plain = replace(recipe.fusion, like_override=False)
    stages["fused"] = fuse(channels, plain, sum(one.width for one in channels.values()) or 1)
    ranked = stages["fused"]
    if recipe.rerank == "ngrams":
        ranked = stages["reranked"] = rerank_by_coverage([query.text for query in queries], corpus.texts, ranked)
    if recipe.source_weights == "notes":
        ranked = stages["weighted"] = _weighted(corpus, ranked)
    if recipe.sensitivity == "channel":
        ranked = stages["permitted"] = _permitted(corpus, ranked, levels)
    final = ranked.head(top_k)
    if recipe.fusion.overrides and "keyword" in channels:
        front = channels["keyword"]
        if recipe.sensitivity == "channel":
            front = _permitted(corpus, front, levels)
        final = apply_like_override(final, front, top_k)
        stages["overridden"] = final
    return Answer(final, final.present, stages, notes)


def _weighted(corpus: Corpus, rows: Candidates) -> Candidates:
    """Fused scores times the weight of the row's file, best first; a row of no file weighs 1."""
    if not len(corpus):
        return rows
    weights = np.array([1.0 if m.source is None else source_weight(m.source.file) for m in corpus.memories], np.float64)
    scores = rows.scores * weights[np.maximum(rows.ids, 0)]
    return Candidates(rows.ids, scores).sorted_by(scores)


def _permitted(corpus: Corpus, rows: Candidates, levels: Sequence[frozenset[Sensitivity]]) -> Candidates:
    """The rows that each question's session may see. levels: one set a question."""
    if not len(corpus) or not levels:
        return rows
    distinct = {one: number for number, one in enumerate(dict.fromkeys(levels))}
    seen = np.array([[m.sensitivity in one for m in corpus.memories] for one in distinct], np.bool_)
    group = np.array([distinct[one] for one in levels], np.int64)
    return rows.keep(np.take_along_axis(seen[group], np.maximum(rows.ids, 0), axis=1))
