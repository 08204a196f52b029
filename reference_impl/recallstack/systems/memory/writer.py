"""Write and compact: saved in one transaction, recallable before they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from recallstack.errors import InputError
from recallstack.systems.memory.database import Database
from recallstack.systems.memory.memories import Memories, Now
from recallstack.systems.memory.model import NewMemory, Receipt, Stored, checked_id, digest_id
from recallstack.systems.memory.switches import NO_SWITCHES, Switches
from recallstack.systems.memory.sync import Sync, Synced

Summarise = Callable[[Sequence[str]], str]
"""The texts of a session's memories, in the order of their saving, as one text."""
SUMMARY_IMPORTANCE = 4.0
"""Of a session's summary (a choice)."""


def joined(texts: Sequence[str]) -> str:
    """The summary that needs no model: the lines of the texts, each once, empty ones left out."""
    return "\n".join(dict.fromkeys(line.strip() for text in texts for line in text.splitlines() if line.strip()))


class Writer:
    """Saves memories. Rollout modes do not concern it (seed 003, behaviour 6)."""

    def __init__(
        self,
        database: Database,
        sync: Sync,
        now: Now,
        switches: Switches = NO_SWITCHES,
        summarise: Summarise = joined,
    ) -> None:
        self._database = database
        self._sync = sync
        self._now = now
        self._switches = switches
        self._summarise = summarise
        self._memories = Memories(database, switches)

    def write(self, user: str, session: str, memories: Sequence[NewMemory]) -> Receipt:
        """Save memories of a user, all or none, and upsert their vectors.

        The same memory again is the same row, and active again if it was not. Raises InputError for a user, session
        or memory that cannot be stored, StoreError if nothing is known to be saved; trying again is safe then.
        """
        checked_id(user, "user")
        checked_id(session, "session")
        with self._database.write("saving memories") as connection:
            ids = self._memories.save(connection, user, session, memories, self._now())
        return self._told(ids, self._synced(user, session, ids))

    def compact(self, user: str, session: str) -> Receipt:
        """Put one summary in place of a session's active memories, in one transaction; they are archived.

        A memory that ends stays beside it: the summary would outlive it. A session with no more than one active
        memory that does not end stays as it is. Errors as in `write`.
        """
        checked_id(user, "user")
        checked_id(session, "session")
        while True:
            with self._database.read("reading memories") as connection:
                rows = self._memories.of_session(connection, user, session)
            before = [row for row in rows if row.expires_at is None]
            if len(before) < 2:
                return Receipt()
            summary = self._summary(user, session, before)  # outside of the transaction: a model may be slow
            ids = self._replace(user, session, before, summary)
            if ids:
                break
        if self._switches.compact_not_synced:
            return self._told(ids, Synced())
        return self._told(ids, self._synced(user, session, ids))

    def _replace(self, user: str, session: str, before: Sequence[Stored], summary: NewMemory) -> tuple[str, ...]:
        """The summary's id; nothing, and nothing done, if a row changed while the summary was made."""
        known = {row.id: row.revision for row in before}
        summary_id = summary.id_for(user)
        with self._database.write("compacting a session") as connection:
            now = self._memories.revisions(connection, user, {*known, summary_id}, lock=True)
            there = self._memories.by_id(connection, user, [summary_id]).get(summary_id)
            if there is not None and not there.active:
                del now[summary_id]  # a summary that was forgotten: the new one takes its place
            if now != known:
                return ()
            ids = self._memories.save(connection, user, session, [summary], self._now())
            self._memories.hide(
                connection, user, [one for one in known if one != summary_id], self._now(), archived=True
            )
            return ids

    def _summary(self, user: str, session: str, rows: Sequence[Stored]) -> NewMemory:
        text = self._summarise([row.content for row in rows])
        if not text.strip():
            raise InputError(f"session {session!r}: the summary is empty; nothing was compacted")
        return NewMemory(id=digest_id("s", user, session), content=text, type="summary", importance=SUMMARY_IMPORTANCE)

    def _synced(self, user: str, session: str, ids: Sequence[str]) -> Synced:
        if self._switches.sync_skipped or not ids:
            return Synced()
        return self._sync.after_write(user, session, len(ids))

    @staticmethod
    def _told(ids: tuple[str, ...], synced: Synced) -> Receipt:
        return Receipt(ids=ids, debt=synced.debt, remarks=(synced.remark,) if synced.remark else ())
