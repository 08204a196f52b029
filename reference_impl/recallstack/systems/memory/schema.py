"""The tables, and how they come to be: idempotent, all or nothing, safe with several processes at once."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from recallstack.errors import InputError
from recallstack.systems.memory.database import Database

METADATA = sa.MetaData()
_PREFIX = "memory_v2_"
_Serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""SQLite counts up only a column of the type INTEGER."""


def _moment(name: str, nullable: bool = False) -> sa.Column[int]:
    """Milliseconds since 1970, as the caller's clock says."""
    return sa.Column(name, sa.BigInteger, nullable=nullable)


MEMORIES = sa.Table(
    f"{_PREFIX}memories",
    METADATA,
    sa.Column("seq", _Serial, primary_key=True, autoincrement=True),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("importance", sa.Float, nullable=False),
    sa.Column("archived", sa.Boolean, nullable=False),
    sa.Column("forgotten", sa.Boolean, nullable=False),
    _moment("created_at"),
    _moment("updated_at"),
    _moment("expires_at", nullable=True),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("user_id", "id"),
    sa.Index(f"{_PREFIX}memories_newest", "user_id", "updated_at"),
)
"""One row a memory; unique by user and id. seq: order of first saving. revision: counted up by every change."""

DEBTS = sa.Table(
    f"{_PREFIX}vector_debts",
    METADATA,
    sa.Column("user_id", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.ForeignKeyConstraint(["user_id", "id"], [MEMORIES.c.user_id, MEMORIES.c.id]),
)
"""Memories whose vector is not known to be what the row says. Written in the transaction that changes the row."""

RUNS = sa.Table(
    f"{_PREFIX}agent_runs",
    METADATA,
    sa.Column("seq", _Serial, primary_key=True, autoincrement=True),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("user_message_json", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    _moment("created_at"),
    sa.Index(f"{_PREFIX}agent_runs_of_session", "user_id", "session_id", "seq"),
)
"""One row a run of the agent: the user's own message as JSON, and `running`, `succeeded` or `failed`."""

MESSAGES = sa.Table(
    f"{_PREFIX}session_messages",
    METADATA,
    sa.Column("seq", _Serial, primary_key=True, autoincrement=True),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    _moment("created_at"),
    sa.Index(f"{_PREFIX}session_messages_of_session", "user_id", "session_id", "seq"),
)
"""The session as the agent got it: orchestration and injected memories included."""

STATE = sa.Table(
    f"{_PREFIX}state",
    METADATA,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
"""What is known about the whole installation: whether the closed loop has passed."""

CANDIDATES = sa.Table(
    f"{_PREFIX}candidates",
    METADATA,
    sa.Column("seq", _Serial, primary_key=True, autoincrement=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("importance", sa.Float, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("memory_id", sa.Text, nullable=True),
    _moment("created_at"),
    _moment("updated_at"),
    _moment("expires_at", nullable=True),
    sa.Index(f"{_PREFIX}candidates_by_user", "user_id", "status", "seq"),
)
"""Memories that wait for a promotion: `pending`, `promoted` (with the memory that came of it) or `rejected`."""

BASE = (MEMORIES, DEBTS, RUNS, MESSAGES, STATE)
_LOCK = "recallstack.systems.memory.schema"


def ensure_schema(database: Database) -> None:
    """Make what is missing of the tables that everything needs.

    Raises StoreError if the database does not answer or refuses, InputError if a table is of another version.
    """
    ensure_tables(database, BASE)


def ensure_candidate_schema(database: Database) -> None:
    """Make the table of candidates if it is not there; errors as in `ensure_schema`."""
    ensure_tables(database, (CANDIDATES,))


def ensure_tables(database: Database, tables: Sequence[sa.Table], *before: str) -> None:
    """Make these tables, in one transaction. before: statements that the server must have run first."""
    with database.write("making the schema") as connection:
        database.lock(connection, _LOCK)
        for statement in before:
            connection.exec_driver_sql(statement)
        for table in tables:
            table.create(connection, checkfirst=True)
            _check(connection, table, database.label)


def _check(connection: Connection, table: sa.Table, label: str) -> None:
    """Raises InputError for a table of this name that is not ours."""
    found = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
    if lacking := [column.name for column in table.columns if column.name not in found]:
        raise InputError(
            f"{label}: table {table.name} has no column {lacking[0]!r}: it is of another version; "
            "name another database or migrate it"
        )


def table_exists(database: Database, table: sa.Table) -> bool:
    """Whether the table is there. Raises StoreError if the database does not answer."""
    with database.read("looking for a table") as connection:
        return sa.inspect(connection).has_table(table.name)
