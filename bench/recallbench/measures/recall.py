"""R@k and AllR@k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recallbench.measures.base import Binary, Float
from recallbench.measures.ranked import RankedLabels


@dataclass(frozen=True, slots=True)
class R(Binary):
    """Recall: share of the question's relevant memories in the first k rows."""

    title: ClassVar[str] = "R"
    needs_cutoff: ClassVar[bool] = True

    def values(self, ranked: RankedLabels) -> Float:
        return np.asarray(self.hits(ranked).sum(axis=1) / np.maximum(self.total(ranked), 1), np.float64)


@dataclass(frozen=True, slots=True)
class AllR(Binary):
    """1 if every relevant memory of the question is in the first k rows, else 0."""

    title: ClassVar[str] = "AllR"
    needs_cutoff: ClassVar[bool] = True

    def values(self, ranked: RankedLabels) -> Float:
        return np.asarray(self.hits(ranked).sum(axis=1) == self.total(ranked), np.float64)
