"""Rows of memories on both databases: the schema, saving, ids, and what a database cannot hold."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from memory_support import BOTH, START, Clock, Stores, notes, stores_of, table

from recallstack.errors import InputError
from recallstack.systems.memory.database import Database
from recallstack.systems.memory.memories import Memories
from recallstack.systems.memory.model import NewMemory, digest_id, storable
from recallstack.systems.memory.schema import BASE, CANDIDATES, DEBTS, MEMORIES, ensure_candidate_schema, ensure_schema
from recallstack.systems.memory.services import open_stores


@pytest.fixture(params=BOTH)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with stores_of(request.param, tmp_path, request) as one:
        yield one


def test_the_schema_is_made_once_and_keeps_what_is_there(stores: Stores) -> None:
    database, _ = stores.open()
    ensure_schema(database)
    with database.write("test") as connection:
        Memories(database).save(connection, "ann", "s", notes("tea"), START)
    ensure_schema(database)
    ensure_candidate_schema(database)
    ensure_candidate_schema(database)
    with database.read("test") as connection:
        assert set(sa.inspect(connection).get_table_names()) >= {one.name for one in (*BASE, CANDIDATES)}
    assert [row.id for row in table(database, MEMORIES)] == ["tea"]


def test_many_make_the_schema_at_once(stores: Stores) -> None:
    errors: list[BaseException] = []
    ready = threading.Barrier(4)

    def make() -> None:
        try:
            database, vectors = open_stores(stores.url, schema=stores.schema)
            ready.wait()
            ensure_schema(database)
            ensure_candidate_schema(database)
            vectors.ensure()
            database.close()
            vectors.close()
        except BaseException as error:  # noqa: BLE001 (shown by the assertion)
            errors.append(error)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert errors == []


def test_a_table_of_another_version_is_named_and_nothing_is_made(stores: Stores) -> None:
    database, _ = stores.open()
    with database.write("test") as connection:
        connection.exec_driver_sql("CREATE TABLE memory_v2_vector_debts (user_id TEXT)")
    with pytest.raises(InputError, match=r"table memory_v2_vector_debts has no column 'id': it is of another version"):
        ensure_schema(database)
    with database.read("test") as connection:  # the tables made before it are rolled back with it
        assert sa.inspect(connection).get_table_names() == ["memory_v2_vector_debts"]


def test_the_same_memory_again_is_the_same_row(stores: Stores) -> None:
    """It takes the new values, keeps when it was made, is active again, and owes its vector again."""
    database, _ = stores.open()
    ensure_schema(database)
    memories = Memories(database)
    with database.write("test") as connection:
        assert memories.save(connection, "ann", "s1", notes("tea", importance=2), START) == ("tea",)
        memories.hide(connection, "ann", ["tea"], START + 1, archived=True, forgotten=True)
        memories.settle(connection, "ann", ["tea"])
        memories.save(connection, "ann", "s2", notes("tea", importance=5), START + 2)
    [row] = table(database, MEMORIES)
    assert (row.session_id, row.importance, row.archived, row.forgotten) == ("s2", 5, False, False)
    assert (row.created_at, row.updated_at, row.revision) == (START, START + 2, 3)
    assert [(debt.user_id, debt.id) for debt in table(database, DEBTS)] == [("ann", "tea")]


def test_two_users_can_have_the_same_id(stores: Stores) -> None:
    database, _ = stores.open()
    ensure_schema(database)
    memories = Memories(database)
    with database.write("test") as connection:
        memories.save(connection, "ann", "s", [NewMemory(content="ann's", id="x")], START)
        memories.save(connection, "bob", "s", [NewMemory(content="bob's", id="x")], START)
        memories.hide(connection, "bob", ["x"], START, archived=True)
    with database.read("test") as connection:
        assert [row.content for row in memories.newest(connection, "ann", None)] == ["ann's"]
        assert memories.newest(connection, "bob", None) == []


def test_newest_first_and_equals_in_the_order_of_saving(stores: Stores) -> None:
    database, _ = stores.open()
    ensure_schema(database)
    memories = Memories(database)
    with database.write("test") as connection:
        memories.save(connection, "ann", "s", notes("z", "a"), START)
        memories.save(connection, "ann", "s", notes("new"), START + 1)
        memories.save(connection, "ann", "s", notes("gone"), START + 2)
        memories.hide(connection, "ann", ["gone"], START + 3, forgotten=True)
    with database.read("test") as connection:
        assert [row.id for row in memories.newest(connection, "ann", 9)] == ["new", "z", "a"]
        assert [row.id for row in memories.newest(connection, "ann", 2)] == ["new", "z"]
        assert memories.newest(connection, "ann", 9, active_only=False)[0].id == "gone"


def test_more_ids_than_a_statement_takes(stores: Stores) -> None:
    database, _ = stores.open()
    ensure_schema(database)
    memories = Memories(database)
    names = [f"m{number:04}" for number in range(1203)]
    with database.write("test") as connection:
        memories.save(connection, "ann", "s", notes(*names), START)
        memories.hide(connection, "ann", names[1:], START, archived=True)
    with database.read("test") as connection:
        assert [row.id for row in memories.newest(connection, "ann", None)] == ["m0000"]
        assert list(memories.by_id(connection, "ann", names)) == names
        assert memories.debt(connection, "ann") == 1203
        assert memories.debt(connection, "bob") == 0
        assert memories.hidden_debts(connection, "ann") == 1202


@pytest.mark.parametrize("text", ["a\x00b", "half \ud83d", "👩‍👩‍👧 and 中文", "%_'\"\\;--", " \n\t x"])
def test_any_text_is_kept_as_both_databases_can_hold_it(stores: Stores, text: str) -> None:
    database, _ = stores.open()
    ensure_schema(database)
    with database.write("test") as connection:
        Memories(database).save(connection, "ann", "s", [NewMemory(content=text, title=text)], START)
    [row] = table(database, MEMORIES)
    expected = text.replace("\x00", "\ufffd").replace("\ud83d", "\ufffd")
    assert (row.content, row.title) == (expected, expected)


@given(st.text())
def test_storable_changes_only_what_cannot_be_stored(text: str) -> None:
    made = storable(text)
    made.encode()
    assert "\x00" not in made
    assert storable(made) == made
    assert [a for a, b in zip(text, made, strict=True) if a != b] == [a for a in text if a == "\x00"]


def test_ids_do_not_run_into_each_other() -> None:
    assert digest_id("m", "ab", "c") != digest_id("m", "a", "bc")
    assert digest_id("m", "a") != digest_id("c", "a")
    memory = NewMemory(content="tea")
    assert memory.id_for("ann") == NewMemory(content="tea", importance=5).id_for("ann")
    assert memory.id_for("ann") != memory.id_for("bob")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"content": " \n"}, "a memory has no content; give a text"),
        ({"content": "x", "id": ""}, "memory id '' is empty"),
        ({"content": "x", "id": "a\x00"}, "holds what cannot be stored"),
        ({"content": "x", "id": "m1", "type": "fact"}, "memory 'm1': type 'fact'; use one of summary, preference"),
        ({"content": "x", "importance": 0}, "importance is 0; it must be 1 to 5"),
        ({"content": "x", "importance": float("nan")}, "importance is nan"),
    ],
)
def test_a_bad_memory_gets_one_line(values: dict[str, object], says: str) -> None:
    with pytest.raises(InputError) as caught:
        NewMemory(**values)  # type: ignore[arg-type]
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense:hunter2", "the database address cannot be read; use sqlite:///FILE or postgresql://HOST/NAME"),
        ("mysql://h/d", "'mysql' is not supported"),
    ],
)
def test_a_bad_address_gets_one_line(url: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        Database(url)
    assert says in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_password_is_never_shown() -> None:
    pytest.importorskip("psycopg")
    assert "hunter2" not in Database("postgresql://ann:hunter2@h/d").label


def test_a_file_is_its_owners_alone(tmp_path: Path) -> None:
    database, vectors = open_stores(f"sqlite:///{tmp_path / 'm.db'}")
    ensure_schema(database)
    vectors.ensure()
    assert {one.name for one in tmp_path.iterdir()} >= {"m.db", "m.db.vectors"}
    for one in tmp_path.iterdir():
        assert stat.S_IMODE(one.stat().st_mode) == 0o600
    database.close()
    vectors.close()


def test_what_was_answered_is_on_the_disk(tmp_path: Path) -> None:
    """A write-ahead log that is flushed with every commit (2 is FULL in SQLite's manual)."""
    database = Database(f"sqlite:///{tmp_path / 'm.db'}")
    with database.read("test") as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    database.close()


def test_a_store_in_memory_needs_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    database, vectors = open_stores("sqlite://")
    ensure_schema(database)
    vectors.ensure()
    with database.write("test") as connection:
        Memories(database).save(connection, "ann", "s", notes("tea"), Clock()())
    assert len(table(database, MEMORIES)) == 1
    assert list(tmp_path.iterdir()) == []
    database.close()
    vectors.close()


def test_errors_hold_no_text(stores: Stores) -> None:
    database, _ = stores.open()
    with pytest.raises(InputError) as caught, database.write("saving memories") as connection:  # there is no table
        Memories(database).save(connection, "ann", "s", notes("the secret text"), START)
    shown = f"{caught.value} {caught.value.__cause__}"
    assert "a table is missing" in shown
    assert "secret" not in shown
