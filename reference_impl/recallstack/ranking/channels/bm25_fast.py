"""Compiled kernel of BM25 (extra `fast`): equal to the NumPy path to the last bit, on one thread."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

LANES = 64
"""Rows in one block of the search for the best; a power of two."""


@njit(cache=True, fastmath={"nnan", "nsz"})
def block_greatest(total: NDArray[np.float64], greatest: NDArray[np.float64]) -> None:
    """Write the greatest value of each block of `total` into `greatest`, at least 0.

    The flags say that no value is NaN and that -0 and 0 are the same: enough to take the greatest in lanes,
    and without effect on any value here.
    """
    for block in range(len(greatest)):
        best = 0.0
        for row in range(block * LANES, (block + 1) * LANES):
            best = max(best, total[row])
        greatest[block] = best


@njit(cache=True)
def top(
    ends: NDArray[np.int64],
    terms: NDArray[np.int64],
    start: NDArray[np.int64],
    rows: NDArray[np.uint64],
    weights: NDArray[np.float64],
    dense_number: NDArray[np.int64],
    dense: NDArray[np.float64],
    added: NDArray[np.float64],
    ids: NDArray[np.int32],
    scores: NDArray[np.float64],
) -> None:
    """Write the best rows of each query into `ids` (int32 `[Q, depth]`) and `scores` (float64 `[Q, depth]`).

    ends: int64 `[Q + 1]`, where the terms of each query begin in `terms`. start, rows, weights: the postings
    (rows unsigned, so that no index is tested for being negative); all weights are above 0. dense_number,
    dense: the frequent terms as full rows. added: float64 `[Q]`, what every row that shares a term gets on top.
    Order: score, best first, then row. Places that are not filled stay as they are.
    """
    depth = ids.shape[1]
    size = dense.shape[1]
    blocks = (size + LANES - 1) // LANES
    total = np.zeros(blocks * LANES)
    greatest = np.zeros(blocks)
    found = np.empty(size, np.int64)
    values = np.empty(size, np.float64)
    for query in range(len(ends) - 1):
        total[:] = 0.0
        for at in range(ends[query], ends[query + 1]):
            term = terms[at]
            number = dense_number[term]
            if number >= 0:
                for row in range(size):
                    total[row] += dense[number, row]
                continue
            for posting in range(start[term], start[term + 1]):
                total[rows[posting]] += weights[posting]
        if added[query] != 0.0:
            for row in range(size):
                if total[row] > 0.0:
                    total[row] += added[query]
        block_greatest(total, greatest)
        # At least `depth` rows reach the depth-th greatest block maximum: no row below it is among the best.
        floor = 0.0
        if blocks > depth:
            floor = np.partition(greatest, blocks - depth)[blocks - depth]
        count = 0
        for block in range(blocks):
            if greatest[block] > 0.0 and greatest[block] >= floor:
                for row in range(block * LANES, (block + 1) * LANES):
                    if total[row] > 0.0 and total[row] >= floor:
                        found[count] = row
                        values[count] = total[row]
                        count += 1
        order = np.argsort(-values[:count], kind="mergesort")
        for place in range(min(count, depth)):
            ids[query, place] = found[order[place]]
            scores[query, place] = values[order[place]]
