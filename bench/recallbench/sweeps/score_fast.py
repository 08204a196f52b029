"""Measures of swept recipes compiled with numba (extra `fast`), equal to `recallbench.measures` to 1e-12.

A measure that adds up over labels, or takes the best of them, is a table: what a rank is worth, times what the label
is worth. AP also needs to know how many relevant rows stand before each, AllR whether one is missing. Measures
outside this grammar are left to `recallbench.measures`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from recallbench.measures import Measure
from recallbench.measures.ranked import RankedLabels

Float = NDArray[np.float64]

_NAME = re.compile(r"(nDCG|R|P|Success|RR|AP|AllR)(?:\(rel=(\d+)\))?(?:@(\d+))?")
_SUM, _BEST, _AVERAGE, _ALL = 0, 1, 2, 3
_RULES = {"nDCG": _SUM, "R": _SUM, "P": _SUM, "Success": _BEST, "RR": _BEST, "AP": _AVERAGE, "AllR": _ALL}


@dataclass(frozen=True, slots=True, eq=False)
class Gains:
    """M compiled measures of Q questions; E labels have a worth, question by question.

    compiled: bool, one a measure that was asked for, M of them true. counts: bool `[M, Q]`, the questions in each
    denominator. rule: int64 `[M]`, how worths become a value. rank_worth: float64 `[D + 1, M]`, by rank, 0 at rank 0.
    start: int64 `[Q + 1]`, first label of each question. slot: int64 `[E]`, its place among the labels. label_worth:
    float64 `[E, M]`.
    """

    compiled: NDArray[np.bool_]
    counts: NDArray[np.bool_]
    rule: NDArray[np.int64]
    rank_worth: Float
    start: NDArray[np.int64]
    slot: NDArray[np.int64]
    label_worth: Float

    @classmethod
    def of(cls, measures: Sequence[Measure], grades: NDArray[np.int16], default_rel: int, deepest: int) -> Gains:
        """Tables of the measures that can be compiled. deepest: the largest rank."""
        names = [_parsed(measure) for measure in measures]
        asked = [(measure, name) for measure, name in zip(measures, names, strict=True) if name is not None]
        worths = [
            _worth(kind, default_rel if rel is None else rel, cutoff, grades, deepest)
            for _, (kind, rel, cutoff) in asked
        ]
        by_rank = np.array([one for one, _ in worths]).reshape(len(asked), deepest + 1)
        by_label = np.array([one for _, one in worths]).reshape(len(asked), *grades.shape)
        counts = np.array([measure.counts(_unranked(grades, default_rel)) for measure, _ in asked], np.bool_)
        question, slot = np.nonzero((by_label != 0).any(axis=0))
        return cls(
            np.array([name is not None for name in names], np.bool_),
            counts.reshape(len(asked), len(grades)),
            np.array([_RULES[name[0]] for _, name in asked], np.int64),
            np.ascontiguousarray(by_rank.T),
            np.searchsorted(question, np.arange(len(grades) + 1)).astype(np.int64),
            slot.astype(np.int64),
            np.ascontiguousarray(by_label[:, question, slot].T),
        )


def _unranked(grades: NDArray[np.int16], default_rel: int) -> RankedLabels:
    """Labels without answers: all that the denominator of a compiled measure hangs on."""
    nothing = np.zeros(len(grades), np.int32)
    return RankedLabels(
        np.zeros(grades.shape, np.int32), grades, nothing, nothing.astype(np.bool_), default_rel=default_rel
    )


def _parsed(measure: Measure) -> tuple[str, int | None, int | None] | None:
    """(name, rel, cutoff) of a measure that can be compiled."""
    found = _NAME.fullmatch(str(measure))
    if found is None or (found[1] == "P" and found[3] is None):
        return None
    return found[1], int(found[2]) if found[2] else None, int(found[3]) if found[3] else None


def _worth(kind: str, rel: int, cutoff: int | None, grades: NDArray[np.int16], deepest: int) -> tuple[Float, Float]:
    """What each rank is worth, float64 `[D + 1]`, and each label, float64 `[Q, L]`.

    The formulas are those of trec_eval: nDCG of Järvelin and Kekäläinen 2002 with the grade as gain and 1/log2(rank +
    1) as discount, its ideal over all labels.
    """
    rank = np.arange(1, deepest + 1, dtype=np.float64)
    inside = np.ones(deepest) if cutoff is None else (rank <= cutoff).astype(np.float64)
    relevant = (grades >= max(rel, 0)).astype(np.float64)
    if kind == "nDCG":
        gain = np.maximum(grades, 0).astype(np.float64)
        ideal = -np.sort(-gain, axis=1)[:, :cutoff]
        best = (ideal / np.log2(np.arange(2, ideal.shape[1] + 2))).sum(axis=1)
        by_rank, by_label = inside / np.log2(rank + 1), _over(gain, best)
    elif kind == "P":
        by_rank, by_label = inside / (cutoff or 1), relevant
    elif kind in ("R", "AP"):
        by_rank, by_label = inside, _over(relevant, relevant.sum(axis=1))
    else:
        by_rank, by_label = inside / rank if kind == "RR" else inside, relevant
    return np.concatenate([[0.0], by_rank]), by_label


def _over(values: Float, total: Float) -> Float:
    return np.divide(values, total[:, None], out=np.zeros_like(values), where=total[:, None] > 0)


def add_up(gains: Gains, ranks: NDArray[np.int32], groups: NDArray[np.int64], count: int) -> Float:
    """float64 `[B, M, G]`: sums over groups of questions. ranks: int32 `[B, Q, L]`; groups: int64 `[Q]`."""
    out = np.zeros((len(ranks), len(gains.rule), count))
    _add_up(gains.rule, gains.rank_worth, gains.start, gains.slot, gains.label_worth, ranks, groups, out)
    return out


@numba.njit(cache=True)
def _add_up(rule, rank_worth, start, slot, label_worth, ranks, groups, out):  # type: ignore[no-untyped-def]
    measures = rule.shape[0]
    value = np.empty(measures)
    for b in range(ranks.shape[0]):
        for q in range(groups.shape[0]):
            value[:] = 0.0
            for e in range(start[q], start[q + 1]):
                rank = ranks[b, q, slot[e]]
                if rank == 0:
                    continue
                for m in range(measures):
                    worth = rank_worth[rank, m] * label_worth[e, m]
                    if rule[m] == _SUM or rule[m] == _ALL:
                        value[m] += worth
                    elif rule[m] == _BEST:
                        value[m] = max(value[m], worth)
                    elif worth > 0:
                        before = 0
                        for other in range(start[q], start[q + 1]):
                            if label_worth[other, m] > 0 and 0 < ranks[b, q, slot[other]] <= rank:
                                before += 1
                        value[m] += worth * before / rank
            for m in range(measures):
                if rule[m] == _ALL:
                    wanted = 0.0
                    for e in range(start[q], start[q + 1]):
                        wanted += label_worth[e, m]
                    value[m] = 1.0 if value[m] == wanted and wanted > 0 else 0.0
                out[b, m, groups[q]] += value[m]
