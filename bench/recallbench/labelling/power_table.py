"""A power report as plain values for JSON, and the same as Markdown."""

from __future__ import annotations

import math
from typing import Any

from recallbench.labelling.power import ALPHA, POWER, SATURATED_SET, MeasurePower, PowerReport, Spread
from recallbench.statistics.intervals import FEW_CLUSTERS
from recallbench.text.tables import table


def power_values(report: PowerReport) -> dict[str, Any]:
    """All that the report says, as JSON values (unknown numbers are null)."""
    evaluation = report.evaluation
    return {
        "dataset": evaluation.labelled.info.name,
        "version": evaluation.labelled.info.version,
        "split": evaluation.split,
        "questions": len(evaluation.labelled.questions),
        "systems": list(evaluation.systems),
        "valid": evaluation.valid,
        "alpha": ALPHA,
        "power": POWER,
        "difference": report.difference,
        "measures": [
            {
                "measure": one.measure,
                "questions": one.questions,
                "clusters": one.clusters,
                "pairs": one.pairs,
                "equal": one.equal,
                "detectable": _spread_values(one.detectable),
                "needed": _spread_values(one.needed),
            }
            for one in report.measures
        ],
        "primary": str(evaluation.measures[0]),
        "best": {"system": report.half[0][0], "mean": report.half[0][1].mean},
        "saturated": report.saturated,
        "half": [
            {"system": name, "mean": one.mean, "low": _number(one.low), "high": _number(one.high)}
            for name, one in report.half
        ],
        "significant": report.significant,
        "significant_share": report.significant / len(report.pairs) if report.pairs else None,
        "pairs": [
            {
                "better": one.better,
                "worse": one.worse,
                "difference": one.difference,
                "equal": one.equal,
                "p": one.p,
                "holm": one.adjusted,
                "significant": one.significant,
            }
            for one in report.pairs
        ],
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _spread_values(spread: Spread | None) -> dict[str, float] | None:
    if spread is None:
        return None
    return {"median": spread.median, "least": spread.least, "greatest": spread.greatest}


def power_markdown(report: PowerReport) -> str:
    """The report as Markdown, ready for a set's README."""
    evaluation = report.evaluation
    info, where = evaluation.labelled.info, f", {evaluation.split} split" if evaluation.split else ""
    parts = [
        f"# Power of {info.name} {info.version}{where}",
        f"{len(evaluation.labelled.questions)} questions, {len(evaluation.systems)} systems, seen in all their pairs.",
        *_invalid(report),
        "## Smallest detectable difference",
        _detectable(report),
        _reading(report),
        f"## The better half by {evaluation.measures[0]}",
        _half(report),
        "\n".join([_saturation(report), _pairs(report)]),
    ]
    return "\n\n".join(parts) + "\n"


def _invalid(report: PowerReport) -> list[str]:
    errors = [one for one in report.evaluation.checks if one.level == "error"]
    return ["\n".join(f"- **error** ({one.name}) {one.message}" for one in errors)] if errors else []


def _detectable(report: PowerReport) -> str:
    header = ["measure", "questions", "clusters", "pairs that differ", "median pair", "least", "greatest"]
    if report.difference is not None:
        header.append(f"questions for {report.difference:g} (greatest)")
    return table(header, [_row(one, report.difference is not None) for one in report.measures])


def _row(one: MeasurePower, wanted: bool) -> list[str]:
    row = [one.measure, str(one.questions), str(one.clusters or "–"), f"{one.pairs - one.equal} of {one.pairs}"]
    found = one.detectable
    row += [_shown(value) for value in (found.median, found.least, found.greatest)] if found else ["–"] * 3
    if wanted:
        row.append(f"{math.ceil(one.needed.median)} ({math.ceil(one.needed.greatest)})" if one.needed else "–")
    return row


def _shown(value: float) -> str:
    return f"{value:.3f}" if value >= 0.0005 else "<0.001"


def _reading(report: PowerReport) -> str:
    lines = [
        f"The smallest true difference that is found with power {POWER:.0%} (two-sided {ALPHA:.0%}), from the spread "
        "of the per-question differences of each pair of systems; robust to clusters where questions have them. "
        "Pairs that are equal on every question have no spread, and no say."
    ]
    if report.difference is not None:
        lines.append(
            f"Questions for {report.difference:g}: how many would find a difference of {report.difference:g}, for the "
            "median pair and for the pair that needs most, if further questions (and clusters) were like these."
        )
    few = [one.clusters for one in report.measures if 0 < one.clusters < FEW_CLUSTERS]
    if few:
        lines.append(f"Under {FEW_CLUSTERS} clusters ({min(few)} here) these figures are rough.")
    return " ".join(lines)


def _half(report: PowerReport) -> str:
    rows = []
    for name, one in report.half:
        won = sum(pair.significant and pair.better == name for pair in report.pairs)
        lost = sum(pair.significant and pair.worse == name for pair in report.pairs)
        rows.append([name, f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]", str(won), str(lost)])
    return table(["system", str(report.evaluation.measures[0]), "better than", "worse than"], rows)


def _saturation(report: PowerReport) -> str:
    name, interval = report.half[0]
    verdict = "**saturated**" if report.saturated else "not saturated"
    return (
        f"- Best: {name} with {report.evaluation.measures[0]} {interval.mean:.3f}: {verdict} "
        f"(a set is where the best system is above {SATURATED_SET:g})."
    )


def _pairs(report: PowerReport) -> str:
    if not report.pairs:
        return "- One system is no pair."
    equal = sum(pair.equal for pair in report.pairs)
    return (
        f"- Significant pairs: {report.significant} of {len(report.pairs)} "
        f"({report.significant / len(report.pairs):.0%}) at {ALPHA:.0%}, by a seeded randomization test with Holm's "
        f"correction over these pairs; {equal} pairs are equal on every question."
    )
