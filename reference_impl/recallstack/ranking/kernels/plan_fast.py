"""What compiled counting goes through (extra `fast`): for each label the rows that can beat it, planned once a pool.

For rrf and minmax most rows drop out here, because a row that every channel puts ahead of the label beats it whatever
the weights, and a row that every channel puts behind it never does (rounding keeps both true: division by a larger
number never gives more, nor do larger parts ever sum to less). What is left are rows that beat the label under some
recipes and not under others.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from recallstack.ranking.fusion import BLEND_ORDER
from recallstack.ranking.kernels.layout import Float, Prepared
from recallstack.ranking.specs import CHANNEL_ORDER

_KINDS = {"rrf": 0, "minmax": 1, "blend": 2}


class Plan(NamedTuple):
    """P pairs of question and label in the pool, and their rows one pair behind the other.

    question, slot: int64 `[P]`. base: int64 `[P]`, rows that always beat the label.
    first: int64 `[P + 1]`, first row of each pair: the label itself, then the rows that win a tie against it, then,
    from split (int64 `[P]`) on, those that lose it.
    entry: int64 `[rows + 1]`, first entry of each row. code: int64 `[entries]`, row of the coefficients.
    value: float64 `[entries]`, what the coefficient is multiplied by.
    """

    question: NDArray[np.int64]
    slot: NDArray[np.int64]
    base: NDArray[np.int64]
    first: NDArray[np.int64]
    split: NDArray[np.int64]
    entry: NDArray[np.int64]
    code: NDArray[np.int64]
    value: Float


def plan_of(prepared: Prepared, kind: str, pool: int, moved: int) -> Plan:
    """The rows of a pool; with `moved` only the keyword rows of a rank up to it are set against the labels."""
    order = BLEND_ORDER if kind == "blend" else CHANNEL_ORDER
    place = {name: c for c, name in enumerate(prepared.names)}
    walk = np.array([place[name] for name in order if name in place], dtype=np.int64)
    special = np.array([place.get(name, -1) for name in ("vector", "keyword", "bm25")], dtype=np.int64)
    return Plan(
        *_build(
            prepared.ranks,
            prepared.scores,
            prepared.best,
            prepared.labels,
            prepared.depth,
            _KINDS[kind],
            pool,
            moved,
            walk,
            special,
        )
    )


@numba.njit(cache=True)
def _fill(ranks, scores, q, rows, depth, kind, pool, special, code, value, size):  # type: ignore[no-untyped-def]
    """For one question, of each row in each channel (`[C, U]`): code (-1: adds nothing), value, and a size.

    Sizes of rrf and minmax are ordered as the parts are, whatever the recipe; a row that is absent has the least.
    """
    for c in range(ranks.shape[0]):
        if kind == 0:
            _fill_ranks(ranks[c, q], rows, c * (depth + 1), pool, code[c], value[c], size[c])
        elif kind == 1:
            _fill_scaled(ranks[c, q], scores[c, q], rows, c, pool, code[c], value[c], size[c])
        else:
            _fill_blend(ranks[:, q], scores[c, q], rows, c, pool, special, code[c], value[c])


@numba.njit(cache=True)
def _fill_ranks(rank, rows, offset, pool, code, value, size):  # type: ignore[no-untyped-def]
    for u in range(rows):
        there = 0 < rank[u] <= pool
        code[u] = offset + rank[u] if there else -1
        size[u] = -float(rank[u]) if there else -np.inf
        value[u] = 1.0


@numba.njit(cache=True, error_model="numpy")
def _fill_scaled(rank, score, rows, c, pool, code, value, size):  # type: ignore[no-untyped-def]
    """Min-max scores, as `fusion.minmax_scaled`. No branch hangs on what is there: half of the rows may not be."""
    low, high = np.inf, -np.inf
    for u in range(rows):
        there = 0 < rank[u] <= pool
        least, most = score[u] if there else np.inf, score[u] if there else -np.inf
        low = least if least < low else low
        high = most if most > high else high
    span = high - low
    for u in range(rows):
        there = 0 < rank[u] <= pool
        code[u] = c if there else -1
        scaled = (score[u] - low) / span if span > 0 else 0.5
        value[u] = scaled if there else 0.0
        size[u] = value[u]


@numba.njit(cache=True)
def _fill_blend(ranks, score, rows, c, pool, special, code, value):  # type: ignore[no-untyped-def]
    vector, keyword, bm25 = special
    for u in range(rows):
        there = 0 < ranks[c, u] <= pool
        in_keyword = keyword >= 0 and 0 < ranks[keyword, u] <= pool
        in_vector = vector >= 0 and 0 < ranks[vector, u] <= pool
        alone = (c == vector and not in_keyword) or (c == keyword and not in_vector)
        nothing = not there or (c == bm25 and in_keyword)
        code[u] = -1 if nothing else (ranks.shape[0] if alone else c)
        value[u] = score[u]


@numba.njit(cache=True)
def _first_appearance(ranks, q, rows, depth, pool, walk, key):  # type: ignore[no-untyped-def]
    """The place of each row where the lists are laid one behind the other in the order of `walk`."""
    for u in range(rows):
        for number in range(walk.shape[0]):
            rank = ranks[walk[number], q, u]
            if 0 < rank <= pool:
                key[u] = number * (depth + 1) + rank
                break


@numba.njit(cache=True)
def _emit(chosen, walk, code, value, row, n, entry, codes, values):  # type: ignore[no-untyped-def]
    """Write the entries of some rows of a question behind row number `row` and entry number `n`."""
    for u in chosen:
        for number in range(walk.shape[0]):
            c = walk[number]
            if code[c, u] >= 0:
                codes[n] = code[c, u]
                values[n] = value[c, u]
                n += 1
        row += 1
        entry[row] = n
    return row, n


@numba.njit(cache=True)
def _contest(size, key, mine, rows, prune, over, under, wins, loses):  # type: ignore[no-untyped-def]
    """Rows set against the label: how many always beat it, and which may, with and without winning a tie.

    wins and loses are filled from place 1 on; returns (always, end of wins, end of loses). With `prune` the rows whose
    sizes settle it drop out; over and under are scratch.
    """
    over[:rows], under[:rows] = prune, prune
    for c in range(size.shape[0] if prune else 0):
        theirs, ours = size[c], size[c, mine]
        for u in range(rows):
            over[u] &= theirs[u] >= ours
            under[u] &= theirs[u] <= ours
    always, won, lost = 0, 1, 1
    for u in range(rows):
        before = np.uint8(key[u] < key[mine])
        always += before & over[u]
        wins[won] = u
        won += before & (over[u] ^ 1)
        loses[lost] = u
        lost += (before ^ 1) & (under[u] ^ 1) & (u != mine)
    return always, won, lost


@numba.njit(cache=True)
def _build(ranks, scores, best, labels, depth, kind, pool, moved, walk, special):  # type: ignore[no-untyped-def]
    channels, questions, width = ranks.shape
    held = np.zeros(questions, np.int64)
    pairs, bound = 0, 0
    for q in range(questions):
        while held[q] < width and best[q, held[q]] <= pool:
            held[q] += 1
        for slot in range(labels.shape[1]):
            if 0 <= labels[q, slot] < held[q]:
                pairs += 1
                bound += held[q]
    question, slots = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    base, split = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    first, entry = np.zeros(pairs + 1, np.int64), np.zeros(bound + 1, np.int64)
    codes, values = np.empty(bound * channels, np.int64), np.empty(bound * channels)
    code, value = np.empty((channels, width), np.int64), np.empty((channels, width))
    size, key = np.empty((channels, width)), np.empty(width, np.int64)
    over, under = np.empty(width, np.uint8), np.empty(width, np.uint8)
    wins, loses = np.empty(width + 2, np.int64), np.empty(width + 2, np.int64)
    p, row, n, filled = 0, 0, 0, -1
    for q in range(questions):
        for slot in range(labels.shape[1]):
            mine = labels[q, slot]
            if not 0 <= mine < held[q]:
                continue
            if filled != q:
                _fill(ranks, scores, q, held[q], depth, kind, pool, special, code, value, size)
                _first_appearance(ranks, q, held[q], depth, pool, walk, key)
                filled = q
            # The moved rows are set against the label without pruning, which would count the others as well.
            always, won, lost = _contest(size, key, mine, held[q], kind != 2 and moved == 0, over, under, wins, loses)
            if moved > 0:
                won = _only_moved(ranks[special[1], q], moved, wins, won)
                lost = _only_moved(ranks[special[1], q], moved, loses, lost)
            wins[0] = mine
            question[p], slots[p], base[p] = q, slot, always
            row, n = _emit(wins[:won], walk, code, value, row, n, entry, codes, values)
            split[p] = row
            row, n = _emit(loses[1:lost], walk, code, value, row, n, entry, codes, values)
            p += 1
            first[p] = row
    return question, slots, base, first, split, entry[: row + 1], codes[:n], values[:n]


@numba.njit(cache=True)
def _only_moved(rank, moved, rows, end):  # type: ignore[no-untyped-def]
    """Keep the rows (places 1 to end) that the keyword list ranks up to `moved`; returns the new end."""
    kept = 1
    for place in range(1, end):
        u = rows[place]
        rows[kept] = u
        kept += 0 < rank[u] <= moved
    return kept
