"""Abstain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recallbench.measures.base import Float, Mask, Measure
from recallbench.measures.ranked import RankedLabels


@dataclass(frozen=True, slots=True)
class Abstain(Measure):
    """1 if no semantic channel contributed anything to a question that nothing answers."""

    title: ClassVar[str] = "Abstain"
    denominator: ClassVar[str] = "questions that nothing answers"
    takes_cutoff: ClassVar[bool] = False

    def values(self, ranked: RankedLabels) -> Float:
        semantic = self._held(ranked.semantic, "the number of memories that a channel contributed")
        return np.asarray(semantic.astype(np.int64) == 0, np.float64)

    def counts(self, ranked: RankedLabels) -> Mask:
        return self._held(ranked.expects_empty, "which questions nothing answers").astype(np.bool_)
