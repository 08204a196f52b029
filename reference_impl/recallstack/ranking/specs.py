"""Settings of the channels: frozen, hashable values that a recipe is made of and a cache is keyed by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ChannelName = Literal["keyword", "vector", "bm25", "entity", "recent"]
CHANNEL_ORDER: tuple[ChannelName, ...] = ("keyword", "vector", "bm25", "entity", "recent")
"""The order in which fusion adds up and in which equals first appear (recall semantics, section 4)."""


@dataclass(frozen=True, slots=True)
class KeywordSpec:
    """Words through SQLite.

    match: `like` wants the whole query as one substring (section 3), `fts5` any of its tokens, ranked by FTS5's bm25
    (section 6). title_score, content_score: of `like`.
    """

    match: Literal["like", "fts5"] = "like"
    title_score: float = 1.0
    content_score: float = 0.6


@dataclass(frozen=True, slots=True)
class BM25Spec:
    """BM25; `okapi`, `l` and `plus` equal rank-bm25's classes, `lucene` is Lucene's idf.

    backend: `postings` scores from float64 postings; `rank-bm25` calls that library.
    normalise: divide by the best score of the question, so that scores lie in [0, 1].
    """

    variant: Literal["okapi", "l", "plus", "lucene"] = "okapi"
    k1: float = 1.5
    b: float = 0.75
    epsilon: float = 0.25
    delta: float | None = None
    """None: rank-bm25's default of the variant (0.5 for `l`, 1 for `plus`)."""
    backend: Literal["postings", "rank-bm25"] = "postings"
    normalise: bool = False


@dataclass(frozen=True, slots=True)
class VectorSpec:
    """Cosine over unit vectors.

    embedder: `lsa`, `hash3`, `sentence-transformers:NAME_OR_PATH`, or a name given to `register_embedder`.
    instruction: prefixed to queries only.
    floor: hits with a cosine below it are dropped; None keeps all.
    adaptive: hits below the adaptive threshold of the query are dropped (recall semantics, section 3).
    """

    embedder: str = "lsa"
    instruction: str = ""
    floor: float | None = None
    adaptive: bool = False


@dataclass(frozen=True, slots=True)
class EntitySpec:
    """Memories linked to an entity that the query names."""

    attribute_score: float = 1.0
    relation_score: float = 0.9


@dataclass(frozen=True, slots=True)
class RecentSpec:
    """The newest rows by `updated_at`."""


ChannelSpec = KeywordSpec | BM25Spec | VectorSpec | EntitySpec | RecentSpec
