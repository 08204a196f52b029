"""Runs scenarios: steps in order on virtual time, then the expectations."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from recallbench.scenarios.base import Choosing, Clocked, Implementation, Named, Running
from recallbench.scenarios.expectations import Failure, failures
from recallbench.scenarios.model import Scenario, Switch
from recallbench.scenarios.virtual_time import NothingToWaitFor, VirtualLoop
from recallstack.errors import InputError

Variant = Literal["fixed", "legacy", "mutant"]
Outcome = Literal["passed", "failed", "not-applicable"]


@dataclass(frozen=True, slots=True)
class Result:
    """One scenario on one implementation in one variant.

    outcome: `passed` of fixed means that every expectation holds; of legacy, that the documented symptom shows and
    an expectation fails; of mutant, that an expectation fails. why: what failed, in order.
    """

    scenario: Scenario
    implementation: str
    variant: Variant
    outcome: Outcome
    why: tuple[Failure, ...] = ()


def run(
    scenarios: Sequence[Scenario],
    implementation: Implementation,
    variants: Iterable[Literal["fixed", "legacy"]] = ("fixed", "legacy"),
    done: Callable[[Result], None] | None = None,
) -> list[Result]:
    """Every scenario in every variant asked for; `legacy` of a guard is its mutant.

    An implementation without switches is run in variant fixed alone. done: called after each.
    """
    out = []
    for scenario in scenarios:
        for variant in dict.fromkeys(variants):
            if variant == "legacy" and not implementation.switches(scenario.system):
                continue
            result = run_one(scenario, implementation, variant)
            out.append(result)
            if done:
                done(result)
    return out


def run_one(scenario: Scenario, implementation: Implementation, variant: Literal["fixed", "legacy"]) -> Result:
    """One scenario, fixed or with its own fault in."""
    vocabulary = implementation.vocabulary(scenario.system)
    shown: Variant = "fixed" if variant == "fixed" else "legacy" if scenario.kind == "bug" else "mutant"
    if vocabulary is None or not set(scenario.needs) <= vocabulary.capabilities:
        return Result(scenario, implementation.name, shown, "not-applicable")
    if isinstance(implementation, Choosing) and not implementation.plays(scenario):
        return Result(scenario, implementation.name, shown, "not-applicable")
    saved, broken = play(scenario, implementation, {} if variant == "fixed" else scenario.switches)
    exact = scenario.exact if implementation.switches(scenario.system) else ()
    unmet = broken + failures((*scenario.expect, *exact), saved)
    if shown == "fixed":
        return Result(scenario, implementation.name, shown, "failed" if unmet else "passed", tuple(unmet))
    why = [*broken, *failures(scenario.symptoms, saved)] if shown == "legacy" else []
    if not unmet:
        why.append(
            Failure(
                str(scenario.path),
                "an expectation that fails with the fault in",
                f"all hold with {_shown(scenario.switches)}: the scenario proves nothing",
            )
        )
    return Result(scenario, implementation.name, shown, "failed" if why else "passed", tuple(why))


def unmet(scenario: Scenario, implementation: Implementation, switches: Mapping[str, Switch]) -> list[Failure]:
    """The expectations that fail with these switches in (mutation check)."""
    saved, broken = play(scenario, implementation, switches)
    return broken + failures((*scenario.expect, *scenario.exact), saved)


def play(
    scenario: Scenario, implementation: Implementation, switches: Mapping[str, Switch]
) -> tuple[dict[str, Any], list[Failure]]:
    """(what was saved, what broke on the way): the steps in order, then a look at what was left behind."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        saved: dict[str, Any] = {}
        broken: list[Failure] = []
        try:
            runner.run(_play(scenario, implementation, switches, saved, broken))
        except NothingToWaitFor as error:
            broken.append(Failure(str(scenario.path), "every step ends", str(error)))
        left = len(loop.pending_timers())
        tasks = [task for task in asyncio.all_tasks(loop) if not task.done()]
        if left or tasks:
            broken.append(
                Failure(
                    str(scenario.path), "nothing is left behind", f"{left} timers and {len(tasks)} tasks after the end"
                )
            )
        return saved, broken


async def _play(
    scenario: Scenario,
    implementation: Implementation,
    switches: Mapping[str, Switch],
    saved: dict[str, Any],
    broken: list[Failure],
) -> None:
    if isinstance(implementation, Named):
        implementation.begins(scenario.id)
    try:
        running = implementation.start(scenario.system, scenario.given, switches)
    except InputError as error:
        raise InputError(f"{scenario.given_at or scenario.path}: given: {error}") from None
    try:
        for step in scenario.steps:
            try:
                got = await _step(running, step.kind, step.name, step.arguments)
            except (NothingToWaitFor, asyncio.CancelledError):
                raise
            except InputError as error:
                broken.append(Failure(step.where, f"{step.name} answers", str(error)))
                return
            except Exception as error:  # noqa: BLE001 (a system that raises is a finding, shown with its step)
                broken.append(Failure(step.where, f"{step.name} answers", f"{type(error).__name__}: {error}"))
                return
            if step.save:
                saved[step.save] = got
    finally:
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await running.close()
        except Exception as error:  # noqa: BLE001 (as of a step)
            broken.append(Failure(str(scenario.path), "the scenario ends", f"{type(error).__name__}: {error}"))


async def _step(running: Running, kind: str, name: str, arguments: Mapping[str, Any]) -> Any:
    if kind == "event":
        await running.event(name, arguments)
    elif kind == "call":
        return await running.call(name, arguments)
    elif kind == "advance":
        await asyncio.sleep(arguments["ms"] / 1000)
        if isinstance(running, Clocked):
            await running.advance(arguments["ms"])
    elif kind == "fault":
        await running.fault(name, arguments["value"])
    else:
        return await running.probe(name, arguments)
    return None


def _shown(switches: Mapping[str, Switch]) -> str:
    return ", ".join(f"{key}: {str(value).lower()}" for key, value in switches.items())
