"""Candidates of a batch laid out once, so that any fusion of them can be scored by counting.

Per question the union of all channels' rows, one column a row, columns ordered by the best rank that a channel
gives: the rows that a pool of p lets in are then a prefix. Read `counting` for the use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallstack.ranking.candidates import NO_ROW, Candidates
from recallstack.ranking.specs import CHANNEL_ORDER, ChannelName

Int = NDArray[np.int32]
Float = NDArray[np.float64]

BLOCK = 64
"""Recipes that are scored side by side: in compiled kernels their sums fit into the first-level cache."""
ABSENT = np.int32(np.iinfo(np.int32).max)
"""The best rank of a column that holds no row."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """C channels of Q questions, at most N rows a list, U rows a union, L labels a question.

    names: the channels in channel order. first: the one that was named first (what method `single` returns).
    ids: int32 `[Q, U]`, corpus position of each column, -1 where the union has ended.
    best: int32 `[Q, U]`, best rank over channels, not decreasing along a row; ABSENT where it has ended.
    ranks: int32 `[C, Q, U]`, 1-based rank in each channel, 0 where it does not rank the row.
    scores: float64 `[C, Q, U]`, the channel's score, 0 where it does not rank the row.
    columns: int32 `[C, Q, N]`, column of each place of each list, -1 where the list has ended.
    labels: int32 `[Q, L]`, column of each label, -1 where it is in no list or is padding.
    """

    names: tuple[ChannelName, ...]
    first: ChannelName
    ids: Int
    best: Int
    ranks: Int
    scores: Float
    columns: Int
    labels: Int

    @property
    def questions(self) -> int:
        return int(self.labels.shape[0])

    @property
    def depth(self) -> int:
        """N: rows of the longest list."""
        return int(self.columns.shape[2])

    def lengths(self, channel: ChannelName, pool: int) -> Int:
        """int32 `[Q]`: rows that a channel contributes to a pool."""
        if channel not in self.names:
            return np.zeros(self.questions, np.int32)
        lengths: Int = (self.columns[self.names.index(channel), :, :pool] >= 0).sum(axis=1, dtype=np.int32)
        return lengths

    def union(self, pool: int) -> Int:
        """int32 `[Q]`: rows in the union of the pools."""
        sizes: Int = (self.best <= pool).sum(axis=1, dtype=np.int32)
        return sizes


def prepare(channels: Mapping[ChannelName, Candidates], labels: Int) -> Prepared:
    """Lay out the lists of Q questions for counting.

    channels: Candidates `[Q, N_c]` by name, as deep as the deepest pool to come.
    labels: int32 `[Q, L]`, corpus positions of the labelled rows, -1 padding.
    Raises ValueError without channels or where the number of questions differs.
    """
    if not channels:
        raise ValueError("prepare needs at least one channel")
    names = tuple(name for name in CHANNEL_ORDER if name in channels)
    lists = [channels[name] for name in names]
    questions = labels.shape[0]
    if labels.ndim != 2 or any(one.questions != questions for one in lists):
        shapes = {name: one.ids.shape for name, one in zip(names, lists, strict=True)}
        raise ValueError(f"labels {labels.shape} and lists {shapes} must be of the same questions")
    depth = max(one.width for one in lists)
    stacked = np.full((questions, len(lists), depth), NO_ROW, np.int32)
    values = np.zeros((questions, len(lists), depth))
    for number, one in enumerate(lists):
        stacked[:, number, : one.width] = one.ids
        values[:, number, : one.width] = np.where(one.present, one.scores, 0.0)
    rank = np.broadcast_to(np.arange(1, depth + 1, dtype=np.int32), stacked.shape)
    flat = questions, len(lists) * depth
    ids, place = _union(stacked.reshape(flat), np.where(stacked >= 0, rank, ABSENT).reshape(flat))
    place = place.reshape(stacked.shape).transpose(1, 0, 2)
    values = values.transpose(1, 0, 2)
    width = ids.shape[1]
    ranks = np.zeros((len(lists), questions, width), np.int32)
    scores = np.zeros(ranks.shape)
    c, q, n = np.nonzero(place >= 0)
    ranks[c, q, place[c, q, n]] = n + 1
    scores[c, q, place[c, q, n]] = values[c, q, n]
    best = np.where(ranks > 0, ranks, ABSENT).min(axis=0)
    columns = np.ascontiguousarray(place, dtype=np.int32)
    return Prepared(names, next(iter(channels)), ids, best, ranks, scores, columns, _locate(ids, labels))


def _union(ids: Int, rank: Int) -> tuple[Int, Int]:
    """Distinct rows of each line ordered by best rank, int32 `[Q, U]`, and the column of each entry `[Q, T]`."""
    questions, total = ids.shape
    if not total:
        return np.empty((questions, 0), np.int32), np.empty((questions, 0), np.int32)
    order = np.argsort(ids, axis=1, kind="stable")
    ordered = np.take_along_axis(ids, order, axis=1)
    start = np.ones(ids.shape, np.bool_)
    start[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    slot = np.empty(ids.shape, np.int64)
    np.put_along_axis(slot, order, np.cumsum(start, axis=1) - 1, axis=1)
    slot += np.arange(questions)[:, None] * total
    best = np.full(questions * total, ABSENT, np.int32)
    np.minimum.at(best, slot.ravel(), rank.ravel())
    row = np.full(questions * total, NO_ROW, np.int32)
    row[slot.ravel()] = ids.ravel()
    best = best.reshape(questions, total)
    by_best = np.argsort(best, axis=1, kind="stable")
    column = np.empty((questions, total), np.int32)
    np.put_along_axis(column, by_best, np.arange(total, dtype=np.int32)[None], axis=1)
    place = np.where(ids >= 0, column.ravel()[slot], NO_ROW).astype(np.int32)
    held = by_best[:, : int((best < ABSENT).sum(axis=1).max(initial=0))]
    union = np.take_along_axis(row.reshape(questions, total), held, axis=1)
    return np.where(np.take_along_axis(best, held, axis=1) < ABSENT, union, np.int32(NO_ROW)), place


def _locate(ids: Int, labels: Int) -> Int:
    """int32 `[Q, L]`: the column of each label in `ids`, -1 where there is none."""
    out = np.full(labels.shape, NO_ROW, np.int32)
    if not ids.shape[1]:
        return out
    for slot in range(labels.shape[1]):
        same = (ids == labels[:, slot, None]) & (ids >= 0)
        out[:, slot] = np.where(same.any(axis=1), same.argmax(axis=1), NO_ROW)
    return out
