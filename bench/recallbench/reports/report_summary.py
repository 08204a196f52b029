"""What a report comes to, as a small JSON value: committed beside it, compared by CI, read by the history."""

from __future__ import annotations

import json
import math
from importlib.metadata import version
from typing import Any

from recallbench.reports.section import Section

DIGITS = 4
"""Decimals of a figure: what a reader sees, and what two machines agree on."""


def report_summary(section: Section) -> dict[str, Any]:
    """The figures of a run's report. Nothing in it varies between two runs of the same inputs."""
    run, held = section.run, section.held
    data, evaluation = run.manifest["dataset"], run.evaluation
    return {
        "format": 1,
        "recallbench": version("recallbench"),
        "dataset": run.name,
        "version": data["version"],
        "data": {"memories": data["memories"], "labels": data["labels"]},
        "split": evaluation.split,
        "questions": len(evaluation.labelled.questions),
        "memories": run.memories,
        "depth": evaluation.depth,
        "published": run.manifest["published"],
        "valid": evaluation.valid,
        "primary": held.primary,
        "outcome": section.verdict.outcome,
        "best": held.best,
        "pick": held.pick,
        "baseline": held.baseline,
        "tied": list(held.tied),
        "results": [
            {
                "system": system,
                "measure": str(measure),
                "mean": _number(interval.mean),
                "low": _number(interval.low),
                "high": _number(interval.high),
                "n": interval.n,
                "clusters": interval.clusters,
            }
            for system in evaluation.systems
            for measure in evaluation.measures
            for interval in [held.means[system, str(measure)]]
        ],
        "differences": [
            {
                "system": name,
                "to": held.reference,
                "mean": _number(one.interval.mean),
                "low": _number(one.interval.low),
                "high": _number(one.interval.high),
                "p": _number(one.p),
                "holm": _number(one.adjusted),
            }
            for name, one in (held.to_base or held.to_best).items()
        ],
        "waterfall": {one.system: one.counts for one in section.waterfalls},
        "checks": [{"level": one.level, "name": one.name, "system": one.system} for one in evaluation.checks],
    }


def summary_json(section: Section) -> str:
    """The summary as a JSON document; results and differences a line each, so that a diff can be read."""
    value = report_summary(section)
    text = json.dumps({**value, "results": "@0", "differences": "@1"}, indent=2, ensure_ascii=False, allow_nan=False)
    for place, key in enumerate(("results", "differences")):
        lines = ",\n    ".join(json.dumps(one, ensure_ascii=False, allow_nan=False) for one in value[key])
        text = text.replace(f'"@{place}"', f"[\n    {lines}\n  ]" if lines else "[]")
    return text + "\n"


def _number(value: float) -> float | None:
    return round(value, DIGITS) + 0.0 if math.isfinite(value) else None
