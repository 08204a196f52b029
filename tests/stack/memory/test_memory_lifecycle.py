"""Rollout: forget, expire and the worker write only where switch and rollout both allow it; others never ask."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_support import BOTH, START, Clock, Fault, Letters, Stores, check_invariants, notes, stores_of, table
from virtual import play

from recallstack.errors import InputError
from recallstack.systems.memory.errors import StoreError
from recallstack.systems.memory.lifecycle import Outcome
from recallstack.systems.memory.modes import Modes, lifecycle_refusal
from recallstack.systems.memory.portal import Portal
from recallstack.systems.memory.schema import MEMORIES
from recallstack.systems.memory.state import record_loop
from recallstack.systems.memory.switches import Switches
from recallstack.systems.session.clock import VirtualClock

HOUR = 3_600_000
FAR = START + 10**9
"""A time when everything that can expire has expired."""


@pytest.fixture(params=BOTH)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with stores_of(request.param, tmp_path, request) as one:
        yield one


def hidden(stores: Stores) -> set[tuple[str, str]]:
    found = table(stores.open()[0], MEMORIES)
    return {(row.user_id, row.id) for row in found if row.archived or row.forgotten}


def filled(stores: Stores, modes: Modes, **more: object) -> Portal:
    """Ann and Bob have each one memory whose time is over and one that stays."""
    portal = stores.portal(Letters(), Modes(), now=Clock(FAR), **more)
    for user in ("ann", "bob"):
        portal.write(user, "s", notes("over", expires_at=START))
        portal.write(user, "s", notes("stays"))
    record_loop(portal._database, "ann", START)
    portal.switch(modes)
    return portal


# The rules, as a property.

MODES = st.builds(
    Modes,
    lifecycle=st.sampled_from(["off", "canary", "active"]),
    lifecycle_users=st.frozensets(st.sampled_from(["ann", "bob"])),
    forget=st.booleans(),
    expire=st.booleans(),
    worker=st.booleans(),
    candidates=st.booleans(),
)
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("expire"), st.sampled_from([None, "ann", "bob"])),
        st.tuples(st.just("forget"), st.sampled_from(["ann", "bob"])),
        st.tuples(st.just("sweep"), st.none()),
        st.tuples(st.just("switch"), MODES),
    ),
    max_size=6,
)


def allowed(modes: Modes, switch: bool, user: str | None) -> bool:
    """The documented rule, said in another way than in the code: what must all be true."""
    scope = {
        "off": set(),
        "canary": set(modes.lifecycle_users),
        "active": {"ann", "bob", None},
    }[modes.lifecycle]
    return switch and user in scope


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(modes=MODES, calls=CALLS)
def test_what_is_hidden_is_exactly_what_is_allowed(
    modes: Modes,
    calls: list[tuple[str, object]],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> None:
    with stores_of("sqlite", tmp_path_factory.mktemp("rollout"), request) as stores:
        portal = filled(stores, modes)
        expected: set[tuple[str, str]] = set()
        for call, argument in calls:
            if call == "switch":
                assert isinstance(argument, Modes)
                modes = argument
                portal.switch(modes)
            elif call == "forget":
                user = str(argument)
                got = portal.lifecycle.forget(user, ["stays"])
                assert bool(got.refused) != allowed(modes, modes.forget, user)
                if not got.refused:
                    expected.add((user, "stays"))
            elif call == "expire":
                got = portal.lifecycle.expire(argument)  # type: ignore[arg-type]
                assert bool(got.refused) != allowed(modes, modes.expire, argument)  # type: ignore[arg-type]
                if not got.refused:
                    expected |= {(user, "over") for user in ("ann", "bob") if argument in (None, user)}
            else:
                portal.lifecycle.sweep()
                expected |= {(user, "over") for user in ("ann", "bob") if allowed(modes, modes.expire, user)}
            assert hidden(stores) == expected
        # writing, compacting and promoting never ask the rollout
        assert portal.write("ann", "w", notes("x", "y")).debt == 0
        assert portal.compact("ann", "w").ids
        [candidate] = portal.save_candidates("bob", "w", notes("z")).ids
        assert portal.promote(candidate, "admin").debt == 0
        database, vectors = stores.open()
        check_invariants_without_candidates(database, vectors)


def check_invariants_without_candidates(database: object, vectors: object) -> None:
    from recallstack.systems.memory.schema import ensure_candidate_schema

    ensure_candidate_schema(database)  # type: ignore[arg-type]
    check_invariants(database, vectors, "letters")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("modes", "user", "why"),
    [
        (Modes(), "ann", "forget is switched off"),
        (Modes(forget=True), "ann", "the lifecycle rollout is off"),
        (Modes(forget=True, lifecycle="canary"), "ann", "canary, and this user is not listed"),
        (
            Modes(forget=True, lifecycle="canary", lifecycle_users=frozenset({"ann"})),
            None,
            "canary: a call needs a user",
        ),
        (Modes(forget=True, lifecycle="canary", lifecycle_users=frozenset({"ann"})), "ann", ""),
        (Modes(forget=True, lifecycle="active"), None, ""),
    ],
)
def test_a_refusal_says_why(modes: Modes, user: str | None, why: str) -> None:
    said = lifecycle_refusal(modes, "forget", user)
    assert why in said
    assert bool(said) == bool(why)


@pytest.mark.parametrize("values", [{"lifecycle": "on"}, {"injection": "maybe"}])
def test_a_mode_that_is_none_is_named(values: dict[str, str]) -> None:
    with pytest.raises(InputError, match="use one of off,"):
        Modes(**values)  # type: ignore[arg-type]


# On both databases.

CANARY = Modes(forget=True, expire=True, lifecycle="canary", lifecycle_users=frozenset({"ann"}))
ACTIVE = Modes(forget=True, expire=True, lifecycle="active")


def test_forget_hides_the_row_and_removes_its_vector(stores: Stores) -> None:
    portal = filled(stores, CANARY)
    assert portal.lifecycle.forget("ann", ["stays", "stays"]) == Outcome((("ann", "stays"),))
    assert portal.lifecycle.forget("ann", ["stays"]) == Outcome()
    assert portal.recall("ann", "stays", 5).ids == ("over",)
    assert stores.open()[1].owners() == (("ann", "over"), ("bob", "over"), ("bob", "stays"))


def test_forget_is_all_or_nothing(stores: Stores) -> None:
    portal = filled(stores, CANARY)
    with pytest.raises(InputError, match="memory 'none' is not one of this user's; nothing was forgotten"):
        portal.lifecycle.forget("ann", ["stays", "none"])
    assert hidden(stores) == set()


@pytest.mark.parametrize("call", ["forget", "expire"])
def test_both_need_a_user_that_is_one(stores: Stores, call: str) -> None:
    portal = filled(stores, ACTIVE)
    with pytest.raises(InputError, match="user '' is empty"):
        portal.lifecycle.forget("", ["stays"]) if call == "forget" else portal.lifecycle.expire("")


def test_expire_hides_at_exactly_its_time(stores: Stores) -> None:
    times = iter([START, START, START + 98, START + 99, START + 100, START + 101])
    portal = stores.portal(Letters(), Modes(), now=lambda: next(times))
    portal.write("ann", "s", notes("x", expires_at=START + 100))
    record_loop(portal._database, "ann", START)
    portal.switch(ACTIVE)
    next(times)  # START
    assert portal.lifecycle.expire().changed == ()  # at 98
    assert portal.lifecycle.expire().changed == ()
    assert portal.lifecycle.expire().changed == (("ann", "x"),)
    assert portal.lifecycle.expire().changed == ()


def test_expire_in_active_is_for_all(stores: Stores) -> None:
    portal = filled(stores, ACTIVE)
    assert portal.lifecycle.expire().changed == (("ann", "over"), ("bob", "over"))
    assert stores.open()[1].owners() == (("ann", "stays"), ("bob", "stays"))


def test_legacy_expires_for_all_with_the_rollout_off(stores: Stores) -> None:
    """The documented accident: worker switch on, rollout off, and everyone's memories are archived."""
    legacy = filled(stores, Modes(expire=True, worker=True), switches=Switches(worker_switch_only=True))
    assert len(legacy.lifecycle.expire().changed) == 2
    assert len(legacy.lifecycle.forget("bob", ["stays"]).changed) == 1  # its own switch is not looked at


