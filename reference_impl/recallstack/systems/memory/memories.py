"""Rows of memories: saved, changed and read. Every change leaves a debt to the vector table, in its transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from recallstack.systems.memory.database import Database, chunks
from recallstack.systems.memory.model import NewMemory, Stored
from recallstack.systems.memory.schema import DEBTS, MEMORIES
from recallstack.systems.memory.switches import NO_SWITCHES, Switches

Now = Callable[[], int]
"""Milliseconds since 1970."""
M = MEMORIES.c
ACTIVE = sa.and_(sa.not_(M.archived), sa.not_(M.forgotten))


class Memories:
    """The rows of all users, inside transactions that the caller opens."""

    def __init__(self, database: Database, switches: Switches = NO_SWITCHES) -> None:
        self._database = database
        self._switches = switches

    def save(
        self, connection: Connection, user: str, session: str, memories: Iterable[NewMemory], now: int
    ) -> tuple[str, ...]:
        """Save memories as active rows of this session; one that is there takes the new values. Returns their ids."""
        rows = {
            memory.id_for(user): {
                "user_id": user,
                "id": memory.id_for(user),
                "session_id": session,
                "type": memory.type,
                "title": memory.title,
                "content": memory.content,
                "importance": float(memory.importance),
                "archived": False,
                "forgotten": False,
                "created_at": now,
                "updated_at": now,
                "expires_at": memory.expires_at,
                "revision": 1,
            }
            for memory in memories
        }
        if rows:
            kept = {"created_at": M.created_at, "revision": M.revision + 1}
            connection.execute(self._database.upsert(MEMORIES, ("user_id", "id"), **kept), list(rows.values()))
            self.owe(connection, user, rows)
        return tuple(rows)

    def hide(self, connection: Connection, user: str, ids: Collection[str], now: int, **flags: bool) -> None:
        """Set `archived` or `forgotten` of rows."""
        for part in chunks(ids):
            connection.execute(
                sa.update(MEMORIES)
                .where(M.user_id == user, M.id.in_(part))
                .values(updated_at=now, revision=M.revision + 1, **flags)
            )
        self.owe(connection, user, ids)

    def owe(self, connection: Connection, user: str, ids: Collection[str]) -> None:
        """Record that the vectors of these rows may not be what the rows say."""
        if ids and not self._switches.debt_not_recorded:
            statement = self._database.insert(DEBTS).on_conflict_do_nothing()
            connection.execute(statement, [{"user_id": user, "id": one} for one in ids])

    def settle(self, connection: Connection, user: str, ids: Collection[str]) -> None:
        """These rows' vectors are what the rows say."""
        for part in chunks(ids):
            connection.execute(sa.delete(DEBTS).where(DEBTS.c.user_id == user, DEBTS.c.id.in_(part)))

    def revisions(self, connection: Connection, user: str, ids: Collection[str], lock: bool = False) -> dict[str, int]:
        """id -> revision now. lock: no other transaction changes these rows until the end of this one."""
        out: dict[str, int] = {}
        for part in chunks(sorted(ids)):
            query = sa.select(M.id, M.revision).where(M.user_id == user, M.id.in_(part)).order_by(M.id)
            found = connection.execute(query.with_for_update() if lock else query)
            out.update((row.id, row.revision) for row in found)
        return out

    def debtors(self, connection: Connection) -> tuple[str, ...]:
        """Users with a debt, in order."""
        query = sa.select(DEBTS.c.user_id).distinct().order_by(DEBTS.c.user_id)
        return tuple(connection.scalars(query))

    def debt(self, connection: Connection, user: str | None = None) -> int:
        """How many rows of a user (None: of all) wait for their vector."""
        query = sa.select(sa.func.count()).select_from(DEBTS)
        return int(connection.scalar(query if user is None else query.where(DEBTS.c.user_id == user)) or 0)

    def hidden_debts(self, connection: Connection, user: str | None) -> int:
        """How many rows that are not active may still have a vector."""
        query = sa.select(sa.func.count()).select_from(DEBTS.join(MEMORIES)).where(sa.not_(ACTIVE))
        return int(connection.scalar(query if user is None else query.where(M.user_id == user)) or 0)

    def indebted(self, connection: Connection, user: str) -> list[Stored]:
        """The rows of a user that wait for their vector, active or not, in the order of their saving."""
        return self.read(connection, sa.select(MEMORIES).join(DEBTS).where(M.user_id == user).order_by(M.seq))

    def of_session(self, connection: Connection, user: str, session: str) -> list[Stored]:
        """The active rows of a session, in the order of their saving."""
        query = sa.select(MEMORIES).where(M.user_id == user, M.session_id == session, ACTIVE)
        return self.read(connection, query.order_by(M.seq))

    def revisions_of_session(self, connection: Connection, user: str, session: str) -> dict[str, int]:
        """id -> revision of the active rows of a session."""
        query = sa.select(M.id, M.revision).where(M.user_id == user, M.session_id == session, ACTIVE)
        return {row.id: row.revision for row in connection.execute(query)}

    def by_id(self, connection: Connection, user: str | None, ids: Collection[str]) -> dict[str, Stored]:
        """id -> row, active or not. user None: of any user."""
        out: dict[str, Stored] = {}
        for part in chunks(ids):
            query = sa.select(MEMORIES).where(M.id.in_(part))
            found = self.read(connection, query if user is None else query.where(M.user_id == user))
            out.update((row.id, row) for row in found)
        return out

    def newest(
        self, connection: Connection, user: str | None, limit: int | None, active_only: bool = True
    ) -> list[Stored]:
        """The newest rows of a user (None: of all), equals in the order of their saving."""
        query = sa.select(MEMORIES).order_by(M.updated_at.desc(), M.seq)
        if user is not None:
            query = query.where(M.user_id == user)
        if active_only:
            query = query.where(ACTIVE)
        return self.read(connection, query if limit is None else query.limit(limit))

    def expired(self, connection: Connection, user: str | None, now: int) -> dict[str, list[str]]:
        """user -> ids of active rows whose time is over."""
        query = sa.select(M.user_id, M.id).where(ACTIVE, M.expires_at <= now).order_by(M.seq)
        out: dict[str, list[str]] = {}
        for row in connection.execute(query if user is None else query.where(M.user_id == user)):
            out.setdefault(row.user_id, []).append(row.id)
        return out

    @staticmethod
    def read(connection: Connection, query: sa.Select[Any]) -> list[Stored]:
        """The rows of a query over MEMORIES."""
        return [_stored(row) for row in connection.execute(query)]


def _stored(row: Row[Any]) -> Stored:
    return Stored(
        user=row.user_id,
        id=row.id,
        session=row.session_id,
        type=row.type,
        title=row.title,
        content=row.content,
        importance=row.importance,
        archived=row.archived,
        forgotten=row.forgotten,
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
        revision=row.revision,
        seq=row.seq,
    )
