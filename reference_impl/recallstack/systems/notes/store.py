"""The index: one SQLite database with files, chunks, their tokens (FTS5) and vectors.

Crash and concurrency: write-ahead log (WAL), a busy timeout, and `BEGIN IMMEDIATE` for every write. Each
transaction leaves an index in which every invariant holds, so that a process may end anywhere, and two may sync at
once. A search reads inside one transaction: it sees one state.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recallstack.errors import InputError
from recallstack.ranking.channels.fts5 import TOKENIZE

BUSY_S = 10.0
"""Seconds that a process waits for another that writes (a choice)."""
APPLICATION_ID = 0x6E6F7465
"""`note`: marks our databases, so that no other is ever written to."""
SCHEMA_VERSION = 1
_SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
  id INTEGER PRIMARY KEY, root TEXT NOT NULL, file TEXT NOT NULL,
  mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL, rule TEXT NOT NULL, UNIQUE (root, file)
);
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY, file_id INTEGER NOT NULL REFERENCES files (id),
  line INTEGER NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, digest BLOB NOT NULL
);
CREATE INDEX chunks_of_file ON chunks (file_id);
CREATE INDEX chunks_by_digest ON chunks (digest);
CREATE TABLE vectors (digest BLOB PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE garbage (digest BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE VIRTUAL TABLE chunks_fts USING fts5 (tokens, tokenize = "{TOKENIZE}");
"""
_TABLES = frozenset({"meta", "files", "chunks", "vectors", "garbage", "chunks_fts"})
_DAMAGED = "it is damaged; delete it and index again, the notes are untouched"
_HINTS = {
    sqlite3.SQLITE_BUSY: "another process is writing to it; run again",
    sqlite3.SQLITE_LOCKED: "another process is writing to it; run again",
    sqlite3.SQLITE_FULL: "the disk is full; make room and run again, nothing is lost",
    sqlite3.SQLITE_NOTADB: "it is no SQLite database; name another file",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_READONLY: "it cannot be written; change its permissions or name another file",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; look at the permissions of its folder",
    sqlite3.SQLITE_PERM: "access is denied; change its permissions or name another file",
    sqlite3.SQLITE_IOERR: "the disk is full, or cannot be read or written; make room or name a file on another",
}


class Store:
    """A connection to the index, made with the file if there is none. For use in one thread."""

    def __init__(self, path: Path, busy_s: float = BUSY_S) -> None:
        self.path = path
        self._busy_s = busy_s
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # It holds the texts of secret notes: for its owner alone. SQLite gives its side files the same mode.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise InputError(f"{path}: the index cannot be opened: {error.strerror}; name another file") from None
        with self.explained():
            self.connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None)
        try:
            with self.explained():
                self._prepare()
        except BaseException:
            self.connection.close()
            raise

    def close(self) -> None:
        self.connection.close()

    def _prepare(self) -> None:
        execute = self.connection.execute
        execute("PRAGMA foreign_keys = ON")
        if self._version() == 0:
            self._make()
        if self._one("PRAGMA application_id") != APPLICATION_ID or self._version() != SCHEMA_VERSION:
            raise InputError(f"{self.path}: not an index of notes of this version; name another file")
        names = self.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if not {name for (name,) in names} >= _TABLES:
            raise self.damaged()
        self._use_log()
        # In the log a commit survives the end of the process; only a power cut may take the last ones back.
        execute("PRAGMA synchronous = NORMAL")

    def _make(self) -> None:
        """Make the tables in a database that holds nothing; a second process finds them made."""
        with self.write():
            if self._version() == 0 and not self._one("SELECT count(*) FROM sqlite_master"):
                for statement in _SCHEMA.split(";\n"):
                    self.connection.execute(statement)
                self.connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self.connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _use_log(self) -> None:
        """Switch to WAL, which the file then keeps. SQLite does not wait here for another process: we do."""
        until = time.monotonic() + self._busy_s
        while True:
            try:
                self.connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.01)
            else:
                return

    def _version(self) -> int:
        return self._one("PRAGMA user_version")

    def _one(self, query: str) -> int:
        return int(self.connection.execute(query).fetchone()[0])

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turns what a user can mend (a lock, a full disk, a damaged file) into an InputError."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code not in _HINTS:
                raise
            raise InputError(f"{self.path}: the index failed: {_HINTS[code]}") from error

    @contextmanager
    def write(self) -> Iterator[None]:
        """One write transaction: all of it or nothing."""
        with self.explained():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def read(self) -> Iterator[None]:
        """One read transaction: everything in it sees the same state."""
        with self.explained():
            self.connection.execute("BEGIN")
            try:
                yield
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    def get(self, key: str) -> str | None:
        """A value of `meta`."""
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def number(self, key: str) -> int | None:
        """A whole number of `meta`. Raises InputError where the value is none."""
        value = self.get(key)
        if value is not None and not value.isdecimal():
            raise self.damaged()
        return None if value is None else int(value)

    def damaged(self) -> InputError:
        """For an index whose tables or values are not what we wrote."""
        return InputError(f"{self.path}: the index failed: {_DAMAGED}")

    def put(self, key: str, value: str) -> None:
        """Set a value of `meta`; inside a write transaction."""
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def drop(self, *keys: str) -> None:
        """Remove values of `meta`; inside a write transaction."""
        self.connection.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key in keys])

    def count(self, table: str) -> int:
        """Rows of a table of ours."""
        return self._one(f"SELECT count(*) FROM {table}")

    def touch(self) -> None:
        """Count up the revision, which tells readers that rows or vectors have changed; inside a transaction."""
        self.put("revision", str((self.number("revision") or 0) + 1))
