"""Runs of the same questions put together, so that the systems of all stand in one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallbench.evaluation.evaluate import Evaluation
from recallbench.runs.load import StoredRun, load_run, run_folders
from recallstack.errors import InputError


def load_runs(paths: Sequence[Path]) -> list[StoredRun]:
    """The runs of these folders, in order; runs of the same questions at the same depth become one with all systems.

    Raises InputError for a folder that is no run, or a file that is missing or damaged.
    """
    found: dict[tuple[Any, ...], StoredRun] = {}
    for folder in run_folders(paths):
        one = load_run(folder)
        found[one.identity] = together(found[one.identity], one) if one.identity in found else one
    return list(found.values())


def together(first: StoredRun, second: StoredRun) -> StoredRun:
    """One run with the systems of both, over the measures that both have.

    A system of the second whose name the first has too is named after its run, unless it is the same system with the
    same answers.
    """
    a, b = first.evaluation, second.evaluation
    shared = [measure for measure in a.measures if measure in b.measures]
    if not shared:
        raise InputError(f"{second.folders[0]}: no measure in common with {first.folders[0]}; run both with the same")
    runs, manifests, kept = list(a.runs), dict(first.manifest["systems"]), []
    for place, run in enumerate(b.runs):
        same = next((one for one in runs if one.system == run.system), None)
        if same is not None and same.ids == run.ids:
            continue
        name = run.system if same is None else f"{run.system} ({second.folders[0].name})"
        kept.append(place)
        runs.append(replace(run, system=name))
        manifests[name] = second.manifest["systems"][run.system]
    checks = (*a.checks, *(one for one in b.checks if one not in a.checks))
    rank = {"error": 0, "warning": 1, "info": 2}
    evaluation = replace(
        a,
        runs=tuple(runs),
        measures=tuple(shared),
        values=np.concatenate([_columns(a, a.values, shared), _columns(b, b.values, shared)[kept]]),
        counts=np.concatenate([_columns(a, a.counts, shared), _columns(b, b.counts, shared)[kept]]),
        checks=tuple(sorted(checks, key=lambda check: rank[check.level])),
    )
    return StoredRun(
        evaluation,
        {**first.manifest, "systems": manifests, "measures": list(map(str, shared))},
        first.memories,
        (*first.folders, *second.folders),
        np.concatenate([first.tokens, second.tokens[kept]]),
        {**second.latency, **first.latency},
        {**first.texts, **second.texts},
    )


def _columns(evaluation: Evaluation, values: NDArray[Any], measures: Sequence[Any]) -> NDArray[Any]:
    return values[:, [evaluation.measures.index(measure) for measure in measures]]
