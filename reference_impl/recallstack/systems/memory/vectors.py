"""The vector table behind one interface, and the table that is searched in process."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from recallstack.ranking.channels.vector import VectorIndex
from recallstack.ranking.embedders import Vectors
from recallstack.systems.memory.database import Database, chunks
from recallstack.systems.memory.schema import ensure_tables

STORED = np.dtype("<f4")
"""What a table keeps of a number: single precision, as pgvector does, so that both rank alike."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorRow:
    """The vector of one memory. vector: float32 `[dimensions]` of length 1; None: the text has no embedding.

    revision: of the memory that it was made from. seq: orders equals.
    """

    id: str
    seq: int
    revision: int
    vector: NDArray[np.float32] | None


@dataclass(frozen=True, slots=True)
class Near:
    """hits: (memory id, cosine), best first; cosines rounded to 1e-7, equals in the order of `seq`.

    remark: why rows were left out, or empty.
    """

    hits: tuple[tuple[str, float], ...] = ()
    remark: str = ""


class VectorTable(Protocol):
    """Vectors by user and memory. Every method raises StoreError if the table does not answer."""

    def ensure(self) -> None:
        """Make the table if it is not there."""

    def revisions(self, user: str, ids: Collection[str], embedder: str) -> Mapping[str, int]:
        """memory id -> revision of its vector, as far as it is of this embedder."""

    def upsert(self, user: str, embedder: str, rows: Sequence[VectorRow]) -> None:
        """Put these in place of what is there; all or none."""

    def remove(self, user: str, ids: Collection[str]) -> None:
        """Drop the vectors of these memories; all or none."""

    def top(self, user: str | None, embedder: str, query: NDArray[np.float64], depth: int) -> Near:
        """The nearest memories of a user (None: of all users) to a query vector, float64 `[dimensions]`."""

    def owners(self) -> tuple[tuple[str, str], ...]:
        """(user, memory id) of every vector, in order."""

    def close(self) -> None:
        """Let go of the connections."""


def unit_rows(vectors: Vectors) -> list[NDArray[np.float32] | None]:
    """Each row at length 1 in single precision, None where it is all zero."""
    out: list[NDArray[np.float32] | None] = []
    for row in vectors:
        greatest = float(np.abs(row).max(initial=0.0))
        if greatest == 0:
            out.append(None)
            continue
        scaled = row / greatest  # first, lest huge squares are lost
        out.append((scaled / np.sqrt(scaled @ scaled)).astype(STORED))
    return out


def nearest(
    rows: Sequence[tuple[str, NDArray[np.float32]]], query: NDArray[np.float64], depth: int
) -> list[tuple[str, float]]:
    """The best of some rows (in the order of equals), by exact cosines."""
    if not rows:
        return []
    index = VectorIndex(np.stack([vector for _, vector in rows]).astype(np.float64))
    return [(rows[place][0], cosine) for place, cosine in index.top(query[None, :], depth).to_lists()[0]]


def other_vectors(embedder: str, dimensions: int, others: int) -> str:
    """The remark on vectors that cannot be compared with a query's."""
    return f"{others} vectors are not of {embedder!r} with {dimensions} dimensions: left out until they are made anew"


def vector_columns(kind: Any) -> list[sa.Column[Any]]:
    """The columns of a vector table. kind: the type of the vector itself."""
    return [
        sa.Column("user_id", sa.Text, primary_key=True),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("embedder", sa.Text, nullable=False),
        sa.Column("dimensions", sa.Integer, nullable=False),
        sa.Column("vector", kind, nullable=True),
    ]


_LOCAL = sa.Table("memory_v2_vectors", sa.MetaData(), *vector_columns(sa.LargeBinary))


class TableOfVectors:
    """What both tables share: rows in a relational table, whatever holds the vector itself."""

    def __init__(self, database: Database, table: sa.Table) -> None:
        self.database = database
        self.table = table

    def ensure(self) -> None:
        ensure_tables(self.database, (self.table,))

    def packed(self, vector: NDArray[np.float32]) -> Any:
        """A vector as a value of the column."""
        return vector.tobytes()

    def revisions(self, user: str, ids: Collection[str], embedder: str) -> Mapping[str, int]:
        column = self.table.c
        out: dict[str, int] = {}
        with self.database.read("reading vectors") as connection:
            for part in chunks(ids):
                query = sa.select(column.id, column.revision).where(column.user_id == user, column.id.in_(part))
                found = connection.execute(query.where(column.embedder == embedder))
                out.update((row.id, row.revision) for row in found)
        return out

    def upsert(self, user: str, embedder: str, rows: Sequence[VectorRow]) -> None:
        if not rows:
            return
        values = [
            {
                "user_id": user,
                "id": row.id,
                "seq": row.seq,
                "revision": row.revision,
                "embedder": embedder,
                "dimensions": 0 if row.vector is None else len(row.vector),
                "vector": None if row.vector is None else self.packed(row.vector),
            }
            for row in rows
        ]
        with self.database.write("saving vectors") as connection:
            connection.execute(self.database.upsert(self.table, ("user_id", "id")), values)

    def remove(self, user: str, ids: Collection[str]) -> None:
        if not ids:
            return
        column = self.table.c
        with self.database.write("removing vectors") as connection:
            for part in chunks(ids):
                connection.execute(sa.delete(self.table).where(column.user_id == user, column.id.in_(part)))

    def owners(self) -> tuple[tuple[str, str], ...]:
        column = self.table.c
        with self.database.read("reading vectors") as connection:
            query = sa.select(column.user_id, column.id).order_by(column.user_id, column.id)
            return tuple((row.user_id, row.id) for row in connection.execute(query))

    def of_user(self, user: str | None) -> sa.ColumnElement[bool]:
        """The rows of a user (None: all) that have a vector."""
        column = self.table.c
        return sa.and_(column.vector.is_not(None), sa.true() if user is None else column.user_id == user)

    def comparable(self, embedder: str, dimensions: int) -> sa.ColumnElement[bool]:
        """The rows that a query vector can be compared with."""
        column = self.table.c
        return sa.and_(column.embedder == embedder, column.dimensions == dimensions)

    def close(self) -> None:
        self.database.close()


class LocalVectors(TableOfVectors):
    """Vectors as bytes in a database of their own, searched in process (`VectorIndex`), exactly.

    The database must be another SQLite file than that of the memories: both are written at the same time.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database, _LOCAL)

    def top(self, user: str | None, embedder: str, query: NDArray[np.float64], depth: int) -> Near:
        column = self.table.c
        asked = (
            sa.select(column.id, column.vector, self.comparable(embedder, len(query)).label("fits"))
            .where(self.of_user(user))
            .order_by(column.seq, column.user_id)
        )
        with self.database.read("searching vectors") as connection:
            found = connection.execute(asked).all()
        fitting = [(row.id, np.frombuffer(row.vector, STORED)) for row in found if row.fits]
        others = len(found) - len(fitting)
        remark = other_vectors(embedder, len(query), others) if others else ""
        return Near(tuple(nearest(fitting, query, depth)), remark)
