"""What an injected text costs: it is billed again in every round in which it is in the context."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recallstack.errors import InputError
from recallstack.systems.preretrieval.switches import NO_SWITCHES, Switches


def billed_tokens(
    tokens: ArrayLike, first_round: ArrayLike, last_round: ArrayLike, switches: Switches = NO_SWITCHES
) -> NDArray[np.int64]:
    """int64 `[N]`: tokens billed for N injected texts, `tokens × rounds` (seed 004).

    tokens: of each text. first_round: the round (model request, 1-based) that it was injected in.
    last_round: the last round of its session; the three broadcast. Raises InputError for a number that is not
    whole, negative tokens or a last round before the first.
    """
    given = np.broadcast_arrays(np.asarray(tokens), np.asarray(first_round), np.asarray(last_round))
    if any(one.size and one.dtype.kind not in "iu" for one in given):
        raise InputError("tokens and rounds must be whole numbers")
    size, first, last = (one.astype(np.int64) for one in given)
    if (size < 0).any():
        raise InputError(f"tokens must not be negative, got {size.min()}")
    if (first < 1).any() or (last < first).any():
        raise InputError("rounds are 1-based and the last round is not before the round of the injection")
    rounds = np.ones_like(size) if switches.billed_once else last - first + 1
    return np.asarray(size * rounds, np.int64)
