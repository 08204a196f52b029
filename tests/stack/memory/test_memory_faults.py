"""Faults: what is acknowledged is never lost, what failed says so, nothing is half-written; trying again is safe."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from memory_support import BOTH, START, Clock, Fault, Letters, Stores, check_invariants, notes, stores_of, table
from postgres import Server, server

from recallstack.errors import InputError
from recallstack.systems.memory.database import Database
from recallstack.systems.memory.errors import StoreError
from recallstack.systems.memory.model import NewMemory
from recallstack.systems.memory.modes import Modes
from recallstack.systems.memory.portal import Portal
from recallstack.systems.memory.schema import CANDIDATES, DEBTS, MEMORIES, ensure_schema
from recallstack.systems.memory.services import Settings, open_stores
from recallstack.systems.memory.state import record_loop

MODES = Modes(candidates=True, forget=True, expire=True, lifecycle="canary", lifecycle_users=frozenset({"ann"}))
ACTIVE = replace(MODES, lifecycle="active")


@pytest.fixture(params=BOTH)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with stores_of(request.param, tmp_path, request) as one:
        yield one


@dataclass
class Bench:
    """Stores that many trials share: each has a user of its own."""

    stores: Stores
    portal: Portal
    number: int = 0

    def user(self) -> tuple[str, str]:
        """A user with two memories of a session, one whose time is over, and a candidate: (user, candidate)."""
        self.number += 1
        user = f"user{self.number}"
        self.portal.write(user, "s", notes("aab", "abb"))
        self.portal.write(user, "old", notes("over", expires_at=START))
        return user, self.portal.save_candidates(user, "s", [NewMemory(content="acc")]).ids[0]

    def state(self, user: str) -> list[list[tuple[Any, ...]]]:
        """What the relational store says of a user, without numbers, times, and the user."""
        database = self.portal._database
        rows = [
            (row.title, row.content, row.session_id, row.type, row.archived, row.forgotten)
            for row in table(database, MEMORIES)
            if row.user_id == user
        ]
        marks = [
            (row.content, row.status, row.memory_id is None)
            for row in table(database, CANDIDATES)
            if row.user_id == user
        ]
        return [sorted(rows), marks]

    def debts(self, user: str) -> int:
        return sum(row.user_id == user for row in table(self.portal._database, DEBTS))

    def check(self, user: str) -> None:
        check_invariants(self.portal._database, self.portal._services.vectors, "letters", user)


WORK: dict[str, Callable[[Portal, str, str], Any]] = {
    "write": lambda portal, user, _: portal.write(
        user, "s", [*notes("aaa", "ccc"), NewMemory(content="new", id="aab")]
    ),
    "compact": lambda portal, user, _: portal.compact(user, "s"),
    "candidate": lambda portal, user, _: portal.save_candidates(user, "s", notes("x", "y")),
    "promote": lambda portal, _, candidate: portal.promote(candidate, "somebody"),
    "reject": lambda portal, _, candidate: portal.reject(candidate),
    "forget": lambda portal, user, _: portal.lifecycle.forget(user, ["aab", "abb"]),
    "expire": lambda portal, user, _: portal.lifecycle.expire(user),
}
SYNCED = [name for name in WORK if name not in ("candidate", "reject")]
"""What brings vectors after it is acknowledged."""


@pytest.fixture(params=BOTH, scope="module")
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with stores_of(request.param, tmp_path_factory.mktemp("bench"), request) as stores:
        portal = stores.portal(Letters(), MODES, now=Clock(START + 1000))
        record_loop(portal._database, "test", START)
        portal.switch(ACTIVE)
        yield Bench(stores, portal)


def undisturbed(bench: Bench, name: str) -> tuple[Any, Any]:
    """State before and after a call that nothing disturbs."""
    user, candidate = bench.user()
    before = bench.state(user)
    WORK[name](bench.portal, user, candidate)
    after = bench.state(user)
    assert before != after
    return before, after


@pytest.mark.parametrize("after", [False, True], ids=["", "commit-done"])
@pytest.mark.parametrize("name", WORK)
def test_the_database_fails_at_every_statement(name: str, after: bool, bench: Bench) -> None:
    """At the n-th statement for every n: all or nothing; an acknowledgement means all; the next try ends well.

    commit-done: the commits themselves take place, and only the answer is lost.
    """
    before, final = undisturbed(bench, name)
    code = "57P01" if bench.stores.postgres else "SQLITE_IOERR"
    failed = acknowledged = 0
    for number in itertools.count(1):
        user, candidate = bench.user()
        said = None
        with Fault(bench.portal._database, lambda n, _, at=number: n == at, code, after) as fault:
            try:
                WORK[name](bench.portal, user, candidate)
            except StoreError as error:
                said = error.fault
        if not fault.hit:
            break
        acknowledged += said is None
        failed += said == "gone"
        now = bench.state(user)
        assert now in (before, final)
        if said is None:
            assert now == final
        elif not after:
            assert now == before
        bench.check(user)
        if name != "reject" or now == before:
            WORK[name](bench.portal, user, candidate)
        assert bench.state(user) == final
        bench.portal.repay()
        assert bench.debts(user) == 0
        bench.check(user)
    assert failed >= 2
    assert failed + acknowledged == number - 1
    if name in SYNCED:
        assert acknowledged >= 3


@pytest.mark.parametrize("name", SYNCED)
def test_the_vector_table_fails_at_every_statement(name: str, bench: Bench) -> None:
    """The memory is saved, the debt is recorded, and the next sync repays it."""
    _, final = undisturbed(bench, name)
    own: Database = bench.portal._services.vectors.database  # type: ignore[attr-defined]
    code = "57P01" if bench.stores.postgres else "SQLITE_IOERR"
    for number in itertools.count(1):
        user, candidate = bench.user()
        with Fault(own, lambda n, _, at=number: n == at, code) as fault:
            answer = WORK[name](bench.portal, user, candidate)
        if not fault.hit:
            break
        assert bench.state(user) == final
        bench.check(user)
        assert answer.debt == bench.debts(user) > 0
        bench.portal.write(user, "another", notes("ccc"))  # the next sync, of another session
        assert bench.debts(user) == 0
        bench.check(user)
    assert number > 3


def test_a_write_after_the_database_is_back(stores: Stores) -> None:
    """Gone before the write: each call says so, and the same portal goes on when it is back."""
    portal = stores.portal(Letters(), MODES)
    [candidate] = portal.save_candidates("ann", "s", notes("x")).ids
    code = "08001" if stores.postgres else "SQLITE_CANTOPEN"
    with Fault(portal._database, lambda *_: True, code):
        for call in WORK.values():
            with pytest.raises(StoreError, match="it cannot be reached; start it or mend its address, then try again"):
                call(portal, "ann", candidate)
    assert portal.write("ann", "s", notes("x")).debt == 0


@pytest.mark.parametrize(
    ("sqlite", "sqlstate", "fault", "hint"),
    [
        ("SQLITE_BUSY", "55P03", "locked", "another process holds a lock on it; try again"),
        ("SQLITE_LOCKED", "40P01", "locked", "another process holds a lock on it; try again"),
        ("SQLITE_FULL", "53100", "full", "its disk is full; make room, then try again"),
        ("SQLITE_READONLY", "25006", "refused", "it does not allow this"),
        ("SQLITE_PERM", "42501", "refused", "it does not allow this"),
        ("SQLITE_CORRUPT", "3D000", None, ""),
        ("SQLITE_IOERR", "58030", "gone", "it cannot be reached"),
        ("SQLITE_CANTOPEN", "53300", "gone", "it cannot be reached"),
    ],
)
def test_each_fault_has_its_name_and_its_hint(
    stores: Stores, sqlite: str, sqlstate: str, fault: str | None, hint: str
) -> None:
    portal = stores.portal(Letters())
    with (
        Fault(portal._database, lambda _, text: "INSERT" in text, sqlstate if stores.postgres else sqlite),
        pytest.raises(StoreError) as caught,
    ):
        portal.write("ann", "s", notes("x"))
    assert caught.value.fault == (fault or ("gone" if stores.postgres else "damaged"))
    assert hint in str(caught.value)
    assert "saving memories failed" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_a_programmers_mistake_is_not_dressed_up(stores: Stores) -> None:
    database, _ = stores.open()
    with pytest.raises(Exception, match="syntax") as caught, database.read("test") as connection:
        connection.exec_driver_sql("SELEC 1")
    assert not isinstance(caught.value, InputError)


# Real ones. SQLite:


def sqlite_portal(folder: Path, **more: Any) -> Portal:
    database, vectors = open_stores(f"sqlite:///{folder / 'm.db'}", busy_s=0.05)
    portal = Portal(database, vectors, Letters(), Settings(modes=MODES, now=Clock(), **more))
    portal.start()
    return portal


def test_a_full_disk(tmp_path: Path) -> None:
    """SQLite's own limit of pages stands in for the disk: the error is the real SQLITE_FULL."""
    portal = sqlite_portal(tmp_path)
    portal.write("ann", "s", notes("aaa"))
    with portal._database.read("test") as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    long = [NewMemory(content="x" * 9_000 + str(number)) for number in range(9)]
    with pytest.raises(StoreError) as caught:
        portal.write("ann", "s", long)
    assert caught.value.fault == "full"
    assert [row.id for row in table(portal._database, MEMORIES)] == ["aaa"]
    with portal._database.read("test") as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 100000")
    assert portal.write("ann", "s", long).debt == 0
    portal.close()


