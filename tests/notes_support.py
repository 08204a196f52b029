"""What the tests of notes search share: trees of files, an embedder that counts, the invariants of an index."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallstack.ranking.tokens import tokenize
from recallstack.systems.notes import Notes, NotesConfig

START_NS = 1_700_000_000_000_000_000


def write(root: Path, files: Mapping[str, str], mtime_ns: int | None = None) -> None:
    """Write files below a root; with `mtime_ns` all of them get that time."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        if mtime_ns is not None:
            os.utime(path, ns=(mtime_ns, mtime_ns))


def config_of(folder: Path, **settings: Any) -> NotesConfig:
    """Notes in `folder/notes`, the index beside them."""
    root = folder / "notes"
    root.mkdir(exist_ok=True)
    return NotesConfig(**{"database": folder / "index.db", "roots": (root,), **settings})


class Table:
    """An embedder by table, which keeps what it was asked; a text that is not in it counts its letters a, b, c."""

    def __init__(self, table: Mapping[str, Sequence[float]] | None = None, name: str = "table") -> None:
        self.name = name
        self.table = dict(table or {})
        self.documents: list[str] = []
        self.queries: list[str] = []

    def _vector(self, text: str) -> Sequence[float]:
        return self.table.get(text) or [float(text.count(letter)) for letter in "abc"]

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float64]:
        self.documents += texts
        return np.array([self._vector(text) for text in texts], np.float64)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float64]:
        self.queries += texts
        return np.array([self._vector(text) for text in texts], np.float64)


def ids(notes: Notes, query: str, session: str | None = None, limit: int = 10) -> list[str]:
    """The ids of a search, best first."""
    return [hit.id for hit in notes.search(query, session, limit).hits]


def holds(database: Path) -> list[tuple[Any, ...]]:
    """What an index says, without its row numbers: file, stamp, rule, line, part, text and vector of each chunk."""
    with closing(sqlite3.connect(database)) as connection:
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return []  # killed before the first transaction
        return connection.execute(
            "SELECT root, file, mtime_ns, size, rule, line, part, text, hex(vector) FROM files "
            "LEFT JOIN chunks ON files.id = file_id LEFT JOIN vectors USING (digest) ORDER BY root, file, line, part"
        ).fetchall()


def check_invariants(database: Path, settled: bool = True) -> None:
    """What holds for an index at any time; `settled`: after a sync that ended, no vector is without its text."""
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return  # killed before the first transaction
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('integrity-check')")
        texts = dict(connection.execute("SELECT id, text FROM chunks"))
        tokens = dict(connection.execute("SELECT rowid, tokens FROM chunks_fts"))
        assert tokens == {number: " ".join(tokenize(text)) for number, text in texts.items()}
        orphans = "SELECT digest FROM vectors WHERE digest NOT IN (SELECT digest FROM chunks)"
        if settled:
            assert connection.execute(orphans).fetchall() == []
        assert connection.execute(f"{orphans} AND digest NOT IN (SELECT digest FROM garbage)").fetchall() == []
    finally:
        connection.close()
