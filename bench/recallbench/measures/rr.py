"""RR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recallbench.measures.base import Binary, Float
from recallbench.measures.ranked import RankedLabels


@dataclass(frozen=True, slots=True)
class RR(Binary):
    """Reciprocal rank of the first relevant memory, 0 if none is in the (first k rows of the) list."""

    title: ClassVar[str] = "RR"

    def values(self, ranked: RankedLabels) -> Float:
        ranks = np.where(self.hits(ranked), ranked.ranks, np.inf)
        return np.asarray(1.0 / ranks.min(axis=1, initial=np.inf), np.float64)
