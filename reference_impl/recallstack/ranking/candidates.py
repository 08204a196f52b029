"""Ranked candidates of a batch of questions: two arrays, best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]

NO_ROW = -1
"""What stands in `ids` where a list has ended."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Lists of Q questions, best first, no row twice in a list.

    ids: int32 `[Q, N]`, positions in the corpus, -1 from where a list has ended.
    scores: float64 `[Q, N]`, the channel's own scores, NaN from where a list has ended.
    """

    ids: Ids
    scores: Scores

    def __post_init__(self) -> None:
        if self.ids.ndim != 2 or self.ids.shape != self.scores.shape:
            raise ValueError(f"ids {self.ids.shape} and scores {self.scores.shape} must be equal [Q, N]")

    @property
    def questions(self) -> int:
        return int(self.ids.shape[0])

    @property
    def width(self) -> int:
        return int(self.ids.shape[1])

    @property
    def present(self) -> Mask:
        """bool `[Q, N]`: where a row stands."""
        return self.ids >= 0

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64 `[Q]`: rows in each list."""
        return np.asarray(self.present.sum(axis=1), np.int64)

    def head(self, depth: int) -> Candidates:
        """The first `depth` rows of each list."""
        return Candidates(self.ids[:, :depth], self.scores[:, :depth])

    def keep(self, mask: Mask) -> Candidates:
        """The rows where `mask` (bool `[Q, N]`) holds, moved left, order kept."""
        mask = mask & self.present
        order = np.argsort(~mask, axis=1, kind="stable")
        width = int(mask.sum(axis=1).max(initial=0))
        order = order[:, :width]
        kept = np.take_along_axis(mask, order, axis=1)
        ids = np.where(kept, np.take_along_axis(self.ids, order, axis=1), NO_ROW).astype(np.int32)
        scores = np.where(kept, np.take_along_axis(self.scores, order, axis=1), np.nan)
        return Candidates(ids, scores)

    def sorted_by(self, keys: Scores) -> Candidates:
        """Each list stably sorted by `keys` (float64 `[Q, N]`), highest first; ended places stay last."""
        descending = np.where(self.present, -keys, np.inf)
        order = np.argsort(descending, axis=1, kind="stable")
        return Candidates(np.take_along_axis(self.ids, order, axis=1), np.take_along_axis(self.scores, order, axis=1))

    @classmethod
    def empty(cls, questions: int) -> Candidates:
        return cls(np.empty((questions, 0), np.int32), np.empty((questions, 0), np.float64))

    @classmethod
    def from_lists(cls, lists: Sequence[Sequence[tuple[int, float]]]) -> Candidates:
        """From Python lists of (position, score), best first."""
        width = max((len(one) for one in lists), default=0)
        ids = np.full((len(lists), width), NO_ROW, np.int32)
        scores = np.full((len(lists), width), np.nan)
        for row, one in enumerate(lists):
            for column, (position, score) in enumerate(one):
                ids[row, column] = position
                scores[row, column] = score
        return cls(ids, scores)

    def to_lists(self) -> list[list[tuple[int, float]]]:
        """As Python lists of (position, score)."""
        return [
            [(int(i), float(s)) for i, s in zip(row, values, strict=True) if i >= 0]
            for row, values in zip(self.ids, self.scores, strict=True)
        ]
