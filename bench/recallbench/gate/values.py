"""A gate's result as JSON values, and as JUnit XML."""

from __future__ import annotations

import math
from typing import Any
from xml.etree import ElementTree

from recallbench.gate import lines
from recallbench.gate.judge import GateResult
from recallbench.gate.outcome import Change, Outcome, Verdict
from recallbench.scenarios.render import _printable
from recallbench.statistics.sample_size import Settle
from recallbench.statistics.verdict_interval import VerdictInterval

FORMAT = 1


def gate_values(result: GateResult) -> dict[str, Any]:
    """Everything that the gate found (unknown numbers are null)."""
    labelled, evaluation = result.evaluation.labelled, result.evaluation
    return {
        "format": FORMAT,
        "verdict": str(result.verdict),
        "exit_code": result.exit_code(),
        "against": result.against,
        "dataset": {
            "name": labelled.info.name,
            "version": labelled.info.version,
            "split": evaluation.split,
            "questions": len(labelled.questions),
            "memories": labelled.memories_hash,
            "labels": labelled.labels_hash,
        },
        "systems": [pair.system for pair in result.pairs],
        "primary": str(evaluation.measures[0]),
        "level": result.policy.level,
        "outcomes": [_outcome(one) for one in result.outcomes],
        "reasons": list(lines.reasons(result)),
        "flips": [
            {
                "system": found.system,
                "measure": found.measure,
                "same": found.same,
                "lost_at": dict(found.lost_at),
                "where": [{"group": name, "worse": worse, "questions": of} for name, worse, of in found.where],
                **{
                    side: [
                        {
                            "question": one.question,
                            "before": _number(one.before),
                            "after": _number(one.after),
                            "categories": list(one.categories),
                            "moved": [
                                {"memory": m.memory, "before": m.before, "after": m.after, "lost_at": m.stage}
                                for m in one.moved
                            ],
                        }
                        for one in flips
                    ]
                    for side, flips in (("worse", found.worse), ("better", found.better))
                },
            }
            for found in result.flips
        ],
        "categories": [
            {"system": one.system, "category": one.category, **_interval(one.interval), "small": one.small}
            for one in result.categories
        ],
        "unjudged": [
            {"question": one.question, "memory": one.memory, "before": one.before, "after": one.after}
            for one in result.unjudged
        ],
        "checks": [
            {"level": one.level, "name": one.name, "system": one.system, "message": one.message}
            for one in evaluation.checks
        ],
        "notes": list(result.notes),
    }


def _outcome(one: Outcome) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "system": one.system,
        "name": one.name,
        "category": one.group,
        "verdict": str(one.verdict),
        "message": one.message,
        "value": None if one.value is None else _number(one.value),
        "limit": one.limit,
        "change": None if one.change is None else _change(one.change),
        "notes": list(one.notes),
    }


def _change(one: Change) -> dict[str, Any]:
    found = one.comparison
    return {
        "margin": one.margin,
        "before": _number(one.before),
        "after": _number(one.after),
        **_interval(one.interval),
        "joint": [_number(one.joint.low), _number(one.joint.high)],
        "better": one.better,
        "worse": one.worse,
        "same": one.same,
        "significantly_worse": one.significantly_worse,
        "label_bounds": None if one.bounds is None else list(one.bounds),
        "settle": None if one.settle is None else _settle(one.settle),
        "statistics": None
        if found is None
        else {
            "t_interval": [_number(found.interval.low), _number(found.interval.high)],
            "bootstrap": [_number(end) for end in found.bootstrap],
            "p_randomization": found.p,
            "d_z": found.effect,
            "detectable": _number(found.detectable),
        },
    }


def _settle(one: Settle) -> dict[str, int]:
    return {
        "questions_if_same": one.same,
        "questions_if_twice": one.twice,
        "clusters_if_same": one.clusters_same,
        "clusters_if_twice": one.clusters_twice,
    }


def _interval(one: VerdictInterval) -> dict[str, Any]:
    return {
        "mean": _number(one.mean),
        "low": _number(one.low),
        "high": _number(one.high),
        "questions": one.n,
        "clusters": one.clusters,
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def junit(result: GateResult) -> str:
    """JUnit XML, a test a rule: FAIL is a failure, INVALID an error, INCONCLUSIVE skipped (strict: a failure)."""
    root = ElementTree.Element("testsuites", name="recallbench gate")
    strict = result.policy.strict

    def failing(one: Outcome) -> bool:
        return one.verdict is Verdict.FAIL or (strict and one.verdict is Verdict.INCONCLUSIVE)

    outcomes = result.outcomes
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=_printable(f"{result.evaluation.labelled.info.name} against {result.against}"),
        tests=str(len(outcomes)),
        failures=str(sum(map(failing, outcomes))),
        errors=str(sum(one.verdict is Verdict.INVALID for one in outcomes)),
        skipped=str(sum(one.verdict is Verdict.INCONCLUSIVE and not strict for one in outcomes)),
    )
    several = len(result.pairs) > 1
    for one in outcomes:
        name = _printable(f"{one.title} ({one.kind})")
        case = ElementTree.SubElement(suite, "testcase", classname=_printable(one.system or "run"), name=name)
        if one.verdict is Verdict.PASS:
            continue
        said = _printable(one.message or "; ".join(cell for cell in lines.rule_row(one, several)[1:] if cell))
        tag = "failure" if failing(one) else "error" if one.verdict is Verdict.INVALID else "skipped"
        ElementTree.SubElement(case, tag, message=said)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
