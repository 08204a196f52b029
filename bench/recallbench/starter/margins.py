"""The margins that `init` proposes: the smallest drop that a set can detect."""

from __future__ import annotations

import math
from collections.abc import Callable

from recallbench.datasets.model import LabelledSet

PRESETS = ("bm25-lucene", "vector-lsa", "rrf-k10", "rrf-k60", "minmax")
"""Recipes whose paired differences stand for those between two versions of a system."""
STEP = 0.005
FALLBACK = 0.05
"""Where no pair of them differs (a set that is too easy, or too small)."""


def proposed(labelled: LabelledSet, measures: tuple[str, ...], progress: Callable[[str], None]) -> dict[str, float]:
    """measure -> detectable drop of the median pair of PRESETS, rounded up to STEP."""
    from recallbench.cache.candidates import CandidateCache, cache_folder
    from recallbench.evaluation.experiment import Experiment
    from recallbench.labelling.power import power_report

    result = Experiment(labelled, PRESETS, measures, cache=CandidateCache(cache_folder()), progress=progress)
    found = power_report(result.evaluations[0])
    out = {}
    for one in found.measures:
        value = one.detectable.median if one.detectable is not None else FALLBACK
        out[one.measure] = round(math.ceil(value / STEP - 1e-9) * STEP, 3)
    return out
