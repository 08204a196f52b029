"""Rank and score fusion of the search tool (recall semantics, section 4), one kernel on arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from recallstack.errors import InputError
from recallstack.ranking.candidates import NO_ROW, Candidates, Ids, Scores
from recallstack.ranking.specs import CHANNEL_ORDER, ChannelName

Method = Literal["single", "rrf", "minmax", "blend"]
Mode = Literal["auto", "hybrid", "vector", "keyword"]
BLEND_ORDER: tuple[ChannelName, ...] = ("vector", "keyword", "bm25", "entity", "recent")
"""First appearance in `blend` (hybrid and vector): rows are laid out vector first."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Channel weights; the first four are documented, `recent` is a choice."""

    vector: float = 0.6
    keyword: float = 0.4
    bm25: float = 0.3
    entity: float = 0.3
    recent: float = 0.3

    def __post_init__(self) -> None:
        for name in CHANNEL_ORDER:
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"weight of {name} is {value}; it must be a number of at least 0")


@dataclass(frozen=True, slots=True)
class Fusion:
    """How lists become one. `k` is used by rrf; `weights` by minmax, blend, and by rrf if `weighted`.

    like_override: the legacy fault; acts on rrf and minmax in mode `auto` only.
    """

    method: Method = "rrf"
    mode: Mode = "auto"
    k: float = 60
    weighted: bool = False
    weights: Weights = field(default_factory=Weights)
    like_override: bool = False

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise InputError(f"unknown fusion method {self.method!r}; use one of {', '.join(get_args(Method))}")
        if self.mode not in get_args(Mode):
            raise InputError(f"unknown fusion mode {self.mode!r}; use one of {', '.join(get_args(Mode))}")
        if not (math.isfinite(self.k) and self.k > 0):
            raise InputError(f"k is {self.k}; it must be a number above 0")

    @property
    def overrides(self) -> bool:
        """Whether the LIKE override takes place."""
        return self.like_override and self.method in ("rrf", "minmax") and self.mode == "auto"


def fuse(channels: Mapping[ChannelName, Candidates], fusion: Fusion, limit: int) -> Candidates:
    """Fuse the lists of Q questions and cut to `limit`.

    channels: Candidates `[Q, N_c]` by name; a channel that is not named ranks nothing.
    Returns Candidates `[Q, <= limit]` with the fused scores.
    """
    if not channels:
        raise ValueError("fuse needs at least one channel")
    if fusion.mode == "keyword" and fusion.method != "single":
        questions = next(iter(channels.values())).questions
        return channels.get("keyword", Candidates.empty(questions)).head(limit)
    if fusion.method == "single":
        return next(iter(channels.values())).head(limit)
    fused = _FUSE[fusion.method](channels, fusion).head(limit)
    if fusion.overrides and "keyword" in channels:
        fused = apply_like_override(fused, channels["keyword"], limit)
    return fused


def apply_like_override(fused: Candidates, keyword: Candidates, limit: int) -> Candidates:
    """The legacy override: the first `limit` keyword rows move to the front, the other fused rows follow.

    `fused` is already cut to the limit. Moved rows keep no fused score: theirs is the keyword score.
    """
    return _first_seen([keyword.head(limit), fused]).head(limit)


def _stack(lists: list[Candidates]) -> tuple[Ids, Scores, Ids, Ids]:
    """All rows of all lists side by side: ids, scores, list number, 1-based rank, each `[Q, T]`."""
    ids = np.concatenate([one.ids for one in lists], axis=1)
    scores = np.concatenate([one.scores for one in lists], axis=1)
    shape = ids.shape
    number = np.repeat(np.arange(len(lists), dtype=np.int32), [one.width for one in lists])
    rank = np.concatenate([np.arange(1, one.width + 1, dtype=np.int32) for one in lists])
    return ids, scores, np.broadcast_to(number, shape), np.broadcast_to(rank, shape)


def _first_seen(lists: list[Candidates]) -> Candidates:
    """The lists one behind the other, each row at its first appearance."""
    ids, scores, _, _ = _stack(lists)
    both = Candidates(ids, scores)
    order = np.argsort(ids, axis=1, kind="stable")
    ordered = np.take_along_axis(ids, order, axis=1)
    first = np.ones(ids.shape, np.bool_)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    keep = np.zeros(ids.shape, np.bool_)
    np.put_along_axis(keep, order, first, axis=1)
    return both.keep(keep & both.present)


