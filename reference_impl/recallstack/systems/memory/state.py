"""What outlives a switch of modes: whether the closed loop has passed."""

from __future__ import annotations

import json

import sqlalchemy as sa

from recallstack.systems.memory.database import Database
from recallstack.systems.memory.schema import CANDIDATES, STATE

_KEY = "closed_loop"


def loop_passed(database: Database) -> bool:
    """Whether the closed loop has passed on this database. Raises StoreError."""
    with database.read("reading the state") as connection:
        return connection.scalar(sa.select(STATE.c.value).where(STATE.c.key == _KEY)) is not None


def record_loop(database: Database, user: str, now: int) -> None:
    """Record that it has passed: for whom, and when. Raises StoreError."""
    value = json.dumps({"user": user, "at": now}, ensure_ascii=False)
    with database.write("recording the closed loop") as connection:
        connection.execute(database.upsert(STATE, ("key",)), {"key": _KEY, "value": value})


def drop_candidates(database: Database) -> None:
    """The documented mistake of a rollback: the table goes, and with it what waits in it."""
    with database.write("dropping candidates") as connection:
        CANDIDATES.drop(connection, checkfirst=True)
