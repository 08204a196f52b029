"""Count, do not sort: where the labelled rows stand under thousands of fusion recipes.

Only the ranks of the labelled rows matter to a measure, and a rank is one plus the number of rows that beat it.
`prepare` lays the candidates out once; `many_ranks` then adds rank-weight arrays and counts. The result equals
the ranks in the list that `fuse` builds, ties included. With numba (extra `fast`) the counting runs compiled,
with the same results; RECALLBENCH_FAST=0 turns that off.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence

import numpy as np

from recallstack.ranking.fusion import Fusion
from recallstack.ranking.kernels.layout import BLOCK, Int, Prepared, prepare
from recallstack.ranking.kernels.view import count_flags, count_recipes, views_of
from recallstack.ranking.specs import ChannelName

__all__ = [
    "Pooled",
    "Prepared",
    "fast_available",
    "fused_lengths",
    "label_ranks",
    "many_ranks",
    "prepare",
    "rank_blocks",
]

Pooled = tuple[Fusion, int]
"""A fusion and the pool: rows that each channel contributes."""


def fast_available() -> bool:
    """Whether compiled kernels are used: numba is installed and RECALLBENCH_FAST is not 0."""
    return os.environ.get("RECALLBENCH_FAST") != "0" and importlib.util.find_spec("numba") is not None


def label_ranks(prepared: Prepared, fusion: Fusion, pool: int, limit: int | None = None) -> Int:
    """int32 `[Q, L]`: 1-based rank of each label in the fused list, 0 where it is not in it.

    pool: rows each channel contributes. limit: length of the list; None keeps the whole union.
    Raises ValueError for a pool or a limit below 1.
    """
    ranks: Int = many_ranks(prepared, [(fusion, pool)], limit)[0]
    return ranks


def many_ranks(
    prepared: Prepared, recipes: Sequence[Pooled], limit: int | None = None, *, fast: bool | None = None
) -> Int:
    """int32 `[R, Q, L]`: `label_ranks` of R recipes. fast: None uses compiled kernels where they are available."""
    out = np.zeros((len(recipes), *prepared.labels.shape), np.int32)
    for places, ranks in rank_blocks(prepared, recipes, limit, fast=fast):
        out[places] = ranks
    return out


def rank_blocks(
    prepared: Prepared, recipes: Sequence[Pooled], limit: int | None = None, *, fast: bool | None = None
) -> Iterator[tuple[list[int], Int]]:
    """The same in blocks of up to 64 recipes: (their places in `recipes`, int32 `[B, Q, L]`).

    Each recipe comes once. Those of a block share a pool and the way in which lists become one, so that their fused
    lists hold the same rows.
    """
    for fusion, pool in recipes:
        if pool < 1 or (limit is not None and limit < 1):
            raise ValueError(f"pool {pool} and limit {limit} must be at least 1 ({fusion})")
    if fast is None:
        fast = fast_available()
    for (kind, pool, overrides), places in _groups(prepared, recipes).items():
        fusions = [recipes[place][0] for place in places]
        bound = limit if limit is not None else max(1, len(prepared.names) * prepared.depth)
        moved = min(bound, pool) if overrides else 0
        if kind in ("first", "keyword", "appearance"):
            one = _list_ranks(prepared, kind, pool)
            yield places, np.repeat(_cut(one, limit)[None], len(places), axis=0)
            continue
        if fast:
            from recallstack.ranking.kernels.fast import count_blocks
        else:
            count_blocks = _count_blocks
        done = 0
        for ranks, ahead in count_blocks(prepared, kind, pool, fusions, moved):
            block = places[done : done + len(ranks)]
            done += len(block)
            if moved:
                ranks = _override(prepared, _cut(ranks, limit), ahead, pool, moved)
            yield block, _cut(ranks, limit)


def fused_lengths(prepared: Prepared, fusion: Fusion, pool: int, limit: int | None = None) -> Int:
    """int32 `[Q]`: how many rows the fused list of each question holds."""
    kind = _kind(fusion)
    if kind == "keyword":
        lengths = prepared.lengths("keyword", pool)
    else:
        lengths = prepared.lengths(prepared.first, pool) if kind == "first" else prepared.union(pool)
    return lengths if limit is None else np.minimum(lengths, np.int32(limit))


def _kind(fusion: Fusion) -> str:
    """What decides the order: a list alone, first appearance alone, or scores (rrf, minmax, blend)."""
    if fusion.method == "single":
        return "first"
    if fusion.mode == "keyword":
        return "keyword"
    return "appearance" if fusion.method == "blend" and fusion.mode == "auto" else fusion.method


def _groups(prepared: Prepared, recipes: Sequence[Pooled]) -> dict[tuple[str, int, bool], list[int]]:
    """Places of the recipes that share a pool, a kind and an override; no list is deeper than the candidates."""
    found: dict[tuple[str, int, bool], list[int]] = {}
    for place, (fusion, pool) in enumerate(recipes):
        overrides = fusion.overrides and "keyword" in prepared.names
        found.setdefault((_kind(fusion), min(pool, max(1, prepared.depth)), overrides), []).append(place)
    return found


def _cut(ranks: Int, limit: int | None) -> Int:
    return ranks if limit is None else np.where(ranks <= limit, ranks, np.int32(0))


def _rank_in(prepared: Prepared, channel: ChannelName, pool: int) -> Int:
    """int32 `[Q, L]`: rank of each label in one channel's pool, 0 where it is not in it."""
    if channel not in prepared.names or not prepared.ids.shape[1]:
        return np.zeros(prepared.labels.shape, np.int32)
    ranks = np.take_along_axis(prepared.ranks[prepared.names.index(channel)], np.maximum(prepared.labels, 0), axis=1)
    return np.where((prepared.labels >= 0) & (ranks <= pool), ranks, np.int32(0))


def _list_ranks(prepared: Prepared, kind: str, pool: int) -> Int:
    """Ranks where no score is fused: one channel's own, or the lists laid one behind the other."""
    if kind != "appearance":
        return _rank_in(prepared, "keyword" if kind == "keyword" else prepared.first, pool)
    out = np.zeros(prepared.labels.shape, np.int32)
    for view in views_of(prepared, pool, blend=False, scaled=False):
        for layer in view.layers:
            out[layer.question, layer.slot] = count_flags(layer.before) + 1
    return out


def _count_blocks(
    prepared: Prepared, kind: str, pool: int, fusions: Sequence[Fusion], moved: int
) -> Iterator[tuple[Int, Int]]:
    """Fused ranks of recipes of one kind and pool, int32 `[B, Q, L]`, and with `moved` the moved rows ahead."""
    views = list(views_of(prepared, pool, blend=kind == "blend", scaled=kind == "minmax"))
    for start in range(0, len(fusions), BLOCK):
        block = fusions[start : start + BLOCK]
        ranks, ahead = (np.zeros((len(block), *prepared.labels.shape), np.int32) for _ in range(2))
        count_recipes(views, block, moved, ranks, ahead)
        yield ranks, ahead


def _override(prepared: Prepared, ranks: Int, ahead: Int, pool: int, moved: int) -> Int:
    """Ranks after the legacy override: the first `moved` keyword rows stand in front, the others close up.

    ranks: int32 `[B, Q, L]` cut to the limit, and ahead: how many moved rows stood before each.
    """
    keyword = _rank_in(prepared, "keyword", moved)[None]
    front = prepared.lengths("keyword", moved)[None, :, None]
    return np.where(keyword > 0, keyword, np.where(ranks > 0, front + ranks - ahead, np.int32(0)))
