"""What a scenario run shows: a matrix, the failures in full, JSON values, JUnit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from recallbench.scenarios.engine import Result
from recallbench.text.tables import table

_MARK = {"passed": "ok", "failed": "FAIL", "not-applicable": "n/a"}
_SAYS = {"fixed": "", "legacy": "symptom shown", "mutant": "mutant caught"}


def failed(results: Sequence[Result]) -> list[Result]:
    """The results that make a run fail."""
    return [one for one in results if one.outcome == "failed"]


def matrix(results: Sequence[Result], lang: str = "en") -> str:
    """A Markdown table: a scenario a line, a column for each implementation and variant.

    lang: of the titles, `en` or `zh`.
    """
    columns = list(dict.fromkeys((one.implementation, _column(one)) for one in results))
    by_id: dict[str, dict[tuple[str, str], Result]] = {}
    for one in results:
        by_id.setdefault(one.scenario.id, {})[one.implementation, _column(one)] = one
    rows = []
    for cells in by_id.values():
        scenario = next(iter(cells.values())).scenario
        marks = [_mark(cells.get(column)) for column in columns]
        rows.append([scenario.id, scenario.kind, getattr(scenario.title, lang), *marks])
    several = len({name for name, _ in columns}) > 1
    header = ["scenario", "kind", "title", *(f"{name} {column}" if several else column for name, column in columns)]
    return table(header, rows, "l" * len(header))


def _column(one: Result) -> str:
    return "fixed" if one.variant == "fixed" else "legacy or mutant"


def _mark(one: Result | None) -> str:
    if one is None:
        return ""
    said = _SAYS[one.variant]
    return f"{_MARK[one.outcome]} ({said})" if said and one.outcome == "passed" else _MARK[one.outcome]


def failures_text(results: Sequence[Result]) -> str:
    """Every failing expectation: where it stands, what was expected, what came."""
    lines = []
    for one in failed(results):
        lines.append(f"{one.scenario.id} ({one.implementation}, {one.variant}): {one.scenario.symptom}")
        for why in one.why:
            lines += [f"  {why.where}", f"    expected  {why.expected}", f"    came      {why.came}"]
    return "\n".join(lines)


def counts_line(results: Sequence[Result]) -> str:
    """How many of each outcome, in one line."""
    counts = {name: sum(one.outcome == name for one in results) for name in ("passed", "failed", "not-applicable")}
    scenarios = len({one.scenario.id for one in results})
    rest = "".join(f", {count} {name}" for name, count in counts.items() if count and name != "passed")
    return f"{scenarios} scenarios, {len(results)} runs: {counts['passed']} passed{rest}"


def summary(results: Sequence[Result], lang: str = "en") -> str:
    """The whole as Markdown: the matrix, then what failed."""
    parts = ["# Scenarios", counts_line(results), matrix(results, lang)]
    if failed(results):
        parts += ["## Failures", "```", failures_text(results), "```"]
    return "\n\n".join(parts) + "\n"


def values(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The results as JSON values."""
    return [
        {
            "scenario": one.scenario.id,
            "system": one.scenario.system,
            "kind": one.scenario.kind,
            "title": {"en": one.scenario.title.en, "zh": one.scenario.title.zh},
            "implementation": one.implementation,
            "variant": one.variant,
            "outcome": one.outcome,
            "failures": [{"where": why.where, "expected": why.expected, "came": why.came} for why in one.why],
        }
        for one in results
    ]


def junit(results: Sequence[Result]) -> str:
    """The results as JUnit XML: a suite for each system, a test for each scenario and variant."""
    root = ElementTree.Element("testsuites", name="recallbench scenarios")
    for system in dict.fromkeys(one.scenario.system for one in results):
        own = [one for one in results if one.scenario.system == system]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=system,
            tests=str(len(own)),
            failures=str(len(failed(own))),
            skipped=str(sum(one.outcome == "not-applicable" for one in own)),
        )
        for one in own:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=f"{one.implementation}.{system}",
                name=f"{one.scenario.id} [{one.variant}]",
            )
            if one.outcome == "failed":
                said = [f"{why.where}: expected {why.expected}; came {why.came}" for why in one.why]
                ElementTree.SubElement(case, "failure", message=_printable(said[0])).text = _printable("\n".join(said))
            elif one.outcome == "not-applicable":
                ElementTree.SubElement(case, "skipped", message="needs what the implementation does not declare")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _printable(text: str) -> str:
    """XML 1.0 has no control characters and no half characters."""
    return "".join(
        one if one in "\t\n" or (" " <= one < "\ud800") or "\ue000" <= one < "\ufffe" or one > "\uffff" else "?"
        for one in text
    )
