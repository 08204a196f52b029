"""AP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recallbench.measures.base import Binary, Float
from recallbench.measures.ranked import RankedLabels


@dataclass(frozen=True, slots=True)
class AP(Binary):
    """Average precision: precision at each relevant memory found, over all relevant memories (trec_eval's map)."""

    title: ClassVar[str] = "AP"

    def values(self, ranked: RankedLabels) -> Float:
        ranks = np.sort(np.where(self.hits(ranked), ranked.ranks, np.inf), axis=1)
        found = np.arange(1, ranks.shape[1] + 1) / ranks
        return np.asarray(found.sum(axis=1) / np.maximum(self.total(ranked), 1), np.float64)
