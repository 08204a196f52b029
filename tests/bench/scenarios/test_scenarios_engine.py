"""The scenario engine: virtual time, what is left behind, outcomes, the catalogue and its mutants."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from recallbench.scenarios import engine, mutation, render
from recallbench.scenarios.base import Vocabulary
from recallbench.scenarios.catalogue import catalogue_folder
from recallbench.scenarios.load import load
from recallbench.scenarios.model import Given, Scenario, Switch
from recallbench.scenarios.reference import Reference
from recallbench.scenarios.virtual_time import NothingToWaitFor, VirtualLoop

FILE = """id: {id}
system: mneme
kind: {kind}
title: {{en: A title, zh: 标题}}
source: a test
needs: [search]
symptom: what a user sees
cause: why
{fault}
steps:
  - {{probe: search, query: cache, save: hits}}
expect:
  - {{first: [hits.ids, a]}}
{symptoms}
"""


class Fake:
    """An implementation whose search answers what a scenario's switches say."""

    name = "fake"

    def __init__(self, script: Any = None, capabilities: frozenset[str] = frozenset({"search"})) -> None:
        self._script = script
        self._capabilities = capabilities

    def vocabulary(self, system: str) -> Vocabulary | None:
        if system != "mneme":
            return None
        return Vocabulary(
            probes={"search": frozenset({"query", "top_k"})},
            calls={"run": frozenset()},
            capabilities=self._capabilities,
        )

    def switches(self, system: str) -> frozenset[str]:
        return frozenset({"turned", "idle", "crash"})

    def start(self, system: str, given: Given, switches: Mapping[str, Switch]) -> Playing:
        return Playing(self._script, switches)


