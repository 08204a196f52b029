"""Forget and expire: what may hide memories, and only where its switch and the rollout both allow it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from recallstack.errors import InputError
from recallstack.systems.memory.database import Database
from recallstack.systems.memory.memories import Memories, Now
from recallstack.systems.memory.model import checked_id
from recallstack.systems.memory.modes import Modes, lifecycle_refusal
from recallstack.systems.memory.switches import NO_SWITCHES, Switches
from recallstack.systems.memory.sync import Sync


@dataclass(frozen=True, slots=True)
class Outcome:
    """changed: (user, memory id) of what was hidden. refused: why nothing was done, or empty.

    debt: rows whose vector is still to be removed; a hidden row is never recalled, whatever its vector.
    """

    changed: tuple[tuple[str, str], ...] = ()
    refused: str = ""
    debt: int = 0


class Lifecycle:
    """The only part of the memory system that the rollout modes govern (with the worker, which calls it)."""

    def __init__(
        self, database: Database, sync: Sync, modes: Callable[[], Modes], now: Now, switches: Switches = NO_SWITCHES
    ) -> None:
        self._database = database
        self._sync = sync
        self._modes = modes
        self._now = now
        self._switches = switches
        self._memories = Memories(database, switches)

    def forget(self, user: str, ids: Sequence[str]) -> Outcome:
        """Forget memories of a user, all or none.

        Raises InputError for an id that this user does not have, StoreError if nothing is known to have changed.
        """
        checked_id(user, "user")
        if refused := lifecycle_refusal(self._modes(), "forget", user, self._switches):
            return Outcome(refused=refused)
        with self._database.write("forgetting memories") as connection:
            rows = self._memories.by_id(connection, user, ids)
            for one in ids:
                if one not in rows:
                    raise InputError(f"memory {one!r} is not one of this user's; nothing was forgotten")
            changed = [one for one in dict.fromkeys(ids) if not rows[one].forgotten]
            self._memories.hide(connection, user, changed, self._now(), forgotten=True)
        return self._paid({user: changed})

    def expire(self, user: str | None = None) -> Outcome:
        """Archive the active memories of a user (None: of all users) whose time is over. Raises StoreError."""
        if user is not None:
            checked_id(user, "user")
        if refused := lifecycle_refusal(self._modes(), "expire", user, self._switches):
            return Outcome(refused=refused)
        with self._database.write("expiring memories") as connection:
            now = self._now()
            over = self._memories.expired(connection, user, now)
            for one, ids in over.items():
                self._memories.hide(connection, one, ids, now, archived=True)
        return self._paid(over)

    def sweep(self) -> tuple[Outcome, ...]:
        """What the worker does: expire for all in `active`, for each listed user in `canary`. Raises StoreError."""
        modes = self._modes()
        if modes.lifecycle == "canary" and not self._switches.worker_switch_only:
            return tuple(self.expire(user) for user in sorted(modes.lifecycle_users))
        return (self.expire(),)

    def _paid(self, changed: dict[str, list[str]]) -> Outcome:
        debt = sum(self._sync.after_write(user, None, len(ids)).debt for user, ids in changed.items() if ids)
        return Outcome(tuple((user, one) for user, ids in changed.items() for one in ids), debt=debt)
