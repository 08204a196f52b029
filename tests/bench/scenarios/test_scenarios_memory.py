"""memory-v2 under scenarios: what the adapter refuses, what its faults do, and that nothing is left behind."""

from __future__ import annotations

import dataclasses
import gc
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from postgres import Server, schema
from scenario_files import passes_and_its_mutant_is_caught, scenario
from scenario_files import saved as saved_of

from recallbench.scenarios import engine
from recallbench.scenarios.expectations import failures
from recallbench.scenarios.load import load
from recallbench.scenarios.model import Given, Scenario, Switch
from recallbench.scenarios.reference import Reference
from recallbench.scenarios.systems import memory
from recallbench.scenarios.systems.memory_process import FAILS
from recallstack.errors import InputError
from recallstack.systems.memory import LEGACY, Switches

HEAD = """id: my-memory
system: memory-v2
kind: guard
title: {en: A title, zh: 标题}
source: a test
needs: [search]
symptom: what a user sees
cause: why
"""
GOOD = (
    HEAD
    + """given:
  memories: [{user: ann, text: boiler note}]
  config: {lifecycle: canary, inject: 2}
mutant: {limit_ignored: true}
steps:
  - {call: write, user: ann, text: boiler visit}
  - {probe: recall, user: ann, query: boiler, limit: 1, save: hits}
expect:
  - {length: [hits.ids, 1]}
"""
)
CATALOGUE = Path(__file__).parents[3] / "datasets/scenarios/memory-v2"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folders of scenarios are made here, and every test leaves it empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def saved(folder: Path, given: str, steps: str) -> dict[str, Any]:
    """What the steps of a scenario saved."""
    return saved_of(folder, f"{HEAD}mutant: {{limit_ignored: true}}\n", given, steps)


