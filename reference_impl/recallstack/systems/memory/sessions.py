"""Sessions and agent runs: what the user said, and what the agent was given."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from recallstack.systems.memory.context import without_context
from recallstack.systems.memory.database import Database
from recallstack.systems.memory.errors import StoreError
from recallstack.systems.memory.memories import Now
from recallstack.systems.memory.model import checked_id, storable
from recallstack.systems.memory.schema import MESSAGES, RUNS
from recallstack.systems.memory.switches import NO_SWITCHES, Switches

Role = Literal["user", "assistant"]
RECENT = 20
"""Messages that an extraction reads (a choice)."""
R, S = RUNS.c, MESSAGES.c


@dataclass(frozen=True, slots=True)
class Said:
    """texts: what the user said, oldest first. source: `runs` (the originals) or `session` (what is visible).

    remark: why it is not the originals, or empty.
    """

    texts: tuple[str, ...]
    source: Literal["runs", "session"]
    remark: str = ""


class Sessions:
    """Keeps the original message of each run, and the session as the agent sees it."""

    def __init__(self, database: Database, now: Now, switches: Switches = NO_SWITCHES) -> None:
        self._database = database
        self._now = now
        self._switches = switches

    def begin(self, user: str, session: str, message: str, shown: str) -> int:
        """A run begins: keep the user's own message, and the one that the agent gets. Returns the run's number."""
        checked_id(user, "user")
        checked_id(session, "session")
        own = json.dumps({"text": storable(message)}, ensure_ascii=False)
        with self._database.write("recording a message") as connection:
            now = self._now()
            of = {"user_id": user, "session_id": session, "created_at": now}
            run = connection.execute(sa.insert(RUNS).values(**of, user_message_json=own, status="running"))
            connection.execute(sa.insert(MESSAGES).values(**of, role="user", text=storable(shown)))
            assert run.inserted_primary_key is not None
            return int(run.inserted_primary_key[0])

    def end(self, run: int, reply: str | None) -> None:
        """A run ends, with a reply or (None) without success. A run that has ended stays as it is."""
        with self._database.write("recording a reply") as connection:
            row = connection.execute(
                sa.select(R.user_id, R.session_id).where(R.seq == run, R.status == "running").with_for_update()
            ).first()
            if row is None:
                return
            status = "failed" if reply is None else "succeeded"
            connection.execute(sa.update(RUNS).where(R.seq == run).values(status=status))
            if reply is not None:
                connection.execute(
                    sa.insert(MESSAGES).values(
                        user_id=row.user_id,
                        session_id=row.session_id,
                        role="assistant",
                        text=storable(reply),
                        created_at=self._now(),
                    )
                )

    def said(self, user: str, session: str, limit: int = RECENT) -> Said:
        """What the user said in a session, newest `limit` messages.

        The original messages of successful runs of this user and session. If there are none or the look-up fails,
        the visible session, without what was put around the messages. Raises StoreError if that fails too.
        """
        switches = self._switches
        if switches.extraction_reads_orchestrated:
            return Said(self._visible(user, session, limit, clean=False), "session")
        if switches.visible_session_first:
            return Said(self._visible(user, session, limit), "session")
        remark = "no original message of a successful run: the visible session was read"
        try:
            originals = self._originals(user, session, limit)
            if originals:
                return Said(originals, "runs")
        except StoreError as error:
            if switches.lookup_failure_raises:
                raise
            remark = f"{error}; the visible session was read"
        return Said(self._visible(user, session, limit, clean=not switches.fallback_keeps_context), "session", remark)

    def _originals(self, user: str, session: str, limit: int) -> tuple[str, ...]:
        switches = self._switches
        query = sa.select(R.user_message_json).order_by(R.seq.desc()).limit(limit)
        if not switches.other_users_count:
            query = query.where(R.user_id == user)
        if not switches.other_sessions_count:
            query = query.where(R.session_id == session)
        if not switches.failed_runs_count:
            query = query.where(R.status == "succeeded")
        with self._database.read("reading the original messages") as connection:
            rows = list(connection.scalars(query))
        return tuple(text for text in map(_text_of, reversed(rows)) if text.strip())

    def _visible(self, user: str, session: str, limit: int, clean: bool = True) -> tuple[str, ...]:
        query = sa.select(S.text).where(S.user_id == user, S.session_id == session, S.role == "user")
        with self._database.read("reading the session") as connection:
            rows = list(connection.scalars(query.order_by(S.seq.desc()).limit(limit)))
        texts = (without_context(text) if clean else text for text in reversed(rows))
        return tuple(text for text in texts if text)


def _text_of(message: str) -> str:
    """The text of a stored message: a string, `{text}`, `{content}`, or parts of these; empty where it has none."""
    try:
        value: Any = json.loads(message)
    except ValueError:
        return ""
    return _flat(value)


def _flat(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_flat, value)))
    if isinstance(value, dict):
        return _flat(value.get("text", value.get("content", "")))
    return ""