def test_a_vector_table_that_is_gone_leaves_a_debt_and_the_row_hidden(stores: Stores) -> None:
    portal = filled(stores, CANARY)
    code = "08006" if stores.postgres else "SQLITE_IOERR"
    with Fault(portal._services.vectors.database, lambda *_: True, code):  # type: ignore[attr-defined]
        assert portal.lifecycle.forget("ann", ["stays"]).debt == 1
    assert portal.recall("ann", "stays", 5).ids == ("over",)
    assert portal.repay().debt == 0
    assert ("ann", "stays") not in stores.open()[1].owners()


def test_a_database_that_fails_has_forgotten_nothing(stores: Stores) -> None:
    portal = filled(stores, CANARY)
    code = "53100" if stores.postgres else "SQLITE_FULL"
    with Fault(portal._database, lambda _, statement: statement == "COMMIT", code), pytest.raises(StoreError) as caught:
        portal.lifecycle.forget("ann", ["stays"])
    assert caught.value.fault == "full"
    assert hidden(stores) == set()


# The worker.


def worked(
    modes: Modes, hours: float, tmp_path: Path, request: pytest.FixtureRequest, **more: object
) -> tuple[set[tuple[str, str]], int]:
    """What is hidden after so many hours, and how many sweeps there were."""
    out: list[tuple[set[tuple[str, str]], int]] = []

    async def scenario(clock: VirtualClock) -> None:
        with stores_of("sqlite", tmp_path, request) as stores:
            filled(stores, Modes()).close()
            portal = stores.portal(Letters(), modes, clock, now=Clock(FAR), **more)
            assert portal.worker is not None
            assert clock.pending_timers == int(portal.status().worker)
            await clock.advance(hours * HOUR)
            out.append((hidden(stores), portal.worker.sweeps))
            portal.close()

    play(scenario)
    return out[0]


