"""Stale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recallbench.measures.base import Float, Mask, Measure
from recallbench.measures.ranked import RankedLabels


@dataclass(frozen=True, slots=True)
class Stale(Measure):
    """1 if a superseded memory was returned above its newest successor, or without it."""

    title: ClassVar[str] = "Stale"
    higher_is_better: ClassVar[bool] = False
    worst: ClassVar[float] = 1.0
    denominator: ClassVar[str] = "questions with a superseded memory among their labels"

    def values(self, ranked: RankedLabels) -> Float:
        old = self._held(ranked.superseded, "the superseded memories").astype(np.int32)
        new = self._held(ranked.successor, "their successors").astype(np.int32)
        newer = np.where(self.within(new), new, np.iinfo(np.int32).max)
        return np.asarray((self.within(old) & (old < newer)).any(axis=1), np.float64)

    def counts(self, ranked: RankedLabels) -> Mask:
        old = self._held(ranked.superseded, "the superseded memories")
        return np.asarray((old.astype(np.int32) >= 0).any(axis=1), np.bool_)