def test_a_full_disk_of_the_vectors(tmp_path: Path) -> None:
    portal = sqlite_portal(tmp_path)
    own: Database = portal._services.vectors.database  # type: ignore[attr-defined]
    with own.read("test") as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    names = [f"a{'b' * number}" for number in range(300)]
    receipt = portal.write("ann", "s", notes(*names))
    assert receipt.debt > 0
    assert "its disk is full" in receipt.remarks[0]
    assert len(portal.recall("ann", "zz", 100).ids) > 0
    with own.read("test") as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 100000")
    assert portal.repay().debt == 0
    portal.close()


@pytest.mark.parametrize("file", ["m.db", "m.db.vectors"])
def test_a_lock_held_by_another_process(tmp_path: Path, file: str) -> None:
    portal = sqlite_portal(tmp_path)
    portal.write("ann", "s", notes("aaa"))
    with closing(sqlite3.connect(tmp_path / file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        if file == "m.db":
            with pytest.raises(StoreError) as caught:
                portal.write("ann", "s", notes("bbb"))
            assert caught.value.fault == "locked"
            assert portal.recall("ann", "a", 5).ids == ("aaa",)  # who reads is not disturbed
        else:
            receipt = portal.write("ann", "s", notes("bbb"))
            assert receipt.debt == 1
            assert "another process holds a lock" in receipt.remarks[0]
        other.execute("ROLLBACK")
    assert portal.write("ann", "s", notes("bbb")).debt == 0
    portal.close()


@pytest.mark.parametrize("file", ["m.db", "m.db.vectors"])
def test_a_file_that_is_no_database(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_bytes(b"not a database at all, but long enough to be looked at" * 40)
    database, vectors = open_stores(f"sqlite:///{tmp_path / 'm.db'}")
    portal = Portal(database, vectors, Letters(), Settings(modes=MODES))
    status = portal.start()
    assert any("the file is damaged or no database" in one for one in status.warnings)
    if file == "m.db":
        with pytest.raises(StoreError) as caught:
            portal.write("ann", "s", notes("x"))
        assert caught.value.fault == "damaged"
    else:
        assert portal.write("ann", "s", notes("x")).debt == 1
    assert (tmp_path / file).read_bytes().startswith(b"not a database")
    portal.close()


def test_the_vectors_file_is_deleted_and_made_anew(tmp_path: Path) -> None:
    portal = sqlite_portal(tmp_path)
    portal.write("ann", "s", notes("aaa", "bbb"))
    portal.close()
    for one in tmp_path.glob("m.db.vectors*"):
        one.unlink()
    again = sqlite_portal(tmp_path)
    assert again.recall("ann", "b", 5).ids == ("aaa", "bbb")  # the newest rows
    assert again.reconcile().debt == 0
    assert again.recall("ann", "zz b", 5).ids == ("bbb", "aaa")
    again.close()


# Real ones. PostgreSQL:


@pytest.mark.pg
def test_a_full_disk_of_the_server(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A trigger raises the server's code for it, in the middle of a batch."""
    with stores_of("postgres", tmp_path, request) as stores:
        portal = stores.portal(Letters())
        portal.write("ann", "s", notes("aaa"))
        running = request.getfixturevalue("postgres")
        running.run(
            f"""CREATE FUNCTION {stores.schema}.no_room() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN IF NEW.content = 'ccc' THEN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END IF;
            RETURN NEW; END $$""",
            f"CREATE TRIGGER no_room BEFORE INSERT ON {stores.schema}.{MEMORIES.name} FOR EACH ROW "
            f"EXECUTE FUNCTION {stores.schema}.no_room()",
        )
        with pytest.raises(StoreError) as caught:
            portal.write("ann", "s", notes("bbb", "ccc", "abc"))
        assert caught.value.fault == "full"
        assert [row.id for row in table(portal._database, MEMORIES)] == ["aaa"]


@pytest.mark.pg
@pytest.mark.parametrize("of", [MEMORIES.name, "memory_v2_vectors"])
def test_a_lock_held_on_the_server(of: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    import psycopg

    with stores_of("postgres", tmp_path, request) as stores:
        stores.portal(Letters()).write("ann", "s", notes("aaa"))
        database, vectors = stores.open(busy_s=0.05)
        portal = Portal(database, vectors, Letters(), Settings(modes=MODES))
        portal._set_candidates()
        with psycopg.connect(stores.url) as other:
            other.execute(f"LOCK TABLE {stores.schema}.{of} IN ACCESS EXCLUSIVE MODE".encode())
            if of == MEMORIES.name:
                with pytest.raises(StoreError) as caught:
                    portal.write("ann", "s", notes("bbb"))
                assert caught.value.fault == "locked"
            else:
                receipt = portal.write("ann", "s", notes("bbb"))
                assert receipt.debt == 1
                assert "another process holds a lock" in receipt.remarks[0]
        assert portal.write("ann", "s", notes("bbb")).debt == 0


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server that a test may stop."""
    with server() as running:
        yield running


@pytest.mark.pg
def test_a_server_that_is_stopped_and_started(own_server: Server) -> None:
    """Before: said. After: everything acknowledged is there, and the same portal goes on by itself."""
    database, vectors = open_stores(own_server.address, busy_s=2)
    portal = Portal(database, vectors, Letters(), Settings(modes=MODES, now=Clock()))
    portal.start()
    portal.write("ann", "s", notes("aaa"))
    own_server.stop()
    try:
        with pytest.raises(StoreError, match="it cannot be reached"):
            portal.write("ann", "s", notes("bbb"))
        turn = portal.prepare("ann", "s", "hello")
        assert (turn.prompt, turn.run) == ("hello", None)
        assert portal.status().debt is None
    finally:
        own_server.start()
    assert portal.recall("ann", "a", 5).ids == ("aaa",)
    assert portal.write("ann", "s", notes("bbb")).debt == 0
    portal.close()


@pytest.mark.pg
@pytest.mark.parametrize("at", range(1, 8))
def test_a_server_that_ends_the_connection_in_the_middle(
    at: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """pg_terminate_backend before the n-th statement of a write: a real lost connection."""
    import psycopg
    import sqlalchemy as sa

    with stores_of("postgres", tmp_path, request) as stores:
        portal = stores.portal(Letters())
        portal.write("ann", "s", notes("aaa"))
        count = [0]

        def cut(_: Any, cursor: Any, *__: Any) -> None:
            count[0] += 1
            if count[0] == at:
                pid = cursor.connection.info.backend_pid
                with psycopg.connect(stores.url, autocommit=True) as other:
                    other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))

        sa.event.listen(portal._database.engine, "before_cursor_execute", cut)
        receipt, said = None, None
        try:
            receipt = portal.write("ann", "s", notes("bbb", "ccc"))
        except StoreError as error:
            said = error.fault
        sa.event.remove(portal._database.engine, "before_cursor_execute", cut)
        database, vectors = stores.open()
        assert count[0] >= at
        assert said == (None if receipt else "gone")
        assert {row.id for row in table(database, MEMORIES)} == ({"aaa", "bbb", "ccc"} if receipt else {"aaa"})
        check_invariants(database, vectors, "letters")
        assert portal.write("ann", "s", notes("bbb", "ccc")).debt == 0


@pytest.mark.pg
def test_a_server_that_cannot_be_reached_at_all() -> None:
    pytest.importorskip("psycopg")
    database, vectors = open_stores("postgresql://nobody@127.0.0.1:1/none", busy_s=1)
    with pytest.raises(StoreError) as caught:
        ensure_schema(database)
    assert caught.value.fault == "gone"
    assert str(caught.value).startswith("postgresql+psycopg://nobody@127.0.0.1:1/none: making the schema failed:")
    database.close()
    vectors.close()


def test_counting_the_debt_fails_too(tmp_path: Path) -> None:
    """Nothing answers after the acknowledged commit: the receipt counts what was just saved as its debt."""
    portal = sqlite_portal(tmp_path)
    commits = [0]

    def after_the_first_commit(_: int, statement: str) -> bool:
        commits[0] += statement == "COMMIT"
        return commits[0] > 0 and not (commits[0] == 1 and statement == "COMMIT")

    with Fault(portal._database, after_the_first_commit, "SQLITE_IOERR"):
        receipt = portal.write("ann", "s", notes("aaa", "bbb"))
    assert receipt.debt == 2
    assert "reading memories failed" in receipt.remarks[0]
    assert portal.repay().debt == 0
    portal.close()
