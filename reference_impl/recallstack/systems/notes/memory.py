"""A memory over a folder of Markdown files: the one class that a host needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from recallstack.errors import InputError
from recallstack.ranking.embedders import Embedder, Fittable
from recallstack.systems.notes.config import NotesConfig
from recallstack.systems.notes.prompt import Prompt, Section, make_section, with_section
from recallstack.systems.notes.recall import Found, recall
from recallstack.systems.notes.rule import IN_FORCE, WANTED, accept_rule, settle_rule
from recallstack.systems.notes.scanner import scan
from recallstack.systems.notes.sensitivity import Channel, SessionMap, read_session_map, visible
from recallstack.systems.notes.store import Store
from recallstack.systems.notes.sync import SyncReport, compare, known_files, sync_files
from recallstack.systems.notes.vectors import (
    DIMENSIONS,
    EMBEDDER,
    SemanticList,
    as_embedder,
    embed_missing,
    instruction_of,
    texts_without_vector,
)

UNKNOWN_SESSION = "no recall: the session map names no channel for this session"
BROKEN_MAP = "no recall: the session map cannot be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What the index holds, and what a sync would do. For the owner of the notes.

    files, chunks: in the index. vectors: texts that have one. without_vector: texts that have none.
    embedder, dimensions: of the vectors, None if there are none. rule, rule_waiting: signatures.
    new, changed, gone: files that a sync would add, cut again, forget. warnings: of the scan.
    """

    files: int
    chunks: int
    vectors: int
    without_vector: int
    embedder: str | None
    dimensions: int | None
    rule: str
    rule_waiting: str | None
    new: int
    changed: int
    gone: int
    warnings: tuple[str, ...]


class Notes:
    """Markdown files as memory, through an index that follows them.

    A file is cut again when its mtime or its size has changed; a change that keeps both is seen by `rebuild` only.
    embedder: None searches by keywords only. clock: seconds, for `sync_if_due`. Every method raises InputError, one
    line, for what a user can mend: a database that is locked, damaged or another's, a full disk, a broken glob. A
    sync that ends in one, or is killed, leaves a sound index, and the next one completes it. Use an object in one
    thread; several processes may use one index.
    """

    def __init__(
        self,
        config: NotesConfig,
        embedder: Embedder | Fittable | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self._embedder = as_embedder(embedder)
        self._clock = clock
        self._synced_at: float | None = None
        self._store = Store(config.database)
        self._semantic = None
        if self._embedder is not None:
            self._semantic = SemanticList(self._store, self._embedder, config.switches)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; the index stays."""
        self._store.close()

    def sync(self) -> SyncReport:
        """Scan the roots, cut what changed, forget what is gone, embed what has no vector."""
        started = self._clock()
        report = sync_files(self._store, self.config)
        if self._embedder is not None:
            switches = self.config.switches
            prefix = instruction_of(self.config.query_instruction, switches)
            embedded, warning = embed_missing(
                self._store, self._embedder, prefix if switches.instruction_on_documents else "", switches
            )
            report = replace(report, embedded=embedded, warnings=(*report.warnings, *filter(None, [warning])))
        self._synced_at = started
        return report

    def sync_if_due(self) -> SyncReport | None:
        """`sync` the first time and whenever `sync_interval_s` have gone by since the last one; else None."""
        if self._synced_at is not None:
            waited = self._clock() - self._synced_at
            if waited < self.config.sync_interval_s or self.config.switches.no_rescan:
                return None
        return self.sync()

    def accept_spec_change(self) -> None:
        """Consent to the changed chunking rule: the next sync cuts every file by it."""
        with self._store.explained():
            accept_rule(self._store, self.config.rule)

    def rebuild(self) -> SyncReport:
        """Empty the index and make it anew from the files, by the configured rule and with this embedder."""
        with self._store.write():
            for table in ("chunks_fts", "chunks", "files", "vectors", "garbage"):
                self._store.connection.execute(f"DELETE FROM {table}")
            self._store.drop(IN_FORCE, WANTED, EMBEDDER, DIMENSIONS)
            self._store.touch()
        return self.sync()

    def search(self, query: str, session: str | None = None, limit: int = 10) -> Found:
        """The search tool: at most `limit` chunks that the session may see, verbatim, with file and line."""
        if limit < 1:
            raise InputError(f"notes: limit is {limit}; it must be at least 1")
        switches = self.config.switches
        try:
            channel = self._channel(session)
        except InputError:
            return Found(remarks=(BROKEN_MAP,))
        levels = visible(channel, switches)
        if not levels:
            return Found(remarks=(UNKNOWN_SESSION,))
        return recall(self._store, self._semantic, self.config, query, levels, limit)

    def section(self, query: str, session: str | None = None) -> Section | None:
        """Auto-recall for a request: the section of the system prompt, or None if nothing was found."""
        config = self.config
        items = 2 * config.candidates if config.switches.items_ignored else config.recall_items
        return make_section(self.search(query, session, items).hits, config.recall_chars, config.switches)

    def assemble(self, prompt: Prompt, query: str, session: str | None = None) -> Prompt:
        """A prompt with the section of this request in place of an older one; its messages stay as they are."""
        return with_section(prompt, self.section(query, session), self.config.switches)

    def status(self) -> Status:
        """What the index holds and what a sync would do; reads no note."""
        store, config = self._store, self.config
        with store.explained():
            rule, _ = settle_rule(store, config.rule, config.switches)
        found = scan(config.roots, config.exclude)
        with store.read():
            difference = compare(known_files(store), found, rule)
            return Status(
                files=store.count("files"),
                chunks=store.count("chunks"),
                vectors=store.count("vectors"),
                without_vector=texts_without_vector(store),
                embedder=store.get(EMBEDDER),
                dimensions=store.number(DIMENSIONS),
                rule=rule.signature,
                rule_waiting=store.get(WANTED),
                new=len(difference.new),
                changed=len(difference.changed),
                gone=len(difference.gone),
                warnings=(*found.warnings, *self._map_warnings()),
            )

    def _map_warnings(self) -> tuple[str, ...]:
        try:
            self._channel(None)
        except InputError as error:
            return (f"{error}; until then nobody recalls anything",)
        return ()

    def _channel(self, session: str | None) -> Channel | None:
        """The channel of a session. Raises InputError for a session map that cannot be read."""
        given, switches = self.config.session_map, self.config.switches
        if isinstance(given, Path):
            try:
                given = read_session_map(given)
            except InputError:
                if not switches.broken_map_is_no_map:
                    raise
                given = None
        if given is None or (switches.no_entries_is_no_map and not given):
            return "owner"
        return SessionMap(given, self.config.owners).channel(session, switches)
