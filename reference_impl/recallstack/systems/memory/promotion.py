"""Promotion: a candidate becomes a memory of the user that it is of, whoever promotes it."""

from __future__ import annotations

from recallstack.errors import InputError
from recallstack.systems.memory.candidates import CandidateStore
from recallstack.systems.memory.database import Database
from recallstack.systems.memory.memories import Memories, Now
from recallstack.systems.memory.model import Candidate, NewMemory, Receipt
from recallstack.systems.memory.switches import NO_SWITCHES, Switches
from recallstack.systems.memory.sync import Sync


class Promotion:
    """Promotes and rejects. Rollout modes do not concern it."""

    def __init__(
        self, database: Database, candidates: CandidateStore, sync: Sync, now: Now, switches: Switches = NO_SWITCHES
    ) -> None:
        self._database = database
        self._candidates = candidates
        self._sync = sync
        self._now = now
        self._switches = switches
        self._memories = Memories(database, switches)

    def promote(self, candidate: str, caller: str) -> Receipt:
        """Save the memory and mark the candidate in one transaction, then upsert the vectors of the candidate's user.

        A candidate that was promoted before is acknowledged again: nothing changes. caller: who promotes; their
        own memories are not touched. Raises InputError for an unknown or rejected candidate, StoreError if nothing
        is known to have changed.
        """
        one = self._candidates.get(candidate)
        if one is None:
            raise InputError(f"candidate {candidate!r} is not known; list the candidates of its user")
        memory = one.memory_id
        if one.status == "pending":
            memory = self._promote(one)
            if memory is None:  # somebody else was faster
                return self.promote(candidate, caller)
        elif memory is None:
            raise InputError(f"candidate {candidate!r} was rejected; save it again as a memory")
        synced = self._sync.after_write(caller if self._switches.promotion_syncs_caller else one.user, one.session, 1)
        return Receipt(ids=(memory,), debt=synced.debt, remarks=(synced.remark,) if synced.remark else ())

    def _promote(self, one: Candidate) -> str | None:
        """The memory's id; None, and nothing done, if the candidate is not pending any more."""
        memory = _memory(one)
        memory_id = memory.id_for(one.user)
        if self._switches.promotion_not_atomic:
            self._candidates.mark(None, one.id, "promoted", memory_id)
            with self._database.write("promoting a candidate") as connection:
                self._memories.save(connection, one.user, one.session, [memory], self._now())
            return memory_id
        with self._database.write("promoting a candidate") as connection:
            # Marked in the same transaction: of two who promote it at once, one saves the memory.
            if self._candidates.durable and not self._candidates.mark(connection, one.id, "promoted", memory_id):
                return None
            self._memories.save(connection, one.user, one.session, [memory], self._now())
        if not self._candidates.durable:
            self._candidates.mark(None, one.id, "promoted", memory_id)
        return memory_id

    def reject(self, candidate: str) -> None:
        """Mark a candidate as rejected. Raises InputError if it is not pending."""
        if not self._candidates.mark(None, candidate, "rejected", None):
            raise InputError(f"candidate {candidate!r} is not pending; list the candidates of its user")


def _memory(one: Candidate) -> NewMemory:
    return NewMemory(
        content=one.content,
        title=one.title,
        type=one.type,
        importance=one.importance,
        expires_at=one.expires_at,
    )
