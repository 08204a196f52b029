"""nDCG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from recallbench.measures.base import Float, Mask, Measure
from recallbench.measures.ranked import RankedLabels
from recallstack.errors import InputError


@dataclass(frozen=True, slots=True)
class NDCG(Measure):
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen 2002), as trec_eval computes it.

    dcg: `log2` takes the grade as the gain (trec_eval's ndcg_cut), `exp-log2` takes `2^grade - 1`
    (Burges et al. 2005). The ideal list is made of all labels of the question.
    """

    dcg: Literal["log2", "exp-log2"] = "log2"

    title: ClassVar[str] = "nDCG"
    denominator: ClassVar[str] = "questions with a relevant memory"

    def __post_init__(self) -> None:
        Measure.__post_init__(self)
        if self.dcg not in ("log2", "exp-log2"):
            raise InputError(f"measure nDCG(dcg={self.dcg!r}): use 'log2' or 'exp-log2'")

    def values(self, ranked: RankedLabels) -> Float:
        grades = np.maximum(ranked.grades, 0).astype(np.float64)
        gain = grades if self.dcg == "log2" else np.exp2(grades) - 1
        best = -np.sort(-gain, axis=1)[:, : self.cutoff]
        ideal = (best / np.log2(np.arange(2, best.shape[1] + 2))).sum(axis=1)
        discount = np.log2(np.where(ranked.ranks > 0, ranked.ranks, 1) + 1.0)
        dcg = np.where(self.within(ranked.ranks), gain / discount, 0.0).sum(axis=1)
        return np.asarray(np.divide(dcg, ideal, out=np.zeros(len(dcg)), where=ideal > 0), np.float64)

    def counts(self, ranked: RankedLabels) -> Mask:
        return np.asarray((ranked.grades > 0).any(axis=1), np.bool_)
