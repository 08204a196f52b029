"""Counting compiled with numba (extra `fast`): the results of `counting_view`, up to 64 recipes side by side.

Each kernel adds the parts of a row in channel order and without fused multiply-add, so that sums are those of `fuse`
to the last bit. Kernels run on one thread and are cached on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numba
import numpy as np

from recallstack.ranking.fusion import Fusion
from recallstack.ranking.kernels.layout import BLOCK, Float, Int, Prepared
from recallstack.ranking.kernels.plan_fast import plan_of

WORD = 8
"""Lanes come in multiples of this, the float64 numbers of a wide register."""


def count_blocks(
    prepared: Prepared, kind: str, pool: int, fusions: Sequence[Fusion], moved: int
) -> Iterator[tuple[Int, Int]]:
    """As `counting._count_blocks`: int32 `[B, Q, L]` ranks, and with `moved` the moved rows ahead of each label."""
    plan = plan_of(prepared, kind, pool, 0)
    front = plan_of(prepared, kind, pool, moved) if moved else None
    for start in range(0, len(fusions), BLOCK):
        block = fusions[start : start + BLOCK]
        coefficients = _coefficients(prepared, kind, block)
        ranks, ahead = (np.zeros((len(block), *prepared.labels.shape), np.int32) for _ in range(2))
        _spread(_count(coefficients, plan), plan.question, plan.slot, 1, ranks)
        if front is not None:
            _spread(_count(coefficients, front), front.question, front.slot, 0, ahead)
        yield ranks, ahead


def _coefficients(prepared: Prepared, kind: str, block: Sequence[Fusion]) -> Float:
    """float64 `[K, W]`: what each code stands for in each of up to 64 recipes; W is a multiple of 8.

    rrf: code `c * (N + 1) + rank`, the part of that rank in channel c. minmax: the weight of channel c.
    blend: the same, and 1 as the last. Lanes beyond the recipes repeat the first.
    """
    lanes = [*block, *[block[0]] * (-len(block) % WORD)]
    if kind != "rrf":
        rows = [[getattr(one.weights, name) for one in lanes] for name in prepared.names]
        return np.array([*rows, [1.0] * len(lanes)])
    k = np.array([one.k for one in lanes], dtype=np.float64)
    rank = np.arange(prepared.depth + 1, dtype=np.float64)[:, None]
    parts = []
    for name in prepared.names:
        weight = np.array([getattr(one.weights, name) if one.weighted else 1.0 for one in lanes])
        parts.append(weight / (k + rank))
    return np.ascontiguousarray(np.concatenate(parts))


@numba.njit(cache=True)
def _sum(coefficients, plan, row, out):  # type: ignore[no-untyped-def]
    """The fused score of a row in every lane; parts are added in channel order."""
    lanes = out.shape[0]
    start, stop = plan.entry[row], plan.entry[row + 1]
    x, part = plan.value[start], coefficients[plan.code[start]]
    for lane in range(lanes):
        out[lane] = part[lane] * x
    for n in range(start + 1, stop):
        x, part = plan.value[n], coefficients[plan.code[n]]
        for lane in range(lanes):
            out[lane] += part[lane] * x


@numba.njit(cache=True)
def _count(coefficients, plan):  # type: ignore[no-untyped-def]
    """int64 `[P, W]`: rows that beat the label of each pair in each lane."""
    pairs, lanes = plan.question.shape[0], coefficients.shape[1]
    out = np.empty((pairs, lanes), np.int64)
    mine, score = np.empty(lanes), np.empty(lanes)
    for p in range(pairs):
        beaten = out[p]
        beaten[:] = plan.base[p]
        _sum(coefficients, plan, plan.first[p], mine)
        for row in range(plan.first[p] + 1, plan.split[p]):
            _sum(coefficients, plan, row, score)
            for lane in range(lanes):
                beaten[lane] += score[lane] >= mine[lane]
        for row in range(plan.split[p], plan.first[p + 1]):
            _sum(coefficients, plan, row, score)
            for lane in range(lanes):
                beaten[lane] += score[lane] > mine[lane]
    return out


@numba.njit(cache=True)
def _spread(counts, question, slot, plus, out):  # type: ignore[no-untyped-def]
    """Write counts `[P, W]` to their places in `[B, Q, L]`."""
    for lane in range(out.shape[0]):
        for p in range(question.shape[0]):
            out[lane, question[p], slot[p]] = counts[p, lane] + plus
