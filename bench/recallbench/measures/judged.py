"""Judged@k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recallbench.measures.base import Float, Mask, Measure
from recallbench.measures.ranked import RankedLabels


@dataclass(frozen=True, slots=True)
class Judged(Measure):
    """Share of the first k rows that carry a label, relevant or not; of fewer rows where fewer came back."""

    title: ClassVar[str] = "Judged"
    denominator: ClassVar[str] = "questions for which something came back"
    needs_cutoff: ClassVar[bool] = True

    def values(self, ranked: RankedLabels) -> Float:
        seen = (self.within(ranked.ranks) & (ranked.grades >= 0)).sum(axis=1)
        return np.asarray(seen / np.maximum(np.minimum(ranked.returned, self.cutoff or 1), 1), np.float64)

    def counts(self, ranked: RankedLabels) -> Mask:
        return (ranked.returned > 0) | ranked.failed
