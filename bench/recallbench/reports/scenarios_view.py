"""The matrix of scenarios as a report shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recallbench.reports.inputs import ScenarioResult
from recallbench.reports.words import Both, say

View = dict[str, Any]


def scenarios_view(results: Sequence[ScenarioResult]) -> View:
    """The matrix of scenarios: a table a system, a column an implementation and variant."""
    columns = list(dict.fromkeys((one.implementation, one.variant == "fixed") for one in results))
    several = len({name for name, _ in columns}) > 1
    groups = []
    for system in dict.fromkeys(one.system for one in results):
        own = [one for one in results if one.system == system]
        rows = []
        for name in dict.fromkeys(one.scenario for one in own):
            mine = {(one.implementation, one.variant == "fixed"): one for one in own if one.scenario == name}
            title = next(iter(mine.values())).title
            marks = [mine[column].outcome if column in mine else "" for column in columns]
            rows.append({"scenario": name, "title": Both(title.en, title.zh), "marks": marks})
        groups.append(
            {
                "system": system,
                "runs": len(own),
                "passed": sum(one.outcome == "passed" for one in own),
                "failed": sum(one.outcome == "failed" for one in own),
                "columns": [_variant(name, fixed, several) for name, fixed in columns],
                "rows": rows,
            }
        )
    passed = sum(one.outcome == "passed" for one in results)
    note = say("x.note", passed=passed, runs=len(results), count=len({one.scenario for one in results}))
    return {"note": note, "groups": groups}


def _variant(implementation: str, fixed: bool, several: bool) -> Both:
    text = say("x.fixed" if fixed else "x.legacy")
    return Both(f"{implementation}: {text.en}", f"{implementation}：{text.zh}") if several else text
