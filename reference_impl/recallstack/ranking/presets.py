"""The named recipes: every documented legacy and fixed behaviour, the k variants, single channels."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from itertools import product
from types import MappingProxyType

from recallstack.errors import InputError
from recallstack.ranking.fusion import Fusion
from recallstack.ranking.recipes import INJECTION_SWITCHES, InjectRecipe, Recipe, SearchRecipe, with_switches
from recallstack.ranking.specs import BM25Spec, ChannelName, KeywordSpec, VectorSpec

_ALL: tuple[ChannelName, ...] = ("keyword", "vector", "bm25", "entity")


def _search() -> list[SearchRecipe]:
    single = Fusion(method="single")
    unit = BM25Spec(normalise=True)
    return [
        SearchRecipe("keyword-only", channels=("keyword",), fusion=single, description="SQLite LIKE alone"),
        SearchRecipe("bm25-okapi", channels=("bm25",), fusion=single, description="BM25Okapi alone"),
        SearchRecipe(
            "bm25-lucene",
            channels=("bm25",),
            fusion=single,
            bm25=BM25Spec(variant="lucene"),
            description="BM25 with Lucene's idf alone",
        ),
        SearchRecipe("vector-lsa", channels=("vector",), fusion=single, description="LSA cosine alone"),
        *(
            SearchRecipe(f"rrf-k{k}", channels=_ALL, fusion=Fusion("rrf", k=k), description=f"rank fusion, k = {k}")
            for k in (1, 10, 60)
        ),
        SearchRecipe(
            "rrf-weighted",
            channels=_ALL,
            fusion=Fusion("rrf", weighted=True),
            description="rank fusion weighted by channel, k = 60",
        ),
        SearchRecipe(
            "rrf-k60-like-override",
            channels=_ALL,
            fusion=Fusion("rrf", like_override=True),
            description="legacy: LIKE hits overwrite the fused order",
        ),
        SearchRecipe("minmax", channels=_ALL, fusion=Fusion("minmax"), bm25=unit, description="min-max score fusion"),
        SearchRecipe(
            "minmax-like-override",
            channels=_ALL,
            fusion=Fusion("minmax", like_override=True),
            bm25=unit,
            description="legacy: LIKE hits overwrite the fused order",
        ),
        SearchRecipe("blend-auto", channels=_ALL, fusion=Fusion("blend"), bm25=unit, description="LIKE, then the rest"),
        SearchRecipe(
            "blend-hybrid",
            channels=_ALL,
            fusion=Fusion("blend", mode="hybrid"),
            bm25=unit,
            description="weighted scores, vector first",
        ),
        SearchRecipe(
            "notes-k10",
            channels=("keyword", "vector"),
            fusion=Fusion("rrf", k=10),
            pool=40,
            source_weights="notes",
            sensitivity="channel",
            keyword=KeywordSpec(match="fts5"),
            description="Markdown notes: FTS5 and vectors, k = 10, weighted by source, filtered by channel",
        ),
        SearchRecipe(
            "pgvector-ngram",
            channels=("vector", "recent"),
            fusion=Fusion("blend"),
            pool=50,
            rerank="ngrams",
            vector=VectorSpec(embedder="hash3"),
            description="weak embedding: 50 vector hits and the 50 newest, reranked by shared n-grams",
        ),
        SearchRecipe(
            "pgvector-vector-only",
            channels=("vector",),
            fusion=single,
            vector=VectorSpec(embedder="hash3"),
            description="legacy: the weak embedding's order alone",
        ),
    ]


def injection_name(on: tuple[str, ...]) -> str:
    """The preset name of the injection recipe with these switches on."""
    if not on:
        return "inject-legacy"
    return "inject-fixed" if len(on) == len(INJECTION_SWITCHES) else "inject-" + "+".join(on)


def _injections() -> list[InjectRecipe]:
    out = []
    for values in product((False, True), repeat=len(INJECTION_SWITCHES)):
        on = tuple(name for name, value in zip(INJECTION_SWITCHES, values, strict=True) if value)
        idle = " (capacity has no effect without dual)" if "capacity" in on and "dual" not in on else ""
        text = {0: "all four faults in", 4: "all four fixes in"}.get(len(on), f"fixed: {', '.join(on)}")
        out.append(with_switches(InjectRecipe(injection_name(on), description=text + idle), on))
    out.append(
        InjectRecipe(
            "inject-strict",
            scope="strict",
            drop_superseded=True,
            sensitivity="channel",
            description="all four fixes; nothing foreign, superseded or above the channel's level",
        )
    )
    return out


@cache
def presets() -> Mapping[str, Recipe]:
    """All presets by name, search first, in the order in which tables show them."""
    recipes: list[Recipe] = [*_search(), *_injections()]
    return MappingProxyType({recipe.name: recipe for recipe in recipes})


def preset(name: str) -> Recipe:
    """One preset. Raises InputError for an unknown name, with the nearest ones."""
    known = presets()
    if name not in known:
        near = difflib.get_close_matches(name, known, 3)
        hint = f"did you mean {', '.join(near)}?" if near else "see `recallbench recipes list`"
        raise InputError(f"unknown recipe {name!r}; {hint}")
    return known[name]
