"""A baseline as plain values for JSON, and the same as Markdown."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from recallbench.datasets.jsonl import nearest
from recallbench.gate.baselines.model import Baseline
from recallbench.text.tables import table
from recallstack.errors import InputError


def baseline_values(baseline: Baseline, question: str | None = None) -> dict[str, Any]:
    """What a baseline holds; with a question, what each system returned. Raises InputError for an unknown question."""
    out: dict[str, Any] = {
        "dataset": dict(baseline.dataset),
        "memories": len(baseline.memories),
        "questions": len(baseline.questions),
        "depth": baseline.depth,
        "revision": baseline.revision,
        "time": baseline.time,
        "versions": dict(baseline.versions),
        "means": {
            name: {measure: _mean(values) for measure, values in one.values.items()}
            for name, one in baseline.systems.items()
        },
    }
    if question is None:
        return out
    place = _place(baseline, question)
    return {
        "question": question,
        "answers": {
            name: {
                "ids": list(one.ids[place]),
                "values": {measure: _finite(values[place]) for measure, values in one.values.items()},
            }
            for name, one in baseline.systems.items()
        },
    }


def _place(baseline: Baseline, question: str) -> int:
    known = list(baseline.questions)
    if question not in baseline.questions:
        raise InputError(f"the baseline has no question {question!r}; {nearest(question, known)}")
    return known.index(question)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _mean(values: tuple[float, ...]) -> float | None:
    return _finite(float(np.mean(values))) if values else None


def baseline_markdown(baseline: Baseline, question: str | None = None) -> str:
    """The same as Markdown."""
    values = baseline_values(baseline, question)
    if question is not None:
        parts = [f"# {question}"]
        for name, answer in values["answers"].items():
            measured = ", ".join(f"{key} {_shown(value)}" for key, value in answer["values"].items())
            parts.append(f"**{name}**: {measured}\n\n{', '.join(answer['ids']) or 'nothing'}")
        return "\n\n".join(parts) + "\n"
    data = baseline.dataset
    split = f", {data['split']} split" if data.get("split") else ""
    made = f"Made {baseline.time or 'at an unknown time'}" + (f" at {baseline.revision}" if baseline.revision else "")
    rows = [[name, *(_shown(value) for value in means.values())] for name, means in values["means"].items()]
    parts = [
        f"# Baseline on {data.get('name')} {data.get('version')}{split}",
        f"{len(baseline.questions)} questions, {len(baseline.memories)} memories, depth {baseline.depth}. {made} with "
        f"recallbench {baseline.versions.get('recallbench', '?')}.",
        table(["system", *baseline.measures], rows),
        "Means over all questions, those that do not count in a measure as 0; `recallbench run` has the means over the "
        "questions that count, with intervals.",
    ]
    return "\n\n".join(parts) + "\n"


def _shown(value: float | None) -> str:
    return "∞" if value is None else f"{value:.3f}"
