"""One turn of the chat: recall, inject, record. Whatever fails in the memory, the chat goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from recallstack.ranking.rows import Memory
from recallstack.systems.memory.context import orchestrated
from recallstack.systems.memory.errors import StoreError
from recallstack.systems.memory.model import Stored, checked_id
from recallstack.systems.memory.recall import Recalled
from recallstack.systems.memory.services import RecallEvent, Services, Settings
from recallstack.systems.session.block import Block, render


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """prompt: what the agent gets. recalled, injected: memory ids. mode: off, shadow, canary or active.

    run: number of the run, None if it could not be recorded. remarks: what did not go as it should.
    """

    prompt: str
    mode: str
    run: int | None
    recalled: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class Turns:
    """Prepares and ends turns."""

    def __init__(
        self, services: Services, settings: Settings, mode_of: Callable[[str], str], health: Callable[[], str]
    ) -> None:
        self._services = services
        self._settings = settings
        self._mode_of = mode_of
        self._health = health

    def prepare(self, user: str, session: str, message: str) -> Prepared:
        """What the agent gets for a user's message; recorded, with the user's own words kept apart.

        Raises InputError for a user or session that is no plain text; a store that fails is a remark.
        """
        checked_id(user, "user")
        checked_id(session, "session")
        mode = self._mode_of(user)
        found = Recalled()
        remarks: list[str] = []
        if mode != "off" and message.strip():
            try:
                found = self._services.recall.recall(user, message, self._settings.inject)
                remarks.extend(found.remarks)
            except StoreError as error:
                remarks.append(f"{error}; answered without memories")
        injects = mode in ("canary", "active") or self._settings.switches.shadow_injects
        block = render([_row(hit) for hit in found.hits], self._settings.block) if injects else Block()
        if mode != "off":
            self._settings.tell(RecallEvent(user, session, mode, found.ids, block.ids, self._health()))
        prompt = orchestrated(message, block.text, self._settings.orchestration)
        run: int | None = None
        try:
            run = self._services.sessions.begin(user, session, message, prompt)
        except StoreError as error:
            remarks.append(f"{error}; the message is not recorded")
        return Prepared(
            prompt=prompt,
            mode=mode,
            run=run,
            recalled=found.ids,
            injected=block.ids,
            remarks=tuple(remarks),
        )

    def finish(self, prepared: Prepared, reply: str | None) -> str:
        """Record the agent's reply (None: it failed). Returns a remark if that could not be done, or nothing."""
        if prepared.run is None:
            return ""
        try:
            self._services.sessions.end(prepared.run, reply)
        except StoreError as error:
            return f"{error}; the reply is not recorded"
        return ""


def _row(hit: Stored) -> Memory:
    return Memory(id=hit.id, title=hit.title, content=hit.content, type=hit.type, importance=hit.importance)
