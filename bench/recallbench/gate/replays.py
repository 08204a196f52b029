"""Scenarios that must pass: replays of documented bugs, run on the caller's implementation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recallbench.gate.outcome import Outcome, Verdict
from recallbench.gate.policy import Policy
from recallstack.errors import InputError

if TYPE_CHECKING:
    from recallbench.scenarios.engine import Result
    from recallbench.scenarios.model import Scenario
    from recallbench.systems.config import Configured


def scenario_outcomes(
    policy: Policy,
    configured: Mapping[str, Configured] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Iterator[Outcome]:
    """One outcome a scenario of the policy, run in variant fixed.

    A scenario named by its id that does not apply to the implementation is INCONCLUSIVE: the policy asks for it. One
    that was named with its whole system is left out, unless none of them applies. configured, overrides: as of
    `systems_of`, for an implementation on stdio. Raises InputError for a name that there is not.
    """
    rule = policy.scenarios
    if not rule.run:
        return
    from recallbench.scenarios import engine
    from recallbench.scenarios.implementations import implementation_of

    chosen = _chosen(policy)
    implementation = implementation_of(rule.implementation, configured, overrides)
    try:
        results = engine.run(chosen, implementation, ("fixed",))
    finally:
        close = getattr(implementation, "close", None)  # one in process has nothing to close
        if close is not None:
            close()
    applied = {one.scenario.system for one in results if one.outcome != "not-applicable"}
    silent: dict[str, None] = {}
    for one in results:
        if one.outcome != "not-applicable":
            yield _outcome(one)
        elif one.scenario.id in rule.run:
            needs = ", ".join(one.scenario.needs)
            said = f"not applicable: {one.implementation} does not declare {needs}, or does not play it"
            yield Outcome("scenario", one.implementation, one.scenario.id, Verdict.INCONCLUSIVE, said)
        elif one.scenario.system not in applied:
            silent[one.scenario.system] = None
    for system in silent:
        said = f"none of its scenarios applies to {rule.implementation}"
        yield Outcome("scenario", rule.implementation, system, Verdict.INCONCLUSIVE, said)


def _outcome(one: Result) -> Outcome:
    why = "; ".join(f"{each.where}: expected {each.expected}, came {each.came}" for each in one.why[:1])
    verdict = Verdict.PASS if one.outcome == "passed" else Verdict.FAIL
    return Outcome("scenario", one.implementation, one.scenario.id, verdict, why)


def _chosen(policy: Policy) -> list[Scenario]:
    from recallbench.datasets.jsonl import nearest
    from recallbench.scenarios.catalogue import catalogue_folder
    from recallbench.scenarios.load import load
    from recallbench.scenarios.reference import Reference

    rule = policy.scenarios
    found = load([Path(one) for one in rule.folders] or [catalogue_folder()], Reference())
    ids, systems = {one.id for one in found}, {one.system for one in found}
    for name in rule.run:
        if name not in ids and name not in systems:
            raise InputError(f"gate.scenarios.run: no scenario {name!r}; {nearest(name, sorted(ids | systems))}")
    return [one for one in found if one.id in rule.run or one.system in rule.run]
