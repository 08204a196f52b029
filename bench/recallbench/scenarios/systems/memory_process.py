"""What a memory-v2 scenario runs on: stores that can fail, embeddings by table, and time that the harness moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from recallstack.errors import InputError
from recallstack.systems.memory.database import Database
from recallstack.systems.memory.memories import M, Memories
from recallstack.systems.memory.model import Stored
from recallstack.systems.memory.pgvectors import PgVectors
from recallstack.systems.memory.schema import CANDIDATES, MEMORIES, RUNS
from recallstack.systems.memory.services import open_stores
from recallstack.systems.memory.vectors import LocalVectors
from recallstack.systems.session.clock import Timer

EPOCH_MS = 1_700_000_000_000
"""The time when the loop's clock says 0."""
_CREATES = f"CREATE TABLE {CANDIDATES.name} "
FAILS: Mapping[str, Callable[[str], bool]] = {
    "none": lambda statement: False,
    "gone": lambda statement: True,
    "no-candidate-table": lambda statement: statement.lstrip().startswith(_CREATES),
    "no-runs": lambda statement: statement.startswith("SELECT") and f"FROM {RUNS.name}" in statement,
    "no-new-memories": lambda statement: statement.startswith(f"INSERT INTO {MEMORIES.name}"),
}
"""Value of the fault `database` -> whether a statement fails."""


class LoopClock:
    """The running loop's time as a session's clock; its timers are the loop's, which tells those that are left."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timers: list[asyncio.TimerHandle] = []

    @property
    def now_ms(self) -> float:
        return self._loop.time() * 1000

    @property
    def pending_timers(self) -> int:
        return sum(not one.cancelled() and one.when() > self._loop.time() for one in self._timers)

    def call_later(self, ms: float, callback: Callable[[], object]) -> Timer:
        timer = self._loop.call_later(ms / 1000, callback)
        self._timers.append(timer)
        return timer

    async def sleep(self, ms: float) -> None:
        await asyncio.sleep(ms / 1000)

    def epoch_ms(self) -> int:
        """Milliseconds since 1970."""
        return EPOCH_MS + round(self.now_ms)


class Model:
    """The embeddings that a scenario gives; a text without one has none. Fails while `broken`."""

    name = "scenario"

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        lengths = {len(one) for one in vectors.values()}
        if len(lengths) != 1 or 0 in lengths:
            raise InputError(f"vectors have {sorted(lengths)} dimensions; all must have the same")
        self.broken = False
        self._vectors = {text.strip(): list(one) for text, one in vectors.items()}
        self._zero = [0.0] * lengths.pop()

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float64]:
        if self.broken:
            raise ConnectionError
        return np.array([self._vectors.get(text.strip(), self._zero) for text in texts], np.float64)

    encode_queries = encode_documents


class Stores:
    """Where the data is: each `open` is a process of its own over the same rows.

    url, schema: of a PostgreSQL database; without them SQLite files in `folder`.
    """

    def __init__(self, folder: Path, url: str | None = None, schema: str | None = None) -> None:
        self._url = url or f"sqlite:///{folder / 'memory.db'}"
        self._schema = schema
        self.faults = {"database": "none", "vectors": "none"}

    def open(self, stack: ExitStack) -> tuple[Database, LocalVectors | PgVectors]:
        """Connections that the stack closes, and that fail as `faults` says."""
        database, vectors = self._open(stack)
        self._watch(database, "database")
        self._watch(vectors.database, "vectors")
        return database, vectors

    def _open(self, stack: ExitStack) -> tuple[Database, LocalVectors | PgVectors]:
        database, vectors = open_stores(self._url, schema=self._schema)
        stack.callback(database.close)
        stack.callback(vectors.close)
        assert isinstance(vectors, LocalVectors | PgVectors)
        for one in (database, vectors.database):
            if not one.postgres:
                # No scenario cuts the power: nothing waits for the disk.
                sa.event.listen(
                    one.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF")
                )
        return database, vectors

    def _watch(self, database: Database, part: str) -> None:
        dialect = database.engine.dialect

        def execute(cursor: Any, statement: str, parameters: Any, context: Any) -> None:
            if FAILS[self.faults[part]](statement):
                assert dialect.loaded_dbapi is not None
                raise dialect.loaded_dbapi.OperationalError("made by a scenario")

        sa.event.listen(database.engine, "do_execute", execute)
        sa.event.listen(database.engine, "do_executemany", execute)

    def rows(self, user: str | None) -> list[Stored]:
        """All rows of a user (None: of all), in the order of their saving, whatever fails otherwise."""
        query = sa.select(MEMORIES).order_by(M.seq)
        with ExitStack() as stack, self._open(stack)[0].read("reading memories") as connection:
            return Memories.read(connection, query if user is None else query.where(M.user_id == user))

    def with_vector(self) -> set[tuple[str, str]]:
        """(user, memory id) of every row of the vector table."""
        with ExitStack() as stack:
            return set(self._open(stack)[1].owners())
