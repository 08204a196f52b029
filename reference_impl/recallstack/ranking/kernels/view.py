"""Counting in NumPy: how many rows beat each label under one fusion, without sorting.

A row beats a label if its fused score is higher, or equal and its first appearance earlier. Which rows appear
earlier depends on the pool alone, so it is worked out once a pool and holds for every recipe of that pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallstack.ranking.fusion import BLEND_ORDER, Fusion, Weights
from recallstack.ranking.kernels.layout import Float, Int, Prepared
from recallstack.ranking.specs import CHANNEL_ORDER, ChannelName

Mask = NDArray[np.bool_]

WORD = 16
"""Columns are padded to a multiple of this, so that flags can be counted a word at a time."""
CELLS = 1 << 18
"""Entries of all channels in a block: 2 MB of ranks, about what a second-level cache holds."""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """The n-th label that a pool holds of each question that has so many; questions are a prefix of the view's.

    question: int64 `[n]`, number of the question in the batch. slot: int64 `[n]`, which of its labels.
    column: int64 `[n]`. before: bool `[n, W]`, rows that win a tie against the label.
    """

    question: NDArray[np.int64]
    slot: NDArray[np.int64]
    column: NDArray[np.int64]
    before: Mask


@dataclass(frozen=True, slots=True, eq=False)
class PoolView:
    """What a pool lets in, questions with most labels first; questions without a label in the pool are left out.

    ranks: float64 `[C, n, W]`, infinite where a channel does not bring the row. present: bool `[C, n, W]`.
    scores: float64 `[C, n, W]`, 0 where absent. scaled: float64 `[C, n, W]`, scores scaled to [0, 1] as min-max
    fusion does, 0 where absent; None unless asked for.
    """

    names: tuple[ChannelName, ...]
    ranks: Float
    present: NDArray[np.bool_]
    scores: Float
    scaled: Float | None
    layers: tuple[Layer, ...]


def views_of(prepared: Prepared, pool: int, blend: bool, scaled: bool) -> Iterator[PoolView]:
    """The rows of one pool in blocks of questions, small unions first, so that a block stays in the processor's cache.

    blend: ties by vector first. scaled: with min-max scores. Questions without a label in the pool are left out.
    """
    if not prepared.best.shape[1]:
        return
    sizes = prepared.union(pool)
    inside = prepared.labels >= 0
    inside &= np.take_along_axis(prepared.best, np.maximum(prepared.labels, 0), axis=1) <= pool
    held = inside.sum(axis=1)
    order = np.argsort(sizes, kind="stable")
    order = order[held[order] > 0]
    start = 0
    while start < len(order):
        room = max(1, CELLS // (len(prepared.names) * int(sizes[order[start : start + 1]][0] + WORD)))
        block = order[start : start + room]
        start += room
        block = block[np.argsort(-held[block], kind="stable")]
        yield _view(prepared, pool, block, inside[block], int(sizes[block].max()), blend, scaled)


def _view(
    prepared: Prepared, pool: int, block: NDArray[np.int64], inside: Mask, width: int, blend: bool, scaled: bool
) -> PoolView:
    shape = (len(prepared.names), len(block), -(-width // WORD) * WORD)
    rank, score = np.zeros(shape, np.int32), np.zeros(shape)
    rank[:, :, :width] = prepared.ranks[:, block, :width]
    present = (rank > 0) & (rank <= pool)
    score[:, :, :width] = prepared.scores[:, block, :width]
    score[~present] = 0.0
    key = first_appearance(prepared, rank, present, blend)
    return PoolView(
        prepared.names,
        np.where(present, rank, np.inf),
        present,
        score,
        _scaled(score, present) if scaled else None,
        _layers(prepared.labels[block], inside, block, key),
    )


def first_appearance(prepared: Prepared, rank: Int, present: Mask, blend: bool) -> Int:
    """int32 `[n, W]`: the place of a row where the lists are laid one behind the other; the ended come last."""
    key = np.full(rank.shape[1:], np.iinfo(np.int32).max, np.int32)
    names = [name for name in (BLEND_ORDER if blend else CHANNEL_ORDER) if name in prepared.names]
    for number, name in reversed(list(enumerate(names))):
        c = prepared.names.index(name)
        np.copyto(key, rank[c] + np.int32(number * (prepared.depth + 1)), where=present[c])
    return key


def _scaled(score: Float, present: Mask) -> Float:
    """As `fusion.minmax_scaled`, on columns."""
    low = np.where(present, score, np.inf).min(axis=2, keepdims=True, initial=np.inf)
    high = np.where(present, score, -np.inf).max(axis=2, keepdims=True, initial=-np.inf)
    span = high - low
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(present, np.where(span > 0, (score - low) / span, 0.5), 0.0)


def _layers(labels: Int, inside: Mask, block: NDArray[np.int64], key: Int) -> tuple[Layer, ...]:
    number = np.cumsum(inside, axis=1)
    layers = []
    for n in range(1, int(number.max(initial=0)) + 1):
        this = inside & (number == n)
        count = int(this.any(axis=1).sum())  # a prefix: most labels first
        slot = this[:count].argmax(axis=1)
        column = labels[np.arange(count), slot].astype(np.int64)
        before = key[:count] < np.take_along_axis(key[:count], column[:, None], axis=1)
        layers.append(Layer(block[:count], slot, column, before))
    return tuple(layers)


def fused_scores(view: PoolView, fusion: Fusion, out: Float, part: Float) -> Float:
    """float64 `[n, W]`: the fused score of every row, bit for bit that of `fuse`; out and part are scratch.

    Columns without a row get 0 for rrf and minmax, where no score is below 0, and -inf for blend.
    """
    if fusion.method == "blend":
        return _blend_scores(view, fusion.weights)
    for c, name in enumerate(view.names):
        into = part if c else out
        weight = getattr(fusion.weights, name)
        if fusion.method == "rrf":
            np.add(view.ranks[c], fusion.k, out=into)
            np.divide(weight if fusion.weighted else 1.0, into, out=into)
        else:
            assert view.scaled is not None
            np.multiply(view.scaled[c], weight, out=into)
        if c:
            np.add(out, part, out=out)
    return out


def _blend_scores(view: PoolView, weights: Weights) -> Float:
    nothing = np.zeros(view.scores.shape[1:], np.bool_)
    vector, keyword = (
        view.present[view.names.index(name)] if name in view.names else nothing for name in ("vector", "keyword")
    )
    total = np.where(view.present.any(axis=0), 0.0, -np.inf)
    for name in BLEND_ORDER:
        if name not in view.names:
            continue
        score, weight = view.scores[view.names.index(name)], getattr(weights, name)
        if name == "vector":
            total += np.where(keyword, weight, 1.0) * score
        elif name == "keyword":
            total += np.where(vector, weight, 1.0) * score
        elif name == "bm25":
            total += np.where(keyword, 0.0, weight * score)
        else:
            total += weight * score
    return total


def count_flags(flags: Mask) -> NDArray[np.int64]:
    """int64 `[n]`: how many of each row's flags (bool `[n, W]`, W a multiple of 16) are set."""
    words = np.packbits(flags, axis=1).view(np.uint16)
    count: NDArray[np.int64] = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return count


