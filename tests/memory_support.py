"""What the tests of the memory system share: stores of both kinds, an embedder by table, faults, invariants."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from numpy.typing import NDArray
from postgres import schema

from recallstack.systems.memory.admin import Admin
from recallstack.systems.memory.database import Database
from recallstack.systems.memory.model import NewMemory
from recallstack.systems.memory.modes import Modes
from recallstack.systems.memory.portal import Portal
from recallstack.systems.memory.schema import CANDIDATES, DEBTS, MEMORIES
from recallstack.systems.memory.services import Settings, open_stores
from recallstack.systems.memory.vectors import VectorTable

START = 1_700_000_000_000
ALL_MODES = Modes(candidates=True, injection="canary", injection_users=frozenset({"ann", "bob"}))


class Clock:
    """Milliseconds that count up by one with each look."""

    def __init__(self, start: int = START) -> None:
        self.now = start

    def __call__(self) -> int:
        self.now += 1
        return self.now


class Letters:
    """An embedder by table; a text that is not in it counts its letters a, b, c. Keeps what it was asked."""

    def __init__(self, table: Mapping[str, Sequence[float]] | None = None, name: str = "letters") -> None:
        self.name = name
        self.table = dict(table or {})
        self.documents: list[str] = []
        self.fails = False

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float64]:
        if self.fails:
            raise ConnectionError("with the texts " + " ".join(texts))
        self.documents += texts
        return np.array([self._of(text.strip()) for text in texts], np.float64)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float64]:
        if self.fails:
            raise ConnectionError("with the texts " + " ".join(texts))
        return np.array([self._of(text.strip()) for text in texts], np.float64)

    def _of(self, text: str) -> Sequence[float]:
        return self.table.get(text) or [float(text.count(letter)) for letter in "abc"]


@dataclass
class Stores:
    """Where a test's data is: each `open` is a new process over the same rows."""

    url: str
    schema: str | None
    stack: ExitStack

    @property
    def postgres(self) -> bool:
        return self.schema is not None

    def open(self, busy_s: float = 5.0) -> tuple[Database, VectorTable]:
        database, vectors = open_stores(self.url, busy_s=busy_s, schema=self.schema)
        self.stack.callback(database.close)
        self.stack.callback(vectors.close)
        return database, vectors

    def portal(self, embedder: Any = "hash3", modes: Modes = ALL_MODES, clock: Any = None, **more: Any) -> Portal:
        """A started portal."""
        database, vectors = self.open()
        one = Portal(database, vectors, embedder, Settings(modes=modes, **{"now": Clock(), **more}), clock)
        one.start()
        return one

    def admin(self, embedder: Any = "hash3", **more: Any) -> Admin:
        database, vectors = self.open()
        return Admin(database, vectors, embedder, Settings(**{"now": Clock(), **more}))


@contextmanager
def stores_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[Stores]:
    """kind: sqlite or postgres."""
    with ExitStack() as stack:
        if kind == "sqlite":
            yield Stores(f"sqlite:///{folder / 'memory.db'}", None, stack)
        else:
            running = request.getfixturevalue("postgres")
            name = stack.enter_context(schema(running))
            yield Stores(running.address, name, stack)


BOTH = ["sqlite", pytest.param("postgres", marks=pytest.mark.pg)]
"""Parameters of a fixture `stores`."""


def notes(*texts: str, **more: Any) -> list[NewMemory]:
    """Memories of these texts, whose ids are the texts."""
    return [NewMemory(content=text, id=text, **more) for text in texts]


def table(database: Database, of: sa.Table) -> list[Any]:
    """All rows of a table, in the order of their keys."""
    with database.read("test") as connection:
        return list(connection.execute(sa.select(of).order_by(*of.primary_key)))


def check_invariants(database: Database, vectors: VectorTable, embedder: str, user: str | None = None) -> None:
    """What holds at any time, whatever was killed. user: look at this one alone."""
    rows = {(row.user_id, row.id): row for row in table(database, MEMORIES) if user in (None, row.user_id)}
    debts = {(row.user_id, row.id) for row in table(database, DEBTS) if user in (None, row.user_id)}
    owners = {one for one in vectors.owners() if user in (None, one[0])}
    assert debts <= rows.keys()
    for (owner, one), row in rows.items():
        active = not (row.archived or row.forgotten)
        current = vectors.revisions(owner, [one], embedder).get(one) == row.revision
        if (owner, one) not in debts:
            assert current if active else (owner, one) not in owners
    assert owners <= rows.keys()
    for candidate in table(database, CANDIDATES):
        if candidate.status == "promoted" and user in (None, candidate.user_id):
            assert (candidate.user_id, candidate.memory_id) in rows
    if not database.postgres:
        with database.read("test") as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall() == []


class Fault:
    """Makes a database fail at chosen statements: those for which `at(number, statement)` holds, counted from 1.

    The error is the driver's own, with its code, so that it takes the way of a real one. `commit` counts as a
    statement; it fails before or after the server has done it.
    """

    def __init__(self, database: Database, at: Callable[[int, str], bool], code: str, after: bool = False) -> None:
        self._engine = database.engine
        self._at = at
        self._code = code
        self._after = after
        self._numbers = itertools.count(1)
        self.hit = 0

    def _error(self) -> Exception:
        if self._engine.dialect.name == "sqlite":
            error = sqlite3.OperationalError("made by a test")
            error.sqlite_errorcode = getattr(sqlite3, self._code)
            return error
        import psycopg

        return psycopg.errors.lookup(self._code)("made by a test")

    def _execute(self, cursor: Any, statement: str, parameters: Any, context: Any) -> None:
        if self._at(next(self._numbers), statement):
            self.hit += 1
            raise self._error()

    def _many(self, cursor: Any, statement: str, parameters: Any, context: Any) -> None:
        self._execute(cursor, statement, parameters, context)

    def __enter__(self) -> Fault:
        dialect = self._engine.dialect
        sa.event.listen(self._engine, "do_execute", self._execute)
        sa.event.listen(self._engine, "do_executemany", self._many)
        self._commit = dialect.do_commit

        def commit(connection: Any) -> None:
            fails = self._at(next(self._numbers), "COMMIT")
            if fails and not self._after:
                self.hit += 1
                raise self._error()
            self._commit(connection)
            if fails:
                self.hit += 1
                raise self._error()

        dialect.do_commit = commit  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        sa.event.remove(self._engine, "do_execute", self._execute)
        sa.event.remove(self._engine, "do_executemany", self._many)
        self._engine.dialect.do_commit = self._commit  # type: ignore[method-assign]
