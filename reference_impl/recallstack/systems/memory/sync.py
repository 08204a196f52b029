"""From rows to vectors: the debts of a user are paid before a write returns, or stay recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from recallstack.errors import InputError
from recallstack.ranking.embedders import Embedder, Fittable, Vectors
from recallstack.systems.memory.database import Database
from recallstack.systems.memory.errors import StoreError
from recallstack.systems.memory.memories import ACTIVE, M, Memories
from recallstack.systems.memory.model import Stored
from recallstack.systems.memory.schema import MEMORIES
from recallstack.systems.memory.switches import NO_SWITCHES, Switches
from recallstack.systems.memory.vectors import VectorRow, VectorTable, unit_rows

BATCH = 128
"""Rows embedded and saved together."""
BACKFILL_BATCH = 100
"""Legacy: rows of one back-fill (a choice; the document says "limited")."""


class EmbedderError(RuntimeError):
    """The embedder failed; the message names it and what it did, never a text."""


def as_embedder(given: Embedder | Fittable) -> Embedder:
    """Raises InputError for an embedder that is fitted on a corpus: each new memory would change every vector."""
    if isinstance(given, Embedder):
        return given
    raise InputError(
        f"embedder {given.name!r} is fitted on a fixed corpus, and memories change; "
        "use hash3, sentence-transformers:NAME_OR_PATH or a callable"
    )


def embed(embedder: Embedder, texts: Sequence[str], query: bool = False) -> Vectors:
    """float64 `[texts, dimensions]`. Raises EmbedderError for whatever goes wrong in there."""
    try:
        got = np.asarray((embedder.encode_queries if query else embedder.encode_documents)(list(texts)), np.float64)
    except InputError as error:
        raise EmbedderError(str(error)) from error
    except Exception as error:
        raise EmbedderError(f"embedder {embedder.name!r} failed with {type(error).__name__}") from error
    if got.ndim != 2 or len(got) != len(texts) or not got.shape[1]:
        raise EmbedderError(f"embedder {embedder.name!r} returned an array of shape {got.shape} for {len(texts)} texts")
    if not np.isfinite(got).all():
        raise EmbedderError(f"embedder {embedder.name!r} returned a number that is not finite")
    return got


@dataclass(frozen=True, slots=True)
class Synced:
    """debt: rows that still wait for their vector. remark: why, or empty."""

    debt: int = 0
    remark: str = ""


class Sync:
    """Feeds the vector table."""

    def __init__(
        self,
        database: Database,
        vectors: VectorTable,
        embedder: Embedder,
        switches: Switches = NO_SWITCHES,
        backfill_batch: int = BACKFILL_BATCH,
    ) -> None:
        self._database = database
        self._vectors = vectors
        self._embedder = embedder
        self._switches = switches
        self._backfill_batch = backfill_batch
        self._memories = Memories(database, switches)

    def after_write(self, user: str, session: str | None, saved: int) -> Synced:
        """Upsert the active rows of a session (None: of none), and pay what else the user owes.

        Never raises StoreError: the write before it is acknowledged, and what could not be paid is a recorded debt.
        saved: how many rows that write changed, told as the debt where nothing else can be counted.
        """
        try:
            if self._switches.backfill_from_zero:
                return self._backfill()
            with self._database.read("reading memories") as connection:
                rows = self._memories.indebted(connection, user)
                own = {} if session is None else self._memories.revisions_of_session(connection, user, session)
            for row in rows:
                own.pop(row.id, None)
            known = self._vectors.revisions(user, own, self._embedder.name)
            if lost := [one for one, revision in own.items() if known.get(one) != revision]:
                with self._database.read("reading memories") as connection:
                    rows.extend(self._memories.by_id(connection, user, lost).values())
            self._bring(user, rows)
        except (StoreError, EmbedderError) as error:
            if self._switches.vector_failure_fails_write:
                raise
            return self._left(user, saved, str(error))
        return self._left(user, 0, "")

    def repay(self, user: str | None = None) -> Synced:
        """Pay the debts of a user, or of all. What cannot be paid stays recorded."""
        remark = ""
        with self._database.read("reading debts") as connection:
            users = self._memories.debtors(connection) if user is None else (user,)
        for one in users:
            with self._database.read("reading debts") as connection:
                rows = self._memories.indebted(connection, one)
            try:
                self._bring(one, rows)
            except (StoreError, EmbedderError) as error:
                remark = str(error)
                break
        return self._left(user, 0, remark)

    def reconcile(self) -> Synced:
        """Compare every row with its vector, record what differs as debt, and pay.

        For a vector table that was restored, or that another embedder filled. Raises StoreError.
        """
        owners = set(self._vectors.owners())
        with self._database.write("recording debts") as connection:
            rows = self._memories.newest(connection, None, None, active_only=False)
            by_user: dict[str, dict[str, int | None]] = {}
            for row in rows:
                if row.active or (row.user, row.id) in owners:
                    by_user.setdefault(row.user, {})[row.id] = row.revision if row.active else None
            for user, wanted in by_user.items():
                known = self._vectors.revisions(user, wanted, self._embedder.name)
                self._memories.owe(connection, user, [one for one in wanted if known.get(one, 0) != wanted[one]])
        strangers: dict[str, list[str]] = {}
        for user, memory in sorted(owners - {(row.user, row.id) for row in rows}):
            strangers.setdefault(user, []).append(memory)
        for user, ids in strangers.items():
            self._vectors.remove(user, ids)
        return self.repay()

    def _left(self, user: str | None, unknown: int, remark: str) -> Synced:
        try:
            with self._database.read("counting debts") as connection:
                return Synced(self._memories.debt(connection, user), remark)
        except StoreError as error:
            return Synced(unknown, remark or str(error))

    def _bring(self, user: str, rows: list[Stored]) -> None:
        """Make the vectors of these rows what the rows say, in batches."""
        for start in range(0, len(rows), BATCH):
            self._batch(user, rows[start : start + BATCH])

    def _batch(self, user: str, rows: list[Stored]) -> None:
        known = self._vectors.revisions(user, [row.id for row in rows], self._embedder.name)
        changed = [row for row in rows if row.active and known.get(row.id) != row.revision]
        made: list[VectorRow] = []
        if changed:  # the embedder works outside of every transaction: it may be slow
            units = unit_rows(embed(self._embedder, [row.text for row in changed]))
            made = [VectorRow(row.id, row.seq, row.revision, unit) for row, unit in zip(changed, units, strict=True)]
        with self._database.write("paying debts") as connection:
            # Nobody else pays these debts now; a row that changed in the meantime keeps its debt, and who changed
            # it brings its vector.
            now = self._memories.revisions(connection, user, [row.id for row in rows], lock=True)
            same = [row for row in rows if now.get(row.id) == row.revision]
            current = {row.id for row in same}
            self._vectors.upsert(user, self._embedder.name, [row for row in made if row.id in current])
            self._vectors.remove(user, [row.id for row in same if not row.active])
            self._memories.settle(connection, user, current)

    def _backfill(self) -> Synced:
        """Legacy: a limited batch of all users' rows, from the oldest on, and no memory of where it stopped."""
        with self._database.read("reading memories") as connection:
            query = sa.select(MEMORIES).where(ACTIVE).order_by(M.updated_at, M.seq).limit(self._backfill_batch)
            rows = self._memories.read(connection, query)
        for user in dict.fromkeys(row.user for row in rows):
            self._bring(user, [row for row in rows if row.user == user])
        return Synced()
