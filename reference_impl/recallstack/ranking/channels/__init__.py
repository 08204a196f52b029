"""Retrieval channels: queries in, ranked candidates out (recall semantics, section 3).

Order in every list: score, best first (keyword: then the newer `updated_at`), then corpus position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from recallstack.ranking.channels import bm25, entity, keyword, recent, vector
from recallstack.ranking.channels.retrieved import Retrieved
from recallstack.ranking.rows import Corpus
from recallstack.ranking.specs import BM25Spec, ChannelSpec, EntitySpec, KeywordSpec, RecentSpec, VectorSpec


def retrieve(corpus: Corpus, queries: Sequence[str], spec: ChannelSpec, depth: int) -> Retrieved:
    """The best `depth` rows of `corpus` for each query, by the channel that `spec` sets.

    Raises InputError where the settings cannot work (an unknown embedder, a missing package).
    """
    if depth < 0:
        raise ValueError(f"depth is {depth}; it must be at least 0")
    match spec:
        case KeywordSpec():
            return keyword.retrieve(corpus, queries, spec, depth)
        case VectorSpec():
            return vector.retrieve(corpus, queries, spec, depth)
        case BM25Spec():
            return bm25.retrieve(corpus, queries, spec, depth)
        case EntitySpec():
            return entity.retrieve(corpus, queries, spec, depth)
        case RecentSpec():
            return recent.retrieve(corpus, queries, depth)
        case _:
            assert_never(spec)


__all__ = ["Retrieved", "retrieve"]
