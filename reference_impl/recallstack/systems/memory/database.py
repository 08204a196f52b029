"""One database through SQLAlchemy Core: SQLite or PostgreSQL, whole transactions, typed errors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine, make_url

from recallstack.errors import InputError
from recallstack.systems.memory.errors import explained

BUSY_S = 10.0
"""Seconds that a call waits for a lock or a connection (a choice)."""
CHUNK = 500
"""Values in one statement: databases bound the number of parameters."""
_WRITES = "recallstack_writes"
"""Execution option: the transaction is going to write."""


class Database:
    """A relational database. For several threads on PostgreSQL and on a SQLite file; `:memory:` for one.

    url: `sqlite:///FILE`, `sqlite://` (in memory), or `postgresql://…` (extra `postgres`).
    SQLite: write-ahead log, `synchronous = FULL`, and `BEGIN IMMEDIATE` for what writes, so that what was answered
    is on the disk, and a reader that turns writer never fails for it.
    """

    def __init__(self, url: str, busy_s: float = BUSY_S, schema: str | None = None) -> None:
        """schema: PostgreSQL only: where the tables are, by default the server's search path."""
        self.url = _url(url)
        self.label = self.url.render_as_string(hide_password=True)
        self.engine = _engine(self.url, self.label, busy_s, schema)

    @property
    def postgres(self) -> bool:
        return self.engine.dialect.name == "postgresql"

    @contextmanager
    def write(self, what: str) -> Iterator[Connection]:
        """One write transaction: all of it or nothing. what: for the message, such as "saving memories"."""
        with explained(self.label, what), self.engine.connect() as connection:
            connection.execution_options(**{_WRITES: True})
            with connection.begin():
                yield connection

    @contextmanager
    def read(self, what: str) -> Iterator[Connection]:
        """One read transaction: everything in it sees the same state."""
        with explained(self.label, what), self.engine.connect() as connection:
            if self.postgres:
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    def lock(self, connection: Connection, name: str) -> None:
        """Wait for who else holds this name, until the end of the transaction. SQLite has one writer anyway."""
        if self.postgres:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(name, 0))))

    def insert(self, table: sa.Table) -> Any:
        """INSERT with `on_conflict_do_nothing` and `on_conflict_do_update`, which both databases have."""
        return postgresql.insert(table) if self.postgres else sqlite.insert(table)

    def upsert(self, table: sa.Table, key: Sequence[str], **changes: Any) -> Any:
        """INSERT … ON CONFLICT DO UPDATE: every column that is given takes the new value, but for `changes`."""
        statement = self.insert(table)
        new = {
            column.name: statement.excluded[column.name]
            for column in table.columns
            if column.name not in key and column.autoincrement is not True
        }
        return statement.on_conflict_do_update(index_elements=list(key), set_={**new, **changes})

    def close(self) -> None:
        self.engine.dispose()


def chunks(values: Iterable[str]) -> Iterator[Sequence[str]]:
    """The values in parts of at most CHUNK."""
    every = list(values)
    return (every[start : start + CHUNK] for start in range(0, len(every), CHUNK))


def _url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except sa.exc.ArgumentError:
        raise InputError(  # without the address: it may hold a password
            "the database address cannot be read; use sqlite:///FILE or postgresql://HOST/NAME"
        ) from None
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise InputError(f"{parsed.drivername!r} is not supported; use sqlite:///FILE or postgresql://HOST/NAME")
    return parsed


def _engine(url: URL, label: str, busy_s: float, schema: str | None) -> Engine:
    arguments: dict[str, Any] = {"hide_parameters": True}  # no memory text in an error
    if url.get_backend_name() == "sqlite":
        in_memory = not url.database or url.database == ":memory:"
        if in_memory:
            arguments["poolclass"] = sa.StaticPool
        else:
            _claim(Path(str(url.database)))
        engine = sa.create_engine(url, connect_args={"timeout": busy_s}, **arguments)
        sa.event.listen(engine, "connect", lambda connection, _: _prepare_sqlite(connection, busy_s))
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine
    options = [f"-c lock_timeout={int(busy_s * 1000)}"]
    if schema is not None:
        options.append(f"-c search_path={schema},public")
    connect = {"connect_timeout": max(2, int(busy_s)), "options": " ".join(options)}
    try:
        # A connection that died while it lay idle is found out before it is used.
        return sa.create_engine(url, connect_args=connect, pool_pre_ping=True, pool_timeout=busy_s, **arguments)
    except ImportError as error:
        raise InputError(f'{label}: {error}; install the driver with: pip install "recallbench[postgres]"') from None


def _claim(path: Path) -> None:
    """The file, made for its owner alone: it holds what users said. SQLite gives its side files the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError:
        return  # a file that cannot be opened is the first transaction's error, with its reason


def _prepare_sqlite(connection: sqlite3.Connection, busy_s: float) -> None:
    # Transactions are ours (`_begin_sqlite`), not the driver's.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    # SQLite does not wait for another process that turns the log on at the same time: we do.
    until = time.monotonic() + busy_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
