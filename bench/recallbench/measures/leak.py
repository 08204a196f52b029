"""Leak and Leak@k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recallbench.measures.base import Float, Mask, Measure
from recallbench.measures.ranked import RankedLabels


@dataclass(frozen=True, slots=True)
class Leak(Measure):
    """1 if a forbidden memory is anywhere in what was returned (with a cutoff: in the first k rows)."""

    title: ClassVar[str] = "Leak"
    higher_is_better: ClassVar[bool] = False
    worst: ClassVar[float] = 1.0
    denominator: ClassVar[str] = "questions with a forbidden memory"

    def values(self, ranked: RankedLabels) -> Float:
        forbidden = self._held(ranked.forbidden, "the forbidden memories").astype(np.int32)
        return np.asarray(self.within(forbidden).any(axis=1), np.float64)

    def counts(self, ranked: RankedLabels) -> Mask:
        forbidden = self._held(ranked.forbidden, "the forbidden memories").astype(np.int32)
        return np.asarray((forbidden >= 0).any(axis=1), np.bool_)