def combine(lists: list[Candidates], parts: list[Scores]) -> Candidates:
    """Add up what each list gives a row, and order by the sum.

    parts: float64 `[Q, N_c]` for each list. Sums accumulate in the order of `lists`; equals are ordered by
    first appearance over `lists`. Returns all rows of the union, best first.
    """
    ids, _, _, _ = _stack(lists)
    questions, width = ids.shape
    if not width:
        return Candidates.empty(questions)
    value = np.where(ids >= 0, np.concatenate(parts, axis=1), 0.0)
    order = np.argsort(ids, axis=1, kind="stable")  # stable: a row's parts stay in list order
    ordered = np.take_along_axis(ids, order, axis=1)
    start = np.ones(ids.shape, np.bool_)
    start[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    # One slot a distinct row; bincount adds in order, so equal sums are equal to the last bit.
    slot = (np.cumsum(start, axis=1) - 1) + np.arange(questions)[:, None] * width
    sums = np.bincount(
        slot.ravel(), weights=np.take_along_axis(value, order, axis=1).ravel(), minlength=questions * width
    )
    total = np.full(ids.shape, np.nan)
    first = np.zeros(ids.shape, np.bool_)
    np.put_along_axis(total, order, sums[slot], axis=1)
    np.put_along_axis(first, order, start, axis=1)
    rows = Candidates(ids, total).keep(first & (ids >= 0))
    return rows.sorted_by(rows.scores)


def _rrf(channels: Mapping[ChannelName, Candidates], fusion: Fusion) -> Candidates:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009): sum of weight / (k + rank)."""
    names = [name for name in CHANNEL_ORDER if name in channels]
    lists = [channels[name] for name in names]
    parts = [
        np.broadcast_to(
            (getattr(fusion.weights, name) if fusion.weighted else 1.0) / (fusion.k + np.arange(1, one.width + 1)),
            one.ids.shape,
        )
        for name, one in zip(names, lists, strict=True)
    ]
    return combine(lists, parts)


def minmax_scaled(one: Candidates) -> Scores:
    """float64 `[Q, N]`: scores scaled to [0, 1] within each list; 0.5 where all are equal."""
    if not one.width:
        return one.scores
    present = one.present
    low = np.where(present, one.scores, np.inf).min(axis=1, keepdims=True)
    high = np.where(present, one.scores, -np.inf).max(axis=1, keepdims=True)
    span = high - low
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = np.where(span > 0, (one.scores - low) / span, 0.5)
    return np.where(present, scaled, np.nan)


def _minmax(channels: Mapping[ChannelName, Candidates], fusion: Fusion) -> Candidates:
    names = [name for name in CHANNEL_ORDER if name in channels]
    lists = [channels[name] for name in names]
    return combine(
        lists,
        [getattr(fusion.weights, name) * minmax_scaled(one) for name, one in zip(names, lists, strict=True)],
    )


def _blend(channels: Mapping[ChannelName, Candidates], fusion: Fusion) -> Candidates:
    """Weighted scores with the documented exceptions; mode `auto` lays the lists one behind the other."""
    if fusion.mode == "auto":
        return _first_seen([channels[name] for name in CHANNEL_ORDER if name in channels])
    names = [name for name in BLEND_ORDER if name in channels]
    weights, empty = fusion.weights, Candidates.empty(next(iter(channels.values())).questions)
    vector, keyword = channels.get("vector", empty), channels.get("keyword", empty)
    parts: dict[ChannelName, Scores] = {}
    for name in names:
        one = channels[name]
        if name == "vector":
            parts[name] = np.where(among(one.ids, keyword.ids), weights.vector, 1.0) * one.scores
        elif name == "keyword":
            parts[name] = np.where(among(one.ids, vector.ids), weights.keyword, 1.0) * one.scores
        elif name == "bm25":
            parts[name] = np.where(among(one.ids, keyword.ids), 0.0, weights.bm25 * one.scores)
        else:
            parts[name] = getattr(weights, name) * one.scores
    return combine([channels[name] for name in names], [parts[name] for name in names])


_FUSE = {"rrf": _rrf, "minmax": _minmax, "blend": _blend}


def among(rows: Ids, others: Ids) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """bool `[Q, N]`: which rows stand among `others` (`[Q, M]`) of the same question; -1 never does."""
    questions, width = rows.shape
    if not width or not others.shape[1]:
        return np.zeros(rows.shape, np.bool_)
    span = int(max(rows.max(), others.max(), 0)) + 1
    offset = np.arange(questions, dtype=np.int64)[:, None] * span
    mine = np.where(rows >= 0, rows + offset, NO_ROW)
    theirs = np.where(others >= 0, others + offset, -2)
    return np.isin(mine, theirs)
