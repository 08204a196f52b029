"""The database of the index: its modes, and every way in which it can fail."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from notes_support import START_NS, check_invariants, config_of, holds, write

from recallstack.errors import InputError
from recallstack.systems.notes import Notes, NotesConfig
from recallstack.systems.notes.store import Store

FILES = {"a.md": "alpha one\n\nalpha two", "b.md": "beta", "sub/c.md": "# Gamma\n- delta"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "notes", FILES, START_NS)
    return tmp_path


def test_the_index_is_for_its_owner_alone(folder: Path) -> None:
    with Notes(config_of(folder, database=folder / "deep/down/index.db")) as notes:
        notes.sync()
        for path in (folder / "deep/down").iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_log_and_foreign_keys(folder: Path) -> None:
    with Notes(config_of(folder)) as notes:
        notes.sync()
    connection = sqlite3.connect(folder / "index.db")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    store = Store(folder / "index.db")
    # 1 is NORMAL: with the log, a power cut cannot damage the file. 0, OFF, could. No kill of a process shows that.
    assert store.connection.execute("PRAGMA synchronous").fetchone() == (1,)
    assert store.connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
    store.close()


def error_of(config: NotesConfig) -> str:
    with pytest.raises(InputError) as caught, Notes(config) as notes:
        notes.sync()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_database_that_is_none_of_ours_is_left_alone(folder: Path) -> None:
    other = folder / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE precious (x)")
    connection.close()
    before = other.read_bytes()
    assert "not an index of notes" in error_of(config_of(folder, database=other))
    assert other.read_bytes() == before
    text = folder / "notes/a.md"
    before = text.read_bytes()
    assert "no SQLite database" in error_of(config_of(folder, database=text))
    assert text.read_bytes() == before


def test_an_index_of_a_later_version_is_left_alone(folder: Path) -> None:
    with Notes(config_of(folder)) as notes:
        notes.sync()
    connection = sqlite3.connect(folder / "index.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert "of this version" in error_of(config_of(folder))


def test_places_where_no_index_can_be(folder: Path) -> None:
    assert "cannot be opened" in error_of(config_of(folder, database=folder / "notes"))
    assert "cannot be opened" in error_of(config_of(folder, database=folder / "notes/a.md/index.db"))


def test_a_damaged_index(folder: Path) -> None:
    with Notes(config_of(folder)) as notes:
        notes.sync()
    path = folder / "index.db"
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    assert "damaged; delete it" in error_of(config_of(folder))


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        *((f"DROP TABLE {table}", "damaged; delete it") for table in ("meta", "vectors", "garbage", "chunks_fts")),
        ("INSERT OR REPLACE INTO meta VALUES ('rule', 'not json')", "a chunking rule that this version does not know"),
        ("INSERT OR REPLACE INTO meta VALUES ('rule', '3')", "a chunking rule that this version does not know"),
    ],
)
def test_an_index_that_somebody_edited(folder: Path, damage: str, told: str) -> None:
    with Notes(config_of(folder)) as notes:
        notes.sync()
    connection = sqlite3.connect(folder / "index.db")
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(damage)
    connection.commit()
    connection.close()
    assert told in error_of(config_of(folder))


def test_a_number_that_is_none(folder: Path) -> None:
    with Notes(config_of(folder)):
        pass
    store = Store(folder / "index.db")
    with store.write():
        store.put("size", "3")
        store.put("broken", "three")
    assert (store.number("size"), store.number("absent")) == (3, None)
    with pytest.raises(InputError, match="damaged; delete it"):
        store.number("broken")
    store.close()


def test_a_revision_that_is_no_number(folder: Path) -> None:
    with Notes(config_of(folder)) as notes:
        notes.sync()
    connection = sqlite3.connect(folder / "index.db")
    connection.execute("UPDATE meta SET value = 'x' WHERE key = 'revision'")
    connection.commit()
    connection.close()
    write(folder / "notes", {"d.md": "epsilon"})
    assert "damaged; delete it" in error_of(config_of(folder))


def test_a_lock_that_is_held_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Notes(config_of(folder)) as notes:
        notes.sync()
    monkeypatch.setattr("recallstack.systems.notes.memory.Store", lambda path: Store(path, busy_s=0))
    other = sqlite3.connect(folder / "index.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    write(folder / "notes", {"d.md": "epsilon"})
    assert "another process is writing" in error_of(config_of(folder))
    other.execute("ROLLBACK")
    other.close()
    with Notes(config_of(folder)) as notes:
        assert notes.sync().added == ("d.md",)


def test_a_full_disk_keeps_what_was_committed(folder: Path) -> None:
    with Notes(config_of(folder)) as notes:
        notes.sync()
        before = holds(folder / "index.db")
        write(folder / "notes", {"d.md": "\n\n".join(f"word{i} {'x' * 800}" for i in range(200))})
        connection = notes._store.connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 5}")  # SQLite's own way to a disk without room
        with pytest.raises(InputError, match="the disk is full; make room"):
            notes.sync()
        assert holds(folder / "index.db") == before
        connection.execute("PRAGMA max_page_count = 1000000")
        assert notes.sync().chunks == 200
    check_invariants(folder / "index.db")


def test_two_processes_that_switch_to_the_log_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # SQLite answers this with SQLITE_BUSY at once, whatever its timeout: seen with six processes and a new file.
    refusals = [2]

    class Busy(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            if "journal_mode" in sql and refusals[0]:
                refusals[0] -= 1
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY
                raise error
            return super().execute(sql, *arguments)

    real, waited = sqlite3.connect, list[float]()
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **more: real(*given, **more, factory=Busy))
    monkeypatch.setattr("recallstack.systems.notes.store.time.sleep", waited.append)
    Store(folder / "index.db").close()
    assert len(waited) == 2
    refusals[0] = 10**9
    with pytest.raises(InputError, match="another process"):
        Store(folder / "other.db", busy_s=-1)
