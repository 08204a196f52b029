"""Where the labelled memories of each question stand in the returned lists: all that a measure needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int32]
Float = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class RankedLabels:
    """Ranks of the labelled memories of Q questions in one system's lists.

    ranks: int32 `[Q, L]`, 1-based; 0 where the memory was not returned or the place is padding.
    grades: int16 `[Q, L]`; -1 is padding, 0 a memory judged not relevant. Holds all labels of a question.
    returned: int32 `[Q]`, length of each list after repeats were dropped.
    failed: bool `[Q]`, the system gave no valid answer: every measure takes its worst value.
    forbidden: int32 `[Q, F]`, ranks of the forbidden memories; 0 not returned, -1 padding.
    superseded, successor: int32 `[Q, S]`, ranks of each superseded memory that was returned and of its
        newest successor in the corpus (0 not returned; -1 padding).
    expects_empty: bool `[Q]`, nothing answers the question.
    semantic: int32 `[Q]`, returned memories that a channel contributed (not filled in by rules).
    chars: float64 `[Q]`, characters of what was returned; tokens: float64 `[Q]`, their estimate.
    rounds: float64 `[Q]`, rounds of the conversation in which the returned text is billed.
    default_rel: the least grade that a binary measure counts where it names no `rel` of its own.

    Optional fields are None where the caller has no such facts; a measure that needs one says so.
    """

    ranks: Int
    grades: NDArray[np.int16]
    returned: Int
    failed: Mask
    forbidden: Int | None = None
    superseded: Int | None = None
    successor: Int | None = None
    expects_empty: Mask | None = None
    semantic: Int | None = None
    chars: Float | None = None
    tokens: Float | None = None
    rounds: Float | None = None
    default_rel: int = 1

    @property
    def questions(self) -> int:
        return int(self.ranks.shape[0])
