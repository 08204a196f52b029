"""Candidates: memories that wait for a promotion, in the database or, without its table, in the process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from recallstack.systems.memory.database import Database
from recallstack.systems.memory.memories import ACTIVE, Now
from recallstack.systems.memory.model import Candidate, NewMemory, digest_id
from recallstack.systems.memory.schema import CANDIDATES, MEMORIES
from recallstack.systems.memory.switches import NO_SWITCHES, Switches

Status = Literal["pending", "promoted", "rejected"]
BOUND = 50
"""Candidates of one user that a process keeps without a table (a choice); the oldest go first."""
C = CANDIDATES.c
_SUMMARIES = MEMORIES.alias("summaries")
_COMPACTED = sa.and_(
    MEMORIES.c.archived,
    sa.not_(MEMORIES.c.forgotten),
    MEMORIES.c.expires_at.is_(None),  # one that ends is never compacted
    sa.exists().where(
        _SUMMARIES.c.user_id == MEMORIES.c.user_id,
        _SUMMARIES.c.session_id == MEMORIES.c.session_id,
        _SUMMARIES.c.type == "summary",
        sa.not_(_SUMMARIES.c.archived),
        sa.not_(_SUMMARIES.c.forgotten),
    ),
)
"""A summary says what this memory said."""
_GONE = sa.and_(
    C.status == "promoted",
    ~sa.exists().where(
        MEMORIES.c.user_id == C.user_id,
        MEMORIES.c.id == C.memory_id,
        sa.or_(ACTIVE, _COMPACTED),
    ),
)
"""Promoted, and the memory that came of it is forgotten or has expired, or its summary is not active any more."""


class CandidateStore(Protocol):
    """Where candidates are kept. durable: they outlive the process."""

    durable: bool

    def add(self, user: str, session: str, memories: Sequence[NewMemory]) -> tuple[str, ...]:
        """Keep candidates, all or none. Returns their ids.

        One that is there stays as it is, rejected ones too; one that neither a memory nor a summary says any longer
        waits again.
        """

    def of_user(self, user: str | None, status: Status | None = "pending") -> tuple[Candidate, ...]:
        """The candidates of a user (None: of all), oldest first."""

    def get(self, candidate: str) -> Candidate | None:
        """One candidate."""

    def mark(self, connection: Connection | None, candidate: str, status: Status, memory: str | None) -> bool:
        """Set the status of a pending one; False if it is not pending (any more).

        connection: the transaction of the memory that came of it; None: a transaction of its own.
        """


def candidate_id(user: str, memory: NewMemory) -> str:
    """The same text of the same user is the same candidate."""
    return digest_id("c", user, memory.title, memory.content)


class DatabaseCandidates:
    """Candidates in the database, whose table `ensure_candidate_schema` makes."""

    durable = True

    def __init__(self, database: Database, now: Now) -> None:
        self._database = database
        self._now = now

    def add(self, user: str, session: str, memories: Sequence[NewMemory]) -> tuple[str, ...]:
        now = self._now()
        rows = {
            candidate_id(user, memory): {
                "id": candidate_id(user, memory),
                "user_id": user,
                "session_id": session,
                "type": memory.type,
                "title": memory.title,
                "content": memory.content,
                "importance": float(memory.importance),
                "status": "pending",
                "created_at": now,
                "updated_at": now,
                "expires_at": memory.expires_at,
            }
            for memory in memories
        }
        if rows:
            with self._database.write("saving candidates") as connection:
                statement = self._database.insert(CANDIDATES)
                again = {"status": "pending", "memory_id": None, "updated_at": statement.excluded.updated_at}
                connection.execute(
                    statement.on_conflict_do_update(index_elements=["id"], set_=again, where=_GONE), list(rows.values())
                )
        return tuple(rows)

    def of_user(self, user: str | None, status: Status | None = "pending") -> tuple[Candidate, ...]:
        query = sa.select(CANDIDATES).order_by(C.seq)
        if user is not None:
            query = query.where(C.user_id == user)
        if status is not None:
            query = query.where(C.status == status)
        with self._database.read("reading candidates") as connection:
            return tuple(_candidate(row) for row in connection.execute(query))

    def get(self, candidate: str) -> Candidate | None:
        with self._database.read("reading candidates") as connection:
            row = connection.execute(sa.select(CANDIDATES).where(C.id == candidate)).first()
        return None if row is None else _candidate(row)

    def mark(self, connection: Connection | None, candidate: str, status: Status, memory: str | None) -> bool:
        if connection is None:
            with self._database.write("marking a candidate") as own:
                return self.mark(own, candidate, status, memory)
        changed = connection.execute(
            sa.update(CANDIDATES)
            .where(C.id == candidate, C.status == "pending")
            .values(status=status, memory_id=memory, updated_at=self._now())
        )
        return changed.rowcount == 1


def _candidate(row: Row[Any]) -> Candidate:
    return Candidate(
        id=row.id,
        user=row.user_id,
        session=row.session_id,
        type=row.type,
        title=row.title,
        content=row.content,
        importance=row.importance,
        status=row.status,
        memory_id=row.memory_id,
        expires_at=row.expires_at,
    )


class BoundedCandidates:
    """Candidates in this process alone: at most BOUND of a user, gone with the process. Never fails."""

    durable = False

    def __init__(self, bound: int = BOUND, switches: Switches = NO_SWITCHES) -> None:
        self._bound = bound
        self._switches = switches
        self._kept: dict[str, Candidate] = {}

    def add(self, user: str, session: str, memories: Sequence[NewMemory]) -> tuple[str, ...]:
        ids = []
        for memory in memories:
            ids.append(candidate_id(user, memory))
            self._kept.setdefault(
                ids[-1],
                Candidate(
                    id=ids[-1],
                    user=user,
                    session=session,
                    type=memory.type,
                    title=memory.title,
                    content=memory.content,
                    importance=float(memory.importance),
                    status="pending",
                    expires_at=memory.expires_at,
                    durable=False,
                ),
            )
        own = [one for one, candidate in self._kept.items() if candidate.user == user]
        if not self._switches.bounded_unbounded:
            for one in own[: max(0, len(own) - self._bound)]:
                del self._kept[one]
        return tuple(dict.fromkeys(one for one in ids if one in self._kept))

    def of_user(self, user: str | None, status: Status | None = "pending") -> tuple[Candidate, ...]:
        return tuple(
            one
            for one in self._kept.values()
            if (user is None or one.user == user) and (status is None or one.status == status)
        )

    def get(self, candidate: str) -> Candidate | None:
        return self._kept.get(candidate)

    def mark(self, connection: Connection | None, candidate: str, status: Status, memory: str | None) -> bool:
        one = self._kept.get(candidate)
        if one is None or one.status != "pending":
            return False
        self._kept[candidate] = replace(one, status=status, memory_id=memory)
        return True
