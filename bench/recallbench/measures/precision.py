"""P@k and Rprec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recallbench.measures.base import Binary, Float
from recallbench.measures.ranked import RankedLabels


@dataclass(frozen=True, slots=True)
class P(Binary):
    """Precision: relevant memories in the first k rows, divided by k (also where fewer came back)."""

    title: ClassVar[str] = "P"
    needs_cutoff: ClassVar[bool] = True

    def values(self, ranked: RankedLabels) -> Float:
        return np.asarray(self.hits(ranked).sum(axis=1) / float(self.cutoff or 1), np.float64)


@dataclass(frozen=True, slots=True)
class Rprec(Binary):
    """Precision at R, the number of relevant memories of the question."""

    title: ClassVar[str] = "Rprec"
    takes_cutoff: ClassVar[bool] = False

    def values(self, ranked: RankedLabels) -> Float:
        total = self.total(ranked)
        found = self.relevant(ranked) & (ranked.ranks > 0) & (ranked.ranks <= total[:, None])
        return np.asarray(found.sum(axis=1) / np.maximum(total, 1), np.float64)