class Playing:
    def __init__(self, script: Any, switches: Mapping[str, Switch]) -> None:
        self._script, self._switches = script, switches

    async def event(self, kind: str, data: Mapping[str, Any]) -> None: ...

    async def fault(self, name: str, value: Any) -> None: ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any: ...

    async def probe(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._script:
            await self._script()
        if "crash" in self._switches:
            raise ZeroDivisionError("a fault of the plugin")
        return {"ids": ["b", "a"] if "turned" in self._switches else ["a", "b"]}

    async def close(self) -> None: ...


def scenario(
    folder: Path, name: str = "one", kind: str = "bug", switch: str = "turned", symptom: str = "b"
) -> Scenario:
    fault = f"{'legacy' if kind == 'bug' else 'mutant'}: {{{switch}: true}}"
    symptoms = f"symptoms:\n  - {{first: [hits.ids, {symptom}]}}" if kind == "bug" else ""
    path = folder / f"{name}.yaml"
    path.write_text(FILE.format(id=name, kind=kind, fault=fault, symptoms=symptoms), encoding="utf-8")
    return load([path], Fake())[0]


def outcomes(found: Scenario, implementation: Fake | None = None) -> list[tuple[str, str]]:
    return [(one.variant, one.outcome) for one in engine.run([found], implementation or Fake())]


def test_a_bug_passes_fixed_and_shows_its_symptom_in_legacy(tmp_path: Path) -> None:
    assert outcomes(scenario(tmp_path)) == [("fixed", "passed"), ("legacy", "passed")]


def test_a_guard_passes_fixed_and_its_mutant_is_caught(tmp_path: Path) -> None:
    assert outcomes(scenario(tmp_path, kind="guard")) == [("fixed", "passed"), ("mutant", "passed")]


@pytest.mark.parametrize("kind", ["bug", "guard"])
def test_a_scenario_that_nothing_fails_is_refused(tmp_path: Path, kind: str) -> None:
    """The switch changes nothing: with it in, every expectation holds."""
    found = scenario(tmp_path, kind=kind, switch="idle", symptom="a")
    fixed, faulty = engine.run([found], Fake())
    assert (fixed.outcome, faulty.outcome) == ("passed", "failed")
    assert "proves nothing" in faulty.why[-1].came


def test_a_legacy_that_shows_another_symptom_fails(tmp_path: Path) -> None:
    _, legacy = engine.run([scenario(tmp_path, symptom="c")], Fake())
    assert legacy.outcome == "failed"
    assert (legacy.why[0].expected, legacy.why[0].came) == ("first: hits.ids, c", "hits.ids is ['b', 'a']")
    assert legacy.why[0].where.endswith("one.yaml:15")


def test_a_system_that_raises_is_a_failure_of_its_step_and_no_crash(tmp_path: Path) -> None:
    [_, mutant] = engine.run([scenario(tmp_path, kind="guard", switch="crash")], Fake())
    assert mutant.outcome == "passed"  # a mutant that crashes is caught
    found = scenario(tmp_path, switch="crash")
    _, legacy = engine.run([found], Fake())
    assert legacy.why[0].came == "ZeroDivisionError: a fault of the plugin"


def test_what_an_implementation_does_not_declare_is_not_applicable(tmp_path: Path) -> None:
    got = outcomes(scenario(tmp_path), Fake(capabilities=frozenset({"inject"})))
    assert got == [("fixed", "not-applicable"), ("legacy", "not-applicable")]


def test_a_timer_and_a_task_that_are_left_fail_the_scenario(tmp_path: Path) -> None:
    async def leaves_a_timer() -> None:
        asyncio.get_running_loop().call_later(60, print)

    [fixed, _] = engine.run([scenario(tmp_path)], Fake(leaves_a_timer))
    assert [why.came for why in fixed.why] == ["1 timers and 0 tasks after the end"]

    kept = []

    async def leaves_a_task() -> None:
        kept.append(asyncio.create_task(asyncio.Event().wait()))

    [fixed, _] = engine.run([scenario(tmp_path)], Fake(leaves_a_task))
    assert [why.came for why in fixed.why] == ["0 timers and 1 tasks after the end"]


def test_a_wait_for_what_never_comes_is_a_failure_and_no_hang(tmp_path: Path) -> None:
    async def waits() -> None:
        await asyncio.get_running_loop().create_future()

    [fixed, _] = engine.run([scenario(tmp_path)], Fake(waits))
    assert fixed.outcome == "failed"
    assert "never comes" in fixed.why[0].came


def on_virtual_time(script: Any) -> Any:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(script())


def test_time_jumps_and_keeps_its_order() -> None:
    """An hour of sleeping, a timeout and a timer: in the order of their times, and in no time."""
    seen: list[str] = []

    async def script() -> float:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        loop.call_later(5, seen.append, "timer")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await asyncio.sleep(4)
        seen.append("timeout")
        await asyncio.sleep(3600)
        seen.append("hour")
        return loop.time() - begun

    begun = time.monotonic()
    assert on_virtual_time(script) == pytest.approx(3603)
    assert seen == ["timeout", "timer", "hour"]
    assert time.monotonic() - begun < 60  # it did not wait for an hour: no measure of speed


def test_the_loop_says_that_nothing_can_wake_it() -> None:
    async def script() -> None:
        await asyncio.Event().wait()

    with pytest.raises(NothingToWaitFor):
        on_virtual_time(script)


CATALOGUE = load([catalogue_folder()], Reference())


@pytest.mark.parametrize("found", CATALOGUE, ids=[one.id for one in CATALOGUE])
def test_the_catalogue(found: Scenario) -> None:
    """Every scenario: fixed meets every expectation; the bug put back shows its symptom, the mutant is caught."""
    for result in engine.run([found], Reference()):
        assert result.outcome == "passed", render.failures_text([result])


def test_there_are_at_least_25_mutants_and_25_more_over_the_other_systems() -> None:
    count = Counter(system for system, _ in mutation.faults(CATALOGUE, Reference()))
    assert count["mneme"] + count["pre-retrieval"] + count["field"] >= 25
    assert count["notes"] + count["memory-v2"] + count["context-lane"] >= 25


# A fault of memory-v2 runs through its 44 scenarios with a database each: `scenarios mutants` (CI) does that.
@pytest.mark.parametrize(
    "system", [pytest.param(one, marks=[pytest.mark.slow] * (one == "memory-v2")) for one in Reference().systems()]
)
@pytest.mark.timeout(900)  # minutes of real databases: it passed in a quiet machine, and not beside others
def test_every_mutant_is_caught(system: str) -> None:
    mutants = mutation.check([one for one in CATALOGUE if one.system == system], Reference())
    assert mutants
    assert [one.name for one in mutation.survivors(mutants)] == []


def test_a_mutant_that_nothing_notices_survives(tmp_path: Path) -> None:
    found = mutation.check([scenario(tmp_path)], Fake())
    assert {one.name: one.caught for one in found} == {"turned": ("one",), "idle": (), "crash": ("one",)}
    assert [one.name for one in mutation.survivors(found)] == ["idle"]


def test_documented_ids_are_in_the_catalogue() -> None:
    """The lists of the design for mneme, pre-retrieval and field."""
    documented = {
        "mneme-first-step-empty-query",
        "mneme-stale-query-turn-n",
        "mneme-rewound-message-does-not-leak",
        "mneme-canceled-splice-does-not-leak",
        "mneme-ended-turn-splice-does-not-leak",
        "mneme-live-query-voided-on-append",
        "mneme-live-query-voided-on-rewind",
        "mneme-live-query-voided-on-reject",
        "mneme-prefetch-first-step-miss",
        "mneme-prefetch-shared",
        "mneme-prefetch-cooldown",
        "mneme-prefetch-timeout-leaves-no-timer",
        "mneme-vector-excludes-bm25",
        "mneme-truncate-before-filter-importance",
        "mneme-truncate-before-filter-archived",
        "mneme-truncate-before-filter-foreign-scope",
        "mneme-rerank-overrides-fusion",
        "mneme-scope-penalised-once",
        "mneme-unembedded-row-scale",
        "mneme-like-override-rrf",
        "mneme-like-override-minmax",
        "mneme-blend-auto-unchanged",
        "mneme-keyword-mode-unchanged",
        "pre-once-injects-once",
        "pre-resume-does-not-reinject",
        "pre-per-turn-new-ids-only",
        "pre-failure-once-marks-session",
        "pre-failure-per-turn-marks-turn",
        "pre-timeout",
        "pre-http-500",
        "pre-malformed-body",
        "pre-budget-top-k-min-score-max-chars",
        "pre-context-bounds",
        "pre-own-injection-not-in-context",
        "pre-billed-tokens",
        "field-rrf-zero-based",
        "field-rrf-absent-scored",
        "field-rrf-duplicate-keeps-low-score",
        "field-rrf-k1-single-list-wins",
        "field-tie-order-unstable",
        "field-overfetch-1x",
        "field-split-surrogate",
        "field-template-braces",
        "field-first-round-rules-only",
    }
    assert documented <= {one.id for one in CATALOGUE}


def test_junit_counts_and_names_what_failed(tmp_path: Path) -> None:
    results = engine.run([scenario(tmp_path, symptom='"c\\a"')], Fake())
    suite = ElementTree.fromstring(render.junit(results)).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "0")
    [failure] = suite.iter("failure")
    assert "expected first: hits.ids" in (failure.get("message") or "")
