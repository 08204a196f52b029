"""Both sides of the memory system: starts that fail, the closed loop, injection, rollback."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from memory_support import ALL_MODES, BOTH, Clock, Fault, Letters, Stores, notes, stores_of, table

from recallstack.errors import InputError
from recallstack.systems.memory.admin import Admin
from recallstack.systems.memory.errors import StoreError
from recallstack.systems.memory.loop import STAGES, closed_loop
from recallstack.systems.memory.model import NewMemory
from recallstack.systems.memory.modes import Modes
from recallstack.systems.memory.portal import Portal
from recallstack.systems.memory.schema import CANDIDATES, MEMORIES
from recallstack.systems.memory.services import RecallEvent, Settings
from recallstack.systems.memory.switches import Switches
from recallstack.systems.session.block import BlockConfig


@pytest.fixture(params=BOTH)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with stores_of(request.param, tmp_path, request) as one:
        yield one


def refuse_ddl(stores: Stores, name: str, **more: Any) -> tuple[Portal, Any]:
    """A portal that is not started, and a fault that refuses to make the table of that name."""
    database, vectors = stores.open()
    portal = Portal(database, vectors, "hash3", Settings(**{"modes": ALL_MODES, "now": Clock(), **more}))
    code = "42501" if stores.postgres else "SQLITE_AUTH"
    return portal, Fault(database, lambda _, text: "CREATE TABLE" in text and name in text, code)


# Start.


def test_a_start_makes_the_schema_before_the_store(stores: Stores) -> None:
    portal = stores.portal()
    status = portal.status()
    assert (status.health, status.debt, status.warnings) == ("ok", 0, ())
    assert portal.save_candidates("ann", "s", notes("tea")).durable
    assert stores.portal().status().health == "ok"  # again, over what is there
    assert [one.content for one in stores.admin().candidates()] == ["tea"]


def test_legacy_without_the_table(stores: Stores) -> None:
    """As in production: writes and admin queries fail, recall goes on in shadow, and nothing is injected."""
    stores.portal(Letters(), replace(ALL_MODES, candidates=False)).write("ann", "s", notes("aaa"))
    events: list[RecallEvent] = []
    legacy = stores.portal(Letters(), tell=events.append, switches=Switches(schema_not_ensured=True))
    assert legacy.status().health == "degraded"
    with pytest.raises(StoreError) as caught:
        legacy.save_candidates("ann", "s", notes("tea"))
    assert caught.value.fault == "missing"
    with pytest.raises(StoreError):
        stores.admin(switches=Switches(schema_not_ensured=True)).candidates()
    turn = legacy.prepare("ann", "s2", "aaa")
    assert (turn.mode, turn.recalled, turn.injected, turn.prompt) == ("shadow", ("aaa",), (), "aaa")
    [event] = events
    assert (event.mode, event.recalled, event.injected, event.status) == ("shadow", ("aaa",), (), "degraded")


def test_refused_ddl_keeps_the_chat_and_warns(stores: Stores) -> None:
    portal, fault = refuse_ddl(stores, "candidates")
    with fault:
        status = portal.start()
    assert status.health == "bounded"
    assert len(status.warnings) == 1
    assert "making the schema failed: it does not allow this" in status.warnings[0]
    assert status.warnings[0].endswith("; candidates are kept in this process only")
    receipt = portal.save_candidates("ann", "s", notes("tea"))
    assert (receipt.durable, receipt.remarks) == (False, ("kept in this process only, until it ends",))
    portal.write("ann", "s", notes("coffee"))  # memories have their table
    assert portal.prepare("ann", "s", "coffee").injected == ("coffee",)
    assert portal.start().health == "ok"  # the rights were granted


def test_refused_ddl_stops_the_admin_side(stores: Stores) -> None:
    database, vectors = stores.open()
    code = "42501" if stores.postgres else "SQLITE_AUTH"
    fault = Fault(database, lambda _, text: "CREATE TABLE" in text and "candidates" in text, code)
    with fault, pytest.raises(StoreError, match="making the schema failed: it does not allow this"):
        Admin(database, vectors)
    Admin(database, vectors)


@pytest.mark.pg
def test_a_role_that_may_not_make_tables(request: pytest.FixtureRequest) -> None:
    """The real thing: a login without rights on the schema."""
    from postgres import schema

    running = request.getfixturevalue("postgres")
    with schema(running) as name:
        running.run("CREATE ROLE guest LOGIN", f"GRANT USAGE ON SCHEMA {name} TO guest")
        try:
            from recallstack.systems.memory.services import open_stores

            database, vectors = open_stores(running.address_of("guest"), schema=name)
            portal = Portal(database, vectors, "hash3", Settings(modes=ALL_MODES))
            status = portal.start()
            assert status.health == "bounded"
            assert all("does not allow this" in one for one in status.warnings)
            turn = portal.prepare("ann", "s", "hello")
            assert turn.prompt == "hello"
            assert "a table is missing" in turn.remarks[0]
            with pytest.raises(StoreError, match="does not allow this"):
                Admin(database, vectors)
            portal.close()
        finally:
            running.run("DROP OWNED BY guest", "DROP ROLE guest")


def test_a_database_that_is_not_there_keeps_the_chat(tmp_path: Path) -> None:
    stores = Stores(f"sqlite:///{tmp_path / 'none' / 'm.db'}", None, None)  # type: ignore[arg-type]
    from recallstack.systems.memory.services import open_stores

    database, vectors = open_stores(stores.url)
    portal = Portal(database, vectors, "hash3", Settings(modes=ALL_MODES))
    status = portal.start()
    assert (status.health, status.debt) == ("bounded", None)
    turn = portal.prepare("ann", "s", "hello")
    assert (turn.prompt, turn.run) == ("hello", None)
    assert len(turn.remarks) == 2
    assert turn.remarks[0].endswith("; answered without memories")
    assert turn.remarks[1].endswith("; the message is not recorded")
    assert portal.finish(turn, "hi") == ""
    with pytest.raises(StoreError) as caught:
        portal.write("ann", "s", notes("tea"))
    assert caught.value.fault == "gone"
    (tmp_path / "none").mkdir()
    assert portal.start().health == "ok"
    assert portal.write("ann", "s", notes("tea")).debt == 0
    portal.close()


def test_a_table_that_goes_missing_later_is_said(stores: Stores) -> None:
    portal = stores.portal(Letters())
    portal.write("ann", "s", notes("aaa"))
    with portal._database.write("test") as connection:
        connection.exec_driver_sql(f"DROP TABLE {CANDIDATES.name}")
    with pytest.raises(StoreError, match=r"a table is missing or of another version; make the schema"):
        portal.save_candidates("ann", "s", notes("tea"))
    assert portal.status().health == "degraded"
    assert portal.prepare("ann", "s", "aaa").mode == "shadow"
    portal.start()
    assert portal.save_candidates("ann", "s", notes("tea")).durable
    assert portal.prepare("ann", "s", "aaa").injected == ("aaa",)


def test_a_store_that_answers_again_is_no_longer_degraded(stores: Stores) -> None:
    """Another process makes the table; the first answer shows it, without a new start."""
    portal = stores.portal(Letters())
    portal.write("ann", "s", notes("aaa"))
    with portal._database.write("test") as connection:
        connection.exec_driver_sql(f"DROP TABLE {CANDIDATES.name}")
    with pytest.raises(StoreError):
        portal.candidates("ann")
    assert portal.health == "degraded"
    stores.portal(Letters())
    assert portal.candidates("ann") == ()
    assert portal.health == "ok"
    assert portal.prepare("ann", "s", "aaa").injected == ("aaa",)


# Injection.


@pytest.mark.parametrize(
    ("modes", "user", "mode", "injected"),
    [
        (Modes(injection="off"), "ann", "off", False),
        (Modes(injection="shadow"), "ann", "shadow", False),
        (ALL_MODES, "ann", "canary", True),
        (ALL_MODES, "eve", "shadow", False),
    ],
)
def test_modes_of_injection(stores: Stores, modes: Modes, user: str, mode: str, injected: bool) -> None:
    events: list[RecallEvent] = []
    portal = stores.portal(Letters(), modes, tell=events.append)
    portal.write(user, "s", notes("aaa"))
    turn = portal.prepare(user, "s2", "tell me of a")
    assert turn.mode == mode
    assert turn.injected == (("aaa",) if injected else ())
    assert ("aaa" in turn.prompt) == injected
    assert turn.prompt.endswith("tell me of a")
    assert [event.recalled for event in events] == ([] if mode == "off" else [("aaa",)])


def test_what_is_injected_stays_within_its_bounds(stores: Stores) -> None:
    portal = stores.portal(Letters(), inject=2, block=BlockConfig(max_chars=60))
    portal.write("ann", "s", [NewMemory(content=f"a {'x' * n}{{{{", id=f"m{n}") for n in (30, 31, 32)])
    turn = portal.prepare("ann", "s2", "a")
    assert len(turn.recalled) == 2
    assert turn.injected == ("m30",)
    block = turn.prompt.removesuffix("\n[/Memory Context]\n\na").removeprefix("[Memory Context]\n")
    assert len(block) == 60
    assert "{" not in turn.prompt


def test_an_empty_message_recalls_nothing(stores: Stores) -> None:
    portal = stores.portal(Letters())
    portal.write("ann", "s", notes("aaa"))
    assert portal.prepare("ann", "s", "  ").recalled == ()


# The closed loop.


def test_the_closed_loop_opens_the_way_to_active(stores: Stores) -> None:
    portal, admin = stores.portal(), stores.admin()
    active = replace(ALL_MODES, lifecycle="active", injection="active")
    with pytest.raises(InputError) as caught:
        portal.switch(active)
    assert str(caught.value) == (
        "lifecycle and injection cannot be switched to active: the closed loop has not passed; "
        "run `closed_loop` for a test user in canary first"
    )
    assert portal.modes == ALL_MODES
    for alone in ("lifecycle", "injection"):
        with pytest.raises(InputError, match=f"^{alone} cannot be switched to active"):
            portal.switch(replace(ALL_MODES, **{alone: "active"}))
    assert portal.modes == ALL_MODES
    seen: list[str] = []

    def agent(prompt: str) -> str:
        seen.append(prompt)
        return f"I read: {prompt}"

    report = closed_loop(portal, admin, "ann", agent)
    assert report.ok
    assert report.passed == STAGES
    assert seen[0].startswith("[Memory Context]")
    assert portal.switch(active).modes == active
    assert stores.portal(modes=active).modes == active  # another process knows it
    portal.write("eve", "s", notes("tea"))
    assert portal.prepare("eve", "s2", "tea").injected == ("tea",)


def test_a_start_in_active_is_lowered_until_the_loop_has_passed(stores: Stores) -> None:
    portal = stores.portal(modes=Modes(lifecycle="active", injection="active", candidates=True))
    status = portal.status()
    assert (status.modes.lifecycle, status.modes.injection) == ("canary", "canary")
    assert status.warnings == ("lifecycle and injection lowered to canary: the closed loop has not passed",)


@pytest.mark.parametrize(
    ("modes", "embedder", "stage", "why"),
    [
        (replace(ALL_MODES, candidates=False), "hash3", "saved", "kept in the process only"),
        (replace(ALL_MODES, injection="shadow"), "hash3", "injected", "injection is shadow for this user"),
        (replace(ALL_MODES, injection="off"), "hash3", "recalled", "a new session does not recall it"),
    ],
)
def test_the_loop_says_where_it_broke(stores: Stores, modes: Modes, embedder: str, stage: str, why: str) -> None:
    portal, admin = stores.portal(embedder, modes), stores.admin(embedder)
    report = closed_loop(portal, admin, "ann")
    assert (report.ok, report.failed) == (False, stage)
    assert why in report.why
    assert report.passed == STAGES[: STAGES.index(stage)]
    with pytest.raises(InputError):
        portal.switch(replace(modes, injection="active"))


def test_an_agent_that_does_not_use_it_fails_the_loop(stores: Stores) -> None:
    report = closed_loop(stores.portal(), stores.admin(), "ann", lambda prompt: "I do not know")
    assert (report.failed, report.why) == ("answered", "the agent's reply does not use it")


def test_a_database_that_fails_within_the_loop_is_its_finding(stores: Stores) -> None:
    portal, admin = stores.portal(), stores.admin()
    code = "08006" if stores.postgres else "SQLITE_IOERR"
    with Fault(portal._database, lambda _, text: "INSERT" in text, code):
        report = closed_loop(portal, admin, "ann")
    assert report.failed == "saved"
    assert "saving candidates failed: it cannot be reached" in report.why


def test_the_loop_can_be_run_again(stores: Stores) -> None:
    portal, admin = stores.portal(), stores.admin()
    for _ in range(7):  # more than are injected at once
        assert closed_loop(portal, admin, "ann").ok
    assert len(table(portal._database, MEMORIES)) == 7


# Rollback.


def test_a_rollback_switches_back_and_keeps_the_data(stores: Stores) -> None:
    portal, admin = stores.portal(), stores.admin()
    assert closed_loop(portal, admin, "ann").ok
    portal.switch(Modes(candidates=True, lifecycle="active", forget=True, expire=True, worker=True, injection="active"))
    portal.save_candidates("ann", "s", notes("tea"))
    status = portal.rollback()
    assert status.modes == Modes()
    assert status.health == "bounded"
    assert portal.lifecycle.forget("ann", ["x"]).refused == "forget is switched off"
    assert portal.prepare("ann", "s", "tea").mode == "shadow"
    assert {one.content for one in admin.candidates("ann")} == {"tea"}
    database, _ = stores.open()
    with database.read("test") as connection:
        assert sa.inspect(connection).has_table(CANDIDATES.name)
    again = stores.portal(modes=ALL_MODES)
    assert [one.content for one in again.candidates("ann")] == ["tea"]


def test_a_rollback_needs_no_database(stores: Stores) -> None:
    portal = stores.portal(modes=replace(ALL_MODES, lifecycle="canary", worker=True))
    code = "08006" if stores.postgres else "SQLITE_IOERR"
    with Fault(portal._database, lambda *_: True, code):
        status = portal.rollback()
    assert status.modes.rolled_back == status.modes
    assert status.debt is None
