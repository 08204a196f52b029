"""Adaptive threshold of the documented search (recall semantics, section 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recallstack.ranking.candidates import Scores

NAMED = ("entity:", "attr:")
"""Prefixes of a query that names what it looks for."""


def adaptive_threshold(queries: Sequence[str], scores: Scores) -> Scores:
    """float64 `[Q]`: the least score that a hit of each query must have.

    scores: float64 `[Q, N]`, best first, NaN from where a list has ended. The first rule that fits: 0.5 if the
    query starts with `entity:` or `attr:`; 0.7 under 5 characters; 0.6 over 50; 0.5 if there are at least five
    scores and the first exceeds the fifth by more than 0.3; else 0.65.
    """
    named = np.array([query.startswith(NAMED) for query in queries], np.bool_)
    length = np.array([len(query) for query in queries], np.int64)
    # A list of fewer than five scores compares as False: its fifth is NaN.
    steep = scores[:, 0] - scores[:, 4] > 0.3 if scores.shape[1] >= 5 else np.zeros(len(length), np.bool_)
    return np.select([named, length < 5, length > 50, steep], [0.5, 0.7, 0.6, 0.5], 0.65)
