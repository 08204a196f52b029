"""The host of a memory-v2 scenario: a portal and an admin side, each a process over the same rows."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from recallbench.scenarios.systems import memory_words as words
from recallbench.scenarios.systems.memory_process import LoopClock, Model, Stores
from recallstack.errors import InputError
from recallstack.systems.memory import Switches
from recallstack.systems.memory.admin import Admin
from recallstack.systems.memory.extraction import model_extractor
from recallstack.systems.memory.model import NewMemory
from recallstack.systems.memory.portal import Portal
from recallstack.systems.memory.services import RecallEvent, Settings


class Host:
    """Starts and ends the processes.

    settings: of the next start. reply: what the extraction's model answers; None: it is not available. asked: its
    last prompt. events: of every recall of a turn, in order.
    """

    def __init__(
        self, settings: words.Settings, switches: Switches, model: Model | None, url: str | None, schema: str | None
    ) -> None:
        """url, schema: a PostgreSQL database; without them a temporary SQLite file."""
        self.settings = settings
        self.model = model
        self.reply: str | None = None
        self.asked = ""
        self.events: list[RecallEvent] = []
        self._switches = switches
        self._clock = LoopClock()
        self._portal: Portal | None = None
        self._admin: Admin | None = None
        self._processes = ExitStack()
        self._path = Path(tempfile.mkdtemp(prefix="recallbench-memory-")).resolve()
        self.stores = Stores(self._path, url, schema)

    @property
    def portal(self) -> Portal:
        """The portal; it starts with the first call or probe that needs it."""
        if self._portal is None and (why := self.start()):
            raise InputError(f"the portal does not start: {why}")
        assert self._portal is not None
        return self._portal

    @property
    def admin(self) -> Admin:
        """The admin side; it starts with the first call or probe that needs it."""
        if self._admin is None and (why := self.start_admin()):
            raise InputError(f"the admin side does not start: {why}")
        assert self._admin is not None
        return self._admin

    def start(self) -> str:
        """End what runs, and start the portal anew; why it does not start, or empty."""
        self.end()
        portal = Portal(*self.stores.open(self._processes), self._embedder, self._of_memory(), self._clock)
        self._processes.callback(portal.close)
        try:
            portal.start()
        except InputError as error:
            self.end()
            return self.shown(str(error))
        self._portal = portal
        return ""

    def start_admin(self) -> str:
        """Start the admin side; why it does not start, or empty."""
        try:
            self._admin = Admin(*self.stores.open(self._processes), self._embedder, self._of_memory())
        except InputError as error:
            return self.shown(str(error))
        return ""

    def save_before(self, made: Sequence[tuple[words.Row, list[NewMemory]]]) -> None:
        """What stands before the first step: saved one after another, without any fault."""
        with ExitStack() as stack:
            database, vectors = self.stores.open(stack)
            portal = Portal(database, vectors, self._embedder, Settings(now=self._clock.epoch_ms))
            portal.start()
            for row, memories in made:
                portal.write(row.user, row.session, memories)

    def new(self, row: words.Row) -> list[NewMemory]:
        """The memories of a row. Raises InputError for a value that cannot be stored."""
        one = row.id or row.text
        ids = [one] if row.repeat is None else [f"{one}-{number}" for number in range(1, row.repeat + 1)]
        over = None if row.expires_in_ms is None else self._clock.epoch_ms() + row.expires_in_ms
        return [
            NewMemory(id=one, content=row.text, type=row.type, importance=row.importance, expires_at=over)
            for one in ids
        ]

    def shown(self, text: str) -> str:
        """A text without the name of the folder, which is another one each time."""
        return text.replace(f"{self._path}/", "")

    def end(self) -> None:
        """End both processes."""
        self._portal = self._admin = None
        self._processes.close()

    def close(self) -> None:
        """End both and remove everything."""
        try:
            self.end()
        finally:
            shutil.rmtree(self._path)

    @property
    def _embedder(self) -> Any:
        return self.settings.embedder or self.model or "hash3"

    def _of_memory(self) -> Settings:
        return Settings(
            modes=self.settings.modes,
            now=self._clock.epoch_ms,
            extractor=model_extractor(self._answer, self._switches),
            tell=self.events.append,
            switches=self._switches,
            **self.settings.of_memory,
        )

    def _answer(self, prompt: str) -> str:
        self.asked = prompt
        return "null" if self.reply is None else self.reply
