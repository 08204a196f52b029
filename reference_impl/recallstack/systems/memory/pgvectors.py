"""The vector table in PostgreSQL with pgvector (extra `postgres`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from recallstack.errors import InputError
from recallstack.systems.memory.database import Database
from recallstack.systems.memory.schema import ensure_tables
from recallstack.systems.memory.vectors import Near, TableOfVectors, nearest, other_vectors, vector_columns

SPARE = 64
"""Rows fetched beyond the depth, for those that single precision would misplace at the cut."""
ERROR_PER_DIMENSION = 2e-7
"""Bound on what the server's single-precision sums are off, for each dimension (dot product and two lengths)."""
_EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector"


class PgVectors(TableOfVectors):
    """Vectors in a `vector` column, ordered by the server (`<=>`, exact: there is no index that approximates).

    The server sums in single precision: it chooses, and what it chose is ranked again by exact cosines, so that
    ids and order are those of `LocalVectors`.
    """

    def __init__(self, database: Database) -> None:
        if not database.postgres:
            raise InputError(f"{database.label}: pgvector needs PostgreSQL; use LocalVectors or postgresql://HOST/NAME")
        super().__init__(database, sa.Table("memory_v2_vectors", sa.MetaData(), *vector_columns(_vector_type())))

    def ensure(self) -> None:
        with self.database.read("looking for pgvector") as connection:
            there = connection.scalar(sa.text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'"))
        # Who may not make an extension can still use one that is there.
        ensure_tables(self.database, (self.table,), *(() if there else (_EXTENSION,)))

    def packed(self, vector: NDArray[np.float32]) -> Any:
        return vector

    def top(self, user: str | None, embedder: str, query: NDArray[np.float64], depth: int) -> Near:
        column = self.table.c
        fits = self.comparable(embedder, len(query))
        if not np.any(query):
            return Near()
        distance = column.vector.cosine_distance((query / np.abs(query).max()).astype(np.float32)).label("distance")
        asked = sa.select(column.id, column.seq, column.user_id, column.vector, distance).where(
            self.of_user(user), fits
        )
        count = depth + SPARE
        with self.database.read("searching vectors") as connection:
            others = int(
                connection.scalar(
                    sa.select(sa.func.count()).select_from(self.table).where(self.of_user(user), sa.not_(fits))
                )
                or 0
            )
            rows = connection.execute(asked.order_by(distance, column.seq).limit(count)).all()
            hits = self._ranked(rows, query, depth)
            if len(rows) == count:
                # What the server left out lies at or below its last cosine: is that surely below ours?
                error = ERROR_PER_DIMENSION * len(query) + 1e-6
                if len(hits) < depth or hits[-1][1] <= 1 - rows[-1].distance + error:
                    hits = self._ranked(connection.execute(asked).all(), query, depth)
        return Near(tuple(hits), other_vectors(embedder, len(query), others) if others else "")

    @staticmethod
    def _ranked(rows: Any, query: NDArray[np.float64], depth: int) -> list[tuple[str, float]]:
        ordered = sorted(rows, key=lambda row: (row.seq, row.user_id))
        return nearest([(row.id, np.asarray(row.vector, np.float32)) for row in ordered], query, depth)


def _vector_type() -> Any:
    try:
        from pgvector.sqlalchemy import VECTOR
    except ImportError:
        raise InputError('pgvector is not installed; install it with: pip install "recallbench[postgres]"') from None
    return VECTOR()