def test_the_good_file_passes_and_its_mutant_is_caught(tmp_path: Path) -> None:
    assert passes_and_its_mutant_is_caught(tmp_path, GOOD)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("probe: recall", "probe: recal", 15, "unknown probe 'recal'; did you mean 'recall'?"),
        ("query: boiler", "qery: boiler", 15, "unknown argument of recall 'qery'; did you mean 'query'?"),
        ("limit: 1", "limit: 0", 15, "limit is 0"),
        ("call: write", "call: wirte", 14, "unknown call 'wirte'; did you mean 'write'?"),
        ("{call: write, user: ann, text: boiler visit}", "{event: user/message}", 14, "unknown event"),
        ("{call: write, user: ann, text: boiler visit}", "{fault: {database: slow}}", 14, "unknown fault of database"),
        ("{call: write, user: ann, text: boiler visit}", "{fault: {vectors: no-runs}}", 14, "unknown fault of vectors"),
        (
            "{call: write, user: ann, text: boiler visit}",
            "{call: switch, inject: 3}",
            14,
            "of switch 'inject'",
        ),
        ("{lifecycle:", "{lifecylce:", 11, "unknown setting of memory-v2 'lifecylce'; did you mean 'lifecycle'?"),
        ("limit_ignored", "limit_ignord", 12, "unknown switch of memory-v2 'limit_ignord'"),
        ("needs: [search]", "needs: [notes]", 6, "unknown capability of memory-v2 'notes'"),
    ],
)
def test_words_that_memory_does_not_have(old: str, new: str, line: int, message: str, tmp_path: Path) -> None:
    """Refused before anything is played, with file and line."""
    assert old in GOOD
    with pytest.raises(InputError) as caught:
        scenario(tmp_path, GOOD.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 'mine.yaml'}:{line}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{probe: recall, user: ann, save: hits}", "recall: Object missing required field `query`"),
        ("{probe: recall, user: ann, query: null, save: hits}", "recall: Expected `str`, got `null` - at `query`"),
        ("{call: write, user: ann}", "write: Object missing required field `text`"),
        ("{call: write, user: ann, text: x, repeat: 0}", "write: Expected `int` >= 1 - at `repeat`"),
        ('{call: write, user: ann, text: " ", id: a}', "memory 'a' has no content; give a text"),
        ("{call: write, user: ann, text: x, importance: 6}", "importance is 6.0; it must be 1 to 5"),
        ("{call: write, user: ann, text: x, type: fact}", "write: Invalid enum value 'fact' - at `type`"),
        ("{call: promote, text: nothing}", "there is no candidate 'nothing'; save it first"),
        ("{call: reject, text: nothing}", "there is no candidate 'nothing'; save it first"),
        ("{call: forget, user: ann, ids: [nothing]}", "memory 'nothing' is not one of this user's"),
        ("{call: start, lifecycle: everywhere}", "start: Invalid enum value 'everywhere' - at `lifecycle`"),
        ("{call: start, embedder: word9vec}", "word9vec"),
        ("{call: start, embedder: lsa}", "fitted on a fixed corpus"),
        ("{call: switch, forget: maybe}", "switch: Expected `bool`, got `str` - at `forget`"),
        ("{probe: candidates, side: left, save: hits}", "candidates: Invalid enum value 'left' - at `side`"),
        ("{fault: {embed: error}}", "there is no embedder that could fail; give vectors"),
    ],
)
def test_arguments_that_cannot_be_used(step: str, message: str, tmp_path: Path) -> None:
    """The step is named, in one line; the scenario does not pass."""
    text = GOOD.replace("{call: write, user: ann, text: boiler visit}", step, 1)
    text = text.replace("{lifecycle: canary,", "{lifecycle: canary, lifecycle_users: [ann], forget: true,")
    _, broken = engine.play(scenario(tmp_path, text), Reference(), {})
    assert [one.where for one in broken] == [f"{tmp_path / 'mine.yaml'}:14"]
    assert message in broken[0].came
    assert "\n" not in broken[0].came


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("user: ann, text: boiler note", "text: boiler note", "memories, row 1: Object missing required field `user`"),
        ("user: ann, text: boiler note", "user: ann, content: x", "memories, row 1: Object contains unknown field"),
        ("text: boiler note", 'text: " "', "has no content"),
        ("inject: 2", "inject: 0", "config: Expected `int` >= 1 - at `inject`"),
        ("inject: 2", "injection: loud", "config: Invalid enum value 'loud' - at `injection`"),
        ("inject: 2}", "inject: 2}\n  vectors: {a: [1], b: [1, 0]}", "vectors have [1, 2] dimensions"),
    ],
)
def test_given_that_cannot_be_used(old: str, new: str, message: str, tmp_path: Path) -> None:
    """Said with the line of `given`, and no folder is left (fixture)."""
    assert old in GOOD
    one = scenario(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        engine.play(one, Reference(), {})
    assert str(caught.value).startswith(f"{tmp_path / 'mine.yaml'}:10: given: ")
    assert message in str(caught.value)


def test_a_switch_is_on_or_off(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"memory-v2 switches: Expected `bool`, got `int` - at `\$\.limit_ignored`"):
        engine.play(scenario(tmp_path, GOOD), Reference(), {"limit_ignored": 3})


def test_time_is_the_harnesss(tmp_path: Path) -> None:
    """expires_in_ms counts from the write; at the very millisecond it is over."""
    got = saved(
        tmp_path,
        "{config: {lifecycle: canary, lifecycle_users: [ann], expire: true}}",
        """  - {call: write, user: ann, text: first, expires_in_ms: 1000}
  - {advance_ms: 500}
  - {call: write, user: ann, text: second, expires_in_ms: 1000}
  - {advance_ms: 499}
  - {call: expire, user: ann, save: at_999}
  - {advance_ms: 1}
  - {call: expire, user: ann, save: got}
  - {probe: recall, user: ann, query: unrelated, save: left}""",
    )
    assert got["at_999"]["ids"] == []
    assert got["got"]["ids"] == ["first"]
    assert got["left"]["texts"] == ["second"]


def test_start_is_a_new_process_over_the_same_rows(tmp_path: Path) -> None:
    """Settings that it does not change stay; what a `switch` changed stays too; faults stay."""
    got = saved(
        tmp_path,
        "{config: {candidates: true, injection: canary, injection_users: [ann]}}",
        """  - {call: save-candidates, user: ann, texts: [Ann keeps bees]}
  - {call: switch, lifecycle: canary}
  - {call: start, injection: shadow, save: got}
  - {probe: candidates, user: ann, save: kept}
  - {fault: {database: gone}}
  - {call: start, save: gone}
  - {call: turn, user: ann, text: hello, save: turn}
  - {call: write, user: ann, text: x, save: written}""",
    )
    assert got["got"]["lifecycle"] == "canary"
    assert got["got"]["injection"] == "shadow"
    assert got["got"]["candidates"] is True
    assert got["kept"]["texts"] == ["Ann keeps bees"]
    assert got["gone"]["started"] is True
    assert got["gone"]["debt"] is None
    assert got["turn"]["prompt"] == "hello"
    assert got["turn"]["remarks"]
    assert got["written"]["error"].startswith("sqlite:///memory.db: saving memories failed: it cannot be reached")


def test_a_fault_names_the_statements_that_fail() -> None:
    """By the statements that the package makes, so that a renamed table cannot turn a fault off."""
    from recallstack.systems.memory.schema import CANDIDATES, MEMORIES, RUNS

    create = str(sa.schema.CreateTable(CANDIDATES))
    others = [str(sa.schema.CreateTable(MEMORIES)), str(sa.insert(CANDIDATES)), str(sa.select(CANDIDATES))]
    assert FAILS["no-candidate-table"](create)
    assert not any(FAILS["no-candidate-table"](one) for one in others)
    assert FAILS["no-runs"](str(sa.select(RUNS.c.user_message_json)).replace("\n", ""))
    assert not FAILS["no-runs"](str(sa.insert(RUNS)))
    assert FAILS["no-new-memories"](str(sa.insert(MEMORIES)))
    assert not FAILS["no-new-memories"](str(sa.insert(CANDIDATES)))
    assert not any(FAILS["none"](one) for one in others)
    assert all(FAILS["gone"](one) for one in others)


def test_every_connection_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every engine that was made has been disposed of, with several processes and a fault in between."""
    opened: list[Any] = []
    closed: list[Any] = []
    real = sa.create_engine

    def create(*arguments: Any, **more: Any) -> sa.Engine:
        made = real(*arguments, **more)
        sa.event.listen(made, "connect", lambda connection, _: opened.append(connection))
        sa.event.listen(made, "close", lambda connection, _: closed.append(connection))
        return made

    monkeypatch.setattr(sa, "create_engine", create)
    saved(
        tmp_path,
        "{memories: [{user: ann, text: boiler note}], config: {candidates: true, worker: true, lifecycle: canary}}",
        """  - {call: start, save: got}
  - {call: start-admin}
  - {fault: {vectors: gone}}
  - {call: write, user: ann, text: x}
  - {call: start}
  - {probe: memories, save: rows}""",
    )
    gc.collect()
    assert len(opened) >= 8
    assert {id(one) for one in opened} == {id(one) for one in closed}


# The catalogue.


@pytest.fixture(scope="module")
def scenarios() -> tuple[Scenario, ...]:
    return tuple(load([CATALOGUE], Reference()))


def test_the_catalogue_has_what_the_design_names_and_every_switch(scenarios: tuple[Scenario, ...]) -> None:
    """Each switch stands alone in one scenario at least; the bugs are those of LEGACY."""
    alone = {next(iter(one.switches)) for one in scenarios if len(one.switches) == 1}
    assert alone == memory.SWITCHES == {one.name for one in dataclasses.fields(Switches)}
    bugs = {name for one in scenarios if one.kind == "bug" for name in one.switches}
    assert bugs == {one.name for one in dataclasses.fields(Switches) if getattr(LEGACY, one.name)}
    assert {one.id for one in scenarios} >= {
        "v2-candidate-table-missing",
        "v2-ddl-failure-keeps-chat",
        "v2-ddl-failure-stops-admin",
        "v2-lifecycle-off-writes-nothing",
        "v2-lifecycle-canary-only-listed",
        "v2-forget-needs-switch-and-scope",
        "v2-lifecycle-active-global",
        "v2-new-memory-recallable-at-once",
        "v2-memory-context-not-relearned",
        "v2-empty-extraction-is-final",
        "v2-question-is-not-a-fact",
        "v2-null-extraction-falls-back",
        "v2-weak-embedding-needs-recent-and-ngrams",
        "v2-no-overlap-keeps-vector-order",
        "v2-pool-bounded-100",
        "v2-closed-loop",
        "v2-rollback-keeps-table",
    }


@pytest.mark.parametrize("name", sorted(path.stem for path in CATALOGUE.glob("*.yaml")))
def test_a_scenario_passes_and_its_fault_fails_an_invariant(name: str) -> None:
    """An invariant: `exact` alone would let another implementation pass with the fault in."""
    [one] = load([CATALOGUE / f"{name}.yaml"], Reference())
    assert engine.run_one(one, Reference(), "fixed").why == ()
    found, broken = engine.play(one, Reference(), one.switches)
    assert broken or failures(one.expect, found)
    assert failures(one.symptoms, found) == []


class OnPostgres(Reference):
    """The reference stack with memory-v2 on a PostgreSQL server, each scenario in a schema of its own."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._open: list[Any] = []

    def start(self, system: str, given: Given, switches: Mapping[str, Switch]) -> Any:
        own = schema(self._server)
        session = memory.Session(given, switches, self._server.address, own.__enter__())
        close = session.close

        async def close_both() -> None:
            await close()
            own.__exit__(None, None, None)

        session.close = close_both
        return session


@pytest.mark.pg
def test_the_catalogue_on_postgresql(scenarios: tuple[Scenario, ...], postgres: Server) -> None:
    """What the scenarios expect holds on both databases. (The server starts before the folder is watched.)"""
    results = engine.run(scenarios, OnPostgres(postgres), ["fixed"])
    assert [(one.scenario.id, one.variant, one.why) for one in results if one.outcome != "passed"] == []
    assert len(results) == len(scenarios)
