"""Thousands of fusion recipes over the same candidates: their measures, by counting instead of sorting.

`sweep_set` does the whole of it for a labelled set; this module is the part on arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recallbench.measures import Measure, compute_all
from recallbench.measures.ranked import RankedLabels
from recallstack.ranking.kernels.counting import Pooled, Prepared, fast_available, fused_lengths, rank_blocks

Int = NDArray[np.int32]
Float = NDArray[np.float64]
Grades = NDArray[np.int16]


def sweep(
    prepared: Prepared,
    grades: Grades,
    recipes: Sequence[Pooled],
    measures: Sequence[Measure],
    *,
    limit: int | None = None,
    default_rel: int = 1,
    per_question: bool = False,
    fast: bool | None = None,
) -> Float:
    """The measures of R recipes (fusion, pool) over Q questions.

    prepared: candidates laid out by `recallstack.ranking.kernels.counting.prepare`; questions of several corpora may
    lie in one, as rows of different questions are never compared. grades: int16 `[Q, L]`, of the labels that it was
    prepared with, -1 padding. limit: rows of a fused list; None is the whole union. default_rel: the least grade that
    a binary measure counts. fast: compiled kernels; None uses them where numba is installed and RECALLBENCH_FAST is
    not 0.
    Returns float64 `[R, M]`, means over the questions that count (NaN where none does), or with `per_question`
    float64 `[R, M, Q]`, 0 where the question does not count.
    """
    questions = prepared.questions
    groups = np.arange(questions) if per_question else np.zeros(questions, np.int64)
    sums, counted = group_sums(
        prepared, grades, recipes, measures, groups, limit=limit, default_rel=default_rel, fast=fast
    )
    if per_question:
        return sums
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Float = sums.sum(axis=2) / counted.sum(axis=2)
    return means


def group_sums(
    prepared: Prepared,
    grades: Grades,
    recipes: Sequence[Pooled],
    measures: Sequence[Measure],
    groups: NDArray[np.int64],
    *,
    limit: int | None = None,
    default_rel: int = 1,
    fast: bool | None = None,
) -> tuple[Float, NDArray[np.int64]]:
    """Sums of each measure over each group of questions, and how many questions count in it.

    groups: int64 `[Q]`, 0 to G - 1. Returns float64 and int64 `[R, M, G]`. Other arguments as in `sweep`.
    """
    if grades.shape != prepared.labels.shape:
        raise ValueError(f"grades {grades.shape} must be of the prepared labels {prepared.labels.shape}")
    if fast is None:
        fast = fast_available()
    count = int(groups.max(initial=-1)) + 1
    sums = np.zeros((len(recipes), len(measures), count))
    counted = np.zeros(sums.shape, np.int64)
    gains = None
    if fast:
        from recallbench.sweeps.score_fast import Gains, add_up

        gains = Gains.of(measures, grades, default_rel, deepest=prepared.ids.shape[1])
        counted[:, gains.compiled] = _add(gains.counts[:, None].astype(np.float64), groups, count)
    compiled = np.zeros(len(measures), np.bool_) if gains is None else gains.compiled
    rest = [measure for measure, done in zip(measures, compiled, strict=True) if not done]
    for places, ranks in rank_blocks(prepared, recipes, limit, fast=fast):
        at = np.array(places)
        if gains is not None:
            sums[np.ix_(at, compiled)] = add_up(gains, ranks, groups, count)
        if rest:
            block = [recipes[place] for place in places]
            ranked = _ranked(prepared, grades, block, ranks, limit, default_rel)
            shape = len(rest), len(block), prepared.questions
            counts = np.array([measure.counts(ranked) for measure in rest], np.float64).reshape(shape)
            sums[np.ix_(at, ~compiled)] = _add(compute_all(rest, ranked).reshape(shape), groups, count)
            counted[np.ix_(at, ~compiled)] = _add(counts, groups, count)
    return sums, counted


def _add(values: Float, groups: NDArray[np.int64], count: int) -> Float:
    """float64 `[B, M, G]`: values (float64 `[M, B, Q]`) added up by group."""
    out = np.zeros((*values.shape[:2], count))
    if values.shape[2]:
        order = np.argsort(groups, kind="stable")
        present, start = np.unique(groups[order], return_index=True)
        out[:, :, present] = np.add.reduceat(values[:, :, order], start, axis=2)
    return out.transpose(1, 0, 2)


def _ranked(
    prepared: Prepared, grades: Grades, block: Sequence[Pooled], ranks: Int, limit: int | None, default_rel: int
) -> RankedLabels:
    """The questions of B recipes one behind the other, as one batch.

    Labels lie in column order, as measures add up over the few labels of many questions.
    """
    returned = np.tile(fused_lengths(prepared, *block[0], limit), len(block))  # a block's lists hold the same rows
    return RankedLabels(
        np.asfortranarray(ranks.reshape(len(returned), ranks.shape[2])),
        np.asfortranarray(np.tile(grades, (len(block), 1))),
        returned,
        np.zeros(len(returned), np.bool_),
        default_rel=default_rel,
    )