LISTED = frozenset({"ann"})


@pytest.mark.parametrize(
    ("modes", "hours", "users", "sweeps"),
    [
        (Modes(worker=True, expire=True), 9, set(), 0),
        (Modes(worker=False, expire=True, lifecycle="active"), 9, set(), 0),
        (Modes(worker=True, expire=True, lifecycle="active"), 0.9, set(), 0),
        (Modes(worker=True, expire=True, lifecycle="active"), 1, {"ann", "bob"}, 1),
        (Modes(worker=True, expire=True, lifecycle="canary", lifecycle_users=LISTED), 3.5, {"ann"}, 3),
        (Modes(worker=True, expire=True, lifecycle="canary"), 1, set(), 1),
        (Modes(worker=True, expire=False, lifecycle="active"), 1, set(), 1),
    ],
)
def test_the_worker_sweeps_as_the_rollout_says(
    modes: Modes, hours: float, users: set[str], sweeps: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert worked(modes, hours, tmp_path, request) == ({(user, "over") for user in users}, sweeps)


def test_legacy_worker_with_the_rollout_off(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    legacy = Switches(worker_switch_only=True)
    found = worked(Modes(worker=True, expire=True), 1, tmp_path, request, switches=legacy)
    assert found == ({("ann", "over"), ("bob", "over")}, 1)


def test_a_switch_of_modes_starts_and_stops_the_timer(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    async def scenario(clock: VirtualClock) -> None:
        with stores_of("sqlite", tmp_path, request) as stores:
            filled(stores, Modes()).close()
            portal = stores.portal(Letters(), Modes(), clock, now=Clock(FAR))
            assert clock.pending_timers == 0
            portal.switch(Modes(worker=True, expire=True, lifecycle="canary", lifecycle_users=LISTED))
            assert clock.pending_timers == 1
            await clock.advance(HOUR - 1)
            portal.switch(Modes(worker=True, expire=True, lifecycle="off"))
            assert clock.pending_timers == 0
            await clock.advance(HOUR)
            assert hidden(stores) == set()
            portal.switch(Modes(worker=True, expire=True, lifecycle="active"))
            assert portal.rollback().worker is False
            assert clock.pending_timers == 0
            portal.close()

    play(scenario)


def test_a_sweep_that_fails_is_told_and_the_next_one_tries_again(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async def scenario(clock: VirtualClock) -> None:
        with stores_of("sqlite", tmp_path, request) as stores:
            filled(stores, Modes()).close()
            modes = Modes(worker=True, expire=True, lifecycle="canary", lifecycle_users=LISTED)
            portal = stores.portal(Letters(), modes, clock, now=Clock(FAR))
            assert portal.worker is not None
            with Fault(portal._database, lambda *_: True, "SQLITE_IOERR"):
                await clock.advance(HOUR)
            assert "expiring memories failed: it cannot be reached" in portal.worker.remark
            await clock.advance(HOUR)
            assert portal.worker.remark == ""
            assert hidden(stores) == {("ann", "over")}
            portal.close()

    play(scenario)


def test_on_the_real_clock_a_timer_is_set_and_cleared(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    from recallstack.systems.session.clock import RealClock

    async def main() -> None:
        clock = RealClock()
        with stores_of("sqlite", tmp_path, request) as stores:
            modes = Modes(worker=True, lifecycle="canary")
            portal = stores.portal(Letters(), modes, clock)
            assert clock.pending_timers == 1
            portal.close()
            assert clock.pending_timers == 0

    asyncio.run(main())
