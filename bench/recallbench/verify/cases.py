"""The forms of a known-answer case (JSON lines); `kind` says which."""

from __future__ import annotations

from typing import Literal

import msgspec


class Hit(msgspec.Struct, frozen=True):
    """One row of a channel's list."""

    id: str
    score: float


class FusionCase(msgspec.Struct, frozen=True, tag_field="kind", tag="fusion", forbid_unknown_fields=True):
    """Lists of one question, and the ids that fusion must give."""

    case: str
    recipe: Literal["rrf", "minmax", "blend"]
    mode: Literal["auto", "hybrid", "vector", "keyword"]
    like_override: bool
    limit: int
    channels: dict[Literal["keyword", "vector", "bm25", "entity", "recent"], list[Hit]]
    expected: list[str]
    weights: dict[str, float] = {}
    weighted: bool = False
    k: float | None = None


class InjectionExpected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all four faults give, and what all four fixes give."""

    legacy: list[str]
    fixed: list[str]


class InjectionCase(msgspec.Struct, frozen=True, tag_field="kind", tag="injection", forbid_unknown_fields=True):
    """Channel lists and rules of one question, and the ids that injection must give at both ends."""

    case: str
    max_items: int
    query_vector: bool
    soft_scope: bool
    selective_rerank: bool
    eligible: list[str]
    unembedded: list[str]
    scope_multiplier: dict[str, float]
    rule_order: list[str]
    vector: list[Hit]
    bm25: list[Hit]
    expected: InjectionExpected


class MeasuresCase(msgspec.Struct, frozen=True, tag_field="kind", tag="measures", forbid_unknown_fields=True):
    """Qrels and a run, and the value of each measure for each query."""

    case: str
    qrels: dict[str, dict[str, int]]
    run: dict[str, dict[str, float]]
    expected: dict[str, dict[str, float]]
    ties: bool = False


class BM25Case(msgspec.Struct, frozen=True, tag_field="kind", tag="bm25", forbid_unknown_fields=True):
    """Tokenised documents and queries, and each document's score by rank-bm25's class names."""

    case: str
    documents: list[list[str]]
    queries: list[list[str]]
    k1: float
    b: float
    expected: dict[Literal["BM25Okapi", "BM25L", "BM25Plus"], list[list[float]]]


Case = FusionCase | InjectionCase | MeasuresCase | BM25Case
KINDS = ("fusion", "injection", "measures", "bm25")
