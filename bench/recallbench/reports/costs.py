"""Quality against cost: what an answer costs, and which systems are on the Pareto front."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recallbench.reports.standing import Standing
from recallbench.runs.load import StoredRun


@dataclass(frozen=True, slots=True)
class Cost:
    """One kind of cost. kind: tokens, billed or latency; at: system -> cost an answer; front: in order of cost."""

    kind: str
    at: dict[str, float]
    front: tuple[str, ...]


def costs(run: StoredRun, held: Standing) -> list[Cost]:
    """Tokens always; billed tokens where they were measured; the median latency where it was.

    Tokens are of everything that came back, over all questions that got an answer.
    """
    evaluation = run.evaluation
    found: list[tuple[str, dict[str, float]]] = []
    tokens = {}
    for one, row in zip(evaluation.runs, run.tokens, strict=True):
        if not one.failed.all():
            tokens[one.system] = float(row[~one.failed].mean())
    found.append(("tokens", tokens))
    if "BilledTokens" in map(str, evaluation.measures):
        billed = {name: held.means[name, "BilledTokens"].mean for name in evaluation.systems}
        found.append(("billed", {name: value for name, value in billed.items() if np.isfinite(value)}))
    if run.latency:
        found.append(("latency", run.latency))
    quality = {name: held.means[name, held.primary].mean for name in evaluation.systems}
    sign = 1.0 if evaluation.measures[0].higher_is_better else -1.0
    return [Cost(kind, at, front({name: (at[name], sign * quality[name]) for name in at})) for kind, at in found]


def front(points: dict[str, tuple[float, float]]) -> tuple[str, ...]:
    """Names of the points (cost, quality) that no other one beats, cheapest first.

    A point is beaten by one of no higher cost and no lower quality, if one of both is strictly better.
    """
    ordered = sorted(points, key=lambda name: (points[name][0], -points[name][1]))
    out: list[str] = []
    for name in ordered:
        cost, quality = points[name]
        if np.isnan(quality):
            continue
        if not out or quality > points[out[-1]][1] or points[out[-1]] == (cost, quality):
            out.append(name)
    return tuple(out)
