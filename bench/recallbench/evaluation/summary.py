"""The summary of an evaluation: plain values for JSON, and the same as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from recallbench.evaluation.aggregate import Cell, cells, differences
from recallbench.evaluation.evaluate import Evaluation
from recallbench.statistics.intervals import FEW_CLUSTERS, Interval
from recallbench.text.tables import table


def summary_values(
    evaluation: Evaluation, baseline: str | None = None, by: Sequence[str] = ("category", "lang")
) -> dict[str, Any]:
    """All that a summary shows, as JSON values (unknown numbers are null)."""
    labelled = evaluation.labelled
    out: dict[str, Any] = {
        "dataset": labelled.info.name,
        "version": labelled.info.version,
        "questions": len(labelled.questions),
        "memories": sum(map(len, labelled.corpora.values())),
        "split": evaluation.split,
        "depth": evaluation.depth,
        "primary": str(evaluation.measures[0]),
        "valid": evaluation.valid,
        "measures": {
            str(measure): {
                "higher_is_better": measure.higher_is_better,
                "denominator": measure.denominator,
                "worst": _number(measure.worst),
            }
            for measure in evaluation.measures
        },
        "results": [_cell(cell) for cell in cells(evaluation)],
        "by": {name: [_cell(cell) for cell in cells(evaluation, name)] for name in by},
        "checks": [
            {"level": one.level, "name": one.name, "system": one.system, "message": one.message}
            for one in evaluation.checks
        ],
    }
    if baseline is not None:
        out["baseline"] = baseline
        out["differences"] = [_cell(cell) for cell in differences(evaluation, baseline)]
    return out


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _cell(cell: Cell) -> dict[str, Any]:
    interval = cell.interval
    out: dict[str, Any] = {"group": cell.group} if cell.group else {}
    return {
        **out,
        "system": cell.system,
        "measure": cell.measure,
        "mean": _number(interval.mean),
        "low": _number(interval.low),
        "high": _number(interval.high),
        "n": interval.n,
        "clusters": interval.clusters,
    }


def summary_markdown(
    evaluation: Evaluation, baseline: str | None = None, by: Mapping[str, Sequence[str]] | None = None
) -> str:
    """The summary as Markdown.

    by: grouping -> measures shown in its tables; None shows the primary measure, nDCG@5 and R@20, where
    measured, by category and by language (the order of recipes is not the same at both depths).
    """
    labelled = evaluation.labelled
    primary = str(evaluation.measures[0])
    if by is None:
        wanted = dict.fromkeys((primary, "nDCG@5", "R@20"))
        shown = [name for name in wanted if name in map(str, evaluation.measures)]
        by = {"category": shown, "lang": shown}
    where = f", {evaluation.split} split" if evaluation.split else ""
    parts = [
        f"# {labelled.info.name} {labelled.info.version}{where}",
        f"{len(labelled.questions)} questions, {sum(map(len, labelled.corpora.values()))} memories, "
        f"depth {evaluation.depth}. Primary measure: {primary}. "
        + ("Every trust check that can fail a run passed." if evaluation.valid else "**INVALID**: see the checks."),
        _checks(evaluation),
        _main(evaluation),
    ]
    if baseline is not None:
        parts.append(_differences(evaluation, baseline))
    for grouping, names in by.items():
        parts.extend(_grouped(evaluation, grouping, name) for name in names)
    parts.append(_notes(evaluation))
    return "\n\n".join(part for part in parts if part) + "\n"


def _checks(evaluation: Evaluation) -> str:
    if not evaluation.checks:
        return ""
    lines = [
        f"- **{one.level}** ({one.name}) {one.system + ': ' if one.system else ''}{one.message}"
        for one in evaluation.checks
    ]
    return "\n".join(["## Checks", "", *lines])


def _value(interval: Interval) -> str:
    if interval.n == 0 or math.isnan(interval.mean):
        return "–"
    return f"{interval.mean:.3f}" if math.isfinite(interval.mean) else "∞"


def _range(interval: Interval, signed: bool = False) -> str:
    if interval.n == 0:
        return "–"
    form = "+.3f" if signed else ".3f"
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return f"{interval.mean:{form}}"
    return f"{interval.mean:{form}} [{interval.low:{form}}, {interval.high:{form}}]"


def _main(evaluation: Evaluation) -> str:
    found = cells(evaluation)
    at = {(cell.system, cell.measure): cell.interval for cell in found}
    names = [str(measure) for measure in evaluation.measures]
    rows = [
        [system, _range(at[system, names[0]]), *(_value(at[system, name]) for name in names[1:])]
        for system in evaluation.systems
    ]
    lower = [str(measure) for measure in evaluation.measures if not measure.higher_is_better]
    text = f"Brackets: 95 % interval. {', '.join(lower)}: lower is better." if lower else "Brackets: 95 % interval."
    sizes = {name: sorted({at[system, name].n for system in evaluation.systems}, reverse=True) for name in names}
    counted = "; ".join(f"{name} over {'–'.join(map(str, ns))}" for name, ns in sizes.items())
    few = {cell.interval.clusters for cell in found if 0 < cell.interval.clusters < FEW_CLUSTERS}
    rough = f" Intervals over {max(few)} clusters (under {FEW_CLUSTERS}) are rough." if few else ""
    if few == {1}:
        rough = " All questions are of one cluster: the intervals are over its questions and say nothing of others."
    return "\n\n".join(
        [
            "## Results",
            table(["system", *names], rows),
            f"{text}{rough} Questions in the denominator: {counted}.",
        ]
    )


def _differences(evaluation: Evaluation, baseline: str) -> str:
    at = {(cell.system, cell.measure): cell.interval for cell in differences(evaluation, baseline)}
    names = [str(measure) for measure in evaluation.measures]
    shown = [name for name in names if not name.startswith("Judged")][:4]
    rows = [
        [system, *(_range(at[system, name], signed=True) for name in shown)]
        for system in evaluation.systems
        if system != baseline
    ]
    if not rows:
        return ""
    return "\n\n".join(
        [
            f"## Against {baseline}",
            table(["system", *shown], rows),
            "Paired differences by question with 95 % intervals; above 0 is better.",
        ]
    )


def _grouped(evaluation: Evaluation, grouping: str, name: str) -> str:
    found = [cell for cell in cells(evaluation, grouping) if cell.measure == name]
    groups = list(dict.fromkeys(cell.group for cell in found))
    if len(groups) < 2:
        return ""
    at = {(cell.system, cell.group): cell.interval for cell in found}
    first = evaluation.systems[0]
    header = ["system", *(f"{group} ({at[first, group].n})" for group in groups)]
    rows = [[system, *(_value(at[system, group]) for group in groups)] for system in evaluation.systems]
    return "\n\n".join([f"## {name} by {grouping}", table(header, rows)])


def _notes(evaluation: Evaluation) -> str:
    notes = evaluation.labelled.notes
    if not notes:
        return ""
    return "\n".join(["## What the reader mended or dropped", "", *(f"- {note}" for note in notes)])