def beaten_by(scores: Float, layer: Layer) -> Mask:
    """bool `[n, W]`: the rows that stand before the label of a layer."""
    count = len(layer.question)
    mine = np.take_along_axis(scores[:count], layer.column[:, None], axis=1)
    beats = scores[:count] >= mine
    beats &= layer.before
    beats |= scores[:count] > mine
    return beats


def count_recipes(views: Iterable[PoolView], fusions: Sequence[Fusion], moved: int, ranks: Int, ahead: Int) -> None:
    """Write the fused ranks of B recipes into `ranks` (int32 `[B, Q, L]`); labels outside the pool are left alone.

    moved: with the LIKE override, how many keyword rows move to the front; `ahead` (int32 `[B, Q, L]`) then gets
    how many of them stand before each label already.
    """
    for view in views:
        scratch = np.empty(view.scores.shape[1:]), np.empty(view.scores.shape[1:])
        for b, fusion in enumerate(fusions):
            scores = fused_scores(view, fusion, *scratch)
            for layer in view.layers:
                beats = beaten_by(scores, layer)
                ranks[b, layer.question, layer.slot] = count_flags(beats) + 1
                if moved:
                    beats &= view.ranks[view.names.index("keyword"), : len(beats)] <= moved
                    ahead[b, layer.question, layer.slot] = count_flags(beats)
