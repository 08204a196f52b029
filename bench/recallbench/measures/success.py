"""Success@k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recallbench.measures.base import Binary, Float
from recallbench.measures.ranked import RankedLabels


@dataclass(frozen=True, slots=True)
class Success(Binary):
    """1 if any relevant memory is in the first k rows, else 0 ("any hit"; it is no recall)."""

    title: ClassVar[str] = "Success"
    needs_cutoff: ClassVar[bool] = True

    def values(self, ranked: RankedLabels) -> Float:
        return np.asarray(self.hits(ranked).any(axis=1), np.float64)
