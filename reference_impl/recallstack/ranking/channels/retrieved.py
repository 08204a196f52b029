"""What a channel returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallstack.ranking.candidates import Candidates


@dataclass(frozen=True, slots=True, eq=False)
class Retrieved:
    """What a channel brought for Q queries.

    candidates: `[Q, <= depth]`. notes: what the channel has to say, one line each.
    embedded: vector channel only: bool `[n]`, the rows that have an embedding (one that is not all zero).
    """

    candidates: Candidates
    notes: tuple[str, ...] = ()
    embedded: NDArray[np.bool_] | None = None
