"""The parts of the memory system over one database and one vector table, put together once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.engine import make_url

from recallstack.errors import InputError
from recallstack.ranking.embedders import Embedder, Fittable, resolve_embedder
from recallstack.systems.memory.database import BUSY_S, Database
from recallstack.systems.memory.extraction import Extractor
from recallstack.systems.memory.memories import Now
from recallstack.systems.memory.modes import Modes
from recallstack.systems.memory.pgvectors import PgVectors
from recallstack.systems.memory.recall import Recall
from recallstack.systems.memory.sessions import Sessions
from recallstack.systems.memory.switches import NO_SWITCHES, Switches
from recallstack.systems.memory.sync import BACKFILL_BATCH, Sync, as_embedder
from recallstack.systems.memory.vectors import LocalVectors, VectorTable
from recallstack.systems.memory.writer import Summarise, Writer, joined
from recallstack.systems.session.block import BlockConfig


def wall_clock() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class RecallEvent:
    """One recall for a turn; holds no text. mode: the injection mode in force, `shadow` while degraded.

    recalled, injected: memory ids. status: of the personal memory at that moment.
    """

    user: str
    session: str
    mode: str
    recalled: tuple[str, ...]
    injected: tuple[str, ...]
    status: str


def _silent(_: RecallEvent) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a host sets. Times are milliseconds since 1970.

    inject: memories in a prompt at most. orchestration: the host's own text before each message, or empty.
    summarise, extractor: models, or the rules that need none. tell: gets an event for every recall of a turn.
    bound: candidates of a user that are kept in the process where there is no table.
    """

    modes: Modes = field(default_factory=Modes)
    now: Now = wall_clock
    extractor: Extractor | None = None
    summarise: Summarise = joined
    tell: Callable[[RecallEvent], None] = _silent
    inject: int = 5
    block: BlockConfig = field(default_factory=BlockConfig)
    orchestration: str = ""
    worker_interval_ms: float = 3_600_000.0
    bound: int = 50
    backfill_batch: int = BACKFILL_BATCH
    switches: Switches = NO_SWITCHES


class Services:
    """Database, vector table and embedder, with what reads and writes them."""

    def __init__(
        self, database: Database, vectors: VectorTable, embedder: Embedder | Fittable | str, settings: Settings
    ) -> None:
        """embedder: an object, or a name that `resolve_embedder` knows. Raises InputError for one that is fitted."""
        self.database = database
        self.vectors = vectors
        found = as_embedder(resolve_embedder(embedder) if isinstance(embedder, str) else embedder)
        switches = settings.switches
        self.sync = Sync(database, vectors, found, switches, settings.backfill_batch)
        self.writer = Writer(database, self.sync, settings.now, switches, settings.summarise)
        self.sessions = Sessions(database, settings.now, switches)
        self.recall = Recall(database, vectors, found, switches)

    def close(self) -> None:
        self.database.close()
        self.vectors.close()


def open_stores(
    url: str, vectors: str | None = None, busy_s: float = BUSY_S, schema: str | None = None
) -> tuple[Database, VectorTable]:
    """The database of an address, and its vector table.

    vectors: address of the vector table's own database. None: the same PostgreSQL database; for SQLite the file with
    `.vectors` added to its name (in memory if the memories are). Raises InputError for an address that is none.
    """
    database = Database(url, busy_s, schema)
    if vectors is not None:
        if not database.postgres and make_url(vectors) == database.url and database.url.database:
            raise InputError(f"{database.label}: the vector table needs another SQLite file; name one, or none")
        own = Database(vectors, busy_s, schema)
    elif database.postgres:
        own = Database(url, busy_s, schema)
    else:
        file = database.url.database
        beside = (
            database.url if file in (None, "", ":memory:") else database.url.set(database=f"{Path(str(file))}.vectors")
        )
        own = Database(beside.render_as_string(hide_password=False), busy_s)
    return database, PgVectors(own) if own.postgres else LocalVectors(own)
