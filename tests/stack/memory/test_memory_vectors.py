"""The vector table in process and in pgvector: one contract, the same hits in the same order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_support import BOTH, stores_of
from postgres import Server, schema

from recallstack.errors import InputError
from recallstack.systems.memory import pgvectors
from recallstack.systems.memory.database import Database
from recallstack.systems.memory.services import open_stores
from recallstack.systems.memory.vectors import VectorRow, VectorTable, unit_rows


@pytest.fixture(params=BOTH)
def vectors(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorTable]:
    with stores_of(request.param, tmp_path, request) as stores:
        _, one = stores.open()
        one.ensure()
        yield one


def rows(matrix: Sequence[Sequence[float]], names: str = "abcdefghij", revision: int = 1) -> list[VectorRow]:
    units = unit_rows(np.array(matrix, np.float64))
    return [VectorRow(name, seq, revision, unit) for seq, (name, unit) in enumerate(zip(names, units, strict=False))]


def hits(vectors: VectorTable, query: Sequence[float], depth: int = 9, user: str | None = "ann") -> list[str]:
    return [one for one, _ in vectors.top(user, "e", np.array(query, np.float64), depth).hits]


def test_best_first_by_cosine_whatever_the_length(vectors: VectorTable) -> None:
    """cos: a = 1, b = 0, c = 1/sqrt(2), d = -1; lengths from 1e-30 to 1e30 do not matter."""
    vectors.upsert("ann", "e", rows([[2e30, 0], [0, 1], [1e-30, 1e-30], [-3, 0]]))
    near = vectors.top("ann", "e", np.array([1e-20, 0.0]), 9)
    assert [one for one, _ in near.hits] == ["a", "c", "b", "d"]
    assert [cosine for _, cosine in near.hits] == [1, 0.7071068, 0, -1]
    assert near.remark == ""
    assert hits(vectors, [1, 0], depth=2) == ["a", "c"]


def test_equals_come_in_the_order_of_saving(vectors: VectorTable) -> None:
    vectors.upsert("ann", "e", [VectorRow(name, seq, 1, np.float32([1, 0])) for seq, name in ((3, "a"), (1, "c"))])
    vectors.upsert("ann", "e", [VectorRow("b", 2, 1, np.float32([1, 0]))])
    assert hits(vectors, [1, 0]) == ["c", "b", "a"]
    assert hits(vectors, [1, 0], depth=2) == ["c", "b"]


def test_each_user_has_their_own(vectors: VectorTable) -> None:
    vectors.upsert("ann", "e", rows([[1, 0]]))
    vectors.upsert("bob", "e", rows([[0, 1], [1, 0]]))
    assert hits(vectors, [1, 0]) == ["a"]
    assert hits(vectors, [1, 0], user="bob") == ["b", "a"]
    vectors.remove("bob", ["a"])
    assert vectors.owners() == (("ann", "a"), ("bob", "b"))


def test_an_upsert_takes_the_place_of_what_was_there(vectors: VectorTable) -> None:
    vectors.upsert("ann", "e", rows([[1, 0], [0, 1]]))
    vectors.upsert("ann", "e", rows([[-1, 0]], revision=2))
    assert hits(vectors, [1, 0]) == ["b", "a"]
    assert vectors.revisions("ann", ["a", "b", "c"], "e") == {"a": 2, "b": 1}
    vectors.upsert("ann", "e", [])
    vectors.remove("ann", [])
    assert len(vectors.owners()) == 2


def test_a_text_without_embedding_has_a_revision_and_is_no_hit(vectors: VectorTable) -> None:
    vectors.upsert("ann", "e", rows([[0, 0], [1, 0]]))
    assert vectors.revisions("ann", ["a"], "e") == {"a": 1}
    assert hits(vectors, [1, 0]) == ["b"]
    assert hits(vectors, [0, 0]) == []


def test_vectors_of_another_model_or_dimension_are_never_compared(vectors: VectorTable) -> None:
    vectors.upsert("ann", "e", rows([[1, 0]], "a"))
    vectors.upsert("ann", "old", rows([[1, 0]], "b"))
    vectors.upsert("ann", "e", rows([[1, 0, 0]], "c"))
    near = vectors.top("ann", "e", np.array([1.0, 0.0]), 9)
    assert [one for one, _ in near.hits] == ["a"]
    assert near.remark == "2 vectors are not of 'e' with 2 dimensions: left out until they are made anew"
    assert vectors.revisions("ann", ["a", "b"], "e") == {"a": 1}
    wide = vectors.top("ann", "e", np.ones(7), 9)
    assert wide.hits == ()
    assert "3 vectors are not of 'e' with 7 dimensions" in wide.remark


def test_making_the_table_twice_keeps_it(vectors: VectorTable) -> None:
    vectors.upsert("ann", "e", rows([[1, 0]]))
    vectors.ensure()
    assert hits(vectors, [1, 0]) == ["a"]


def test_sixteen_thousand_dimensions(vectors: VectorTable) -> None:
    """pgvector's most for a stored vector (its README)."""
    matrix = np.random.default_rng(1).normal(size=(2, 16_000))
    vectors.upsert("ann", "e", rows(matrix.tolist()))
    assert hits(vectors, matrix[1].tolist()) == ["b", "a"]


@contextmanager
def pair(folder: Path, server: Server) -> Iterator[tuple[VectorTable, VectorTable]]:
    """The same table of both kinds."""
    with schema(server) as name:
        _, local = open_stores(f"sqlite:///{folder / 'm.db'}")
        _, remote = open_stores(server.address, schema=name)
        local.ensure()
        remote.ensure()
        yield local, remote
        local.close()
        remote.close()


_NUMBER = itertools.count()
NUMBERS = st.one_of(st.integers(-2, 2).map(float), st.floats(-1, 1, width=32))


@pytest.mark.pg
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    matrix=st.integers(1, 4).flatmap(
        lambda d: st.lists(st.lists(NUMBERS, min_size=d, max_size=d), min_size=2, max_size=30)
    ),
    depth=st.integers(1, 12),
    spare=st.integers(0, 3),
)
def test_both_answer_alike(
    matrix: list[list[float]], depth: int, spare: int, both: tuple[VectorTable, VectorTable]
) -> None:
    """Small whole numbers make many equals; a spare of 0 makes the server's own cut decide, if anything lets it."""
    user = f"u{next(_NUMBER)}"
    names = [f"m{number}" for number in range(len(matrix) - 1)]
    units = unit_rows(np.array(matrix[1:], np.float64))
    made = [VectorRow(name, seq, 1, unit) for seq, (name, unit) in enumerate(zip(names, units, strict=True))]
    for one in both:
        one.upsert(user, "e", made)
    query = np.array(matrix[0], np.float64)
    before, pgvectors.SPARE = pgvectors.SPARE, spare
    try:
        local, remote = (one.top(user, "e", query, depth) for one in both)
    finally:
        pgvectors.SPARE = before
    assert local == remote
    assert len(local.hits) == min(depth, sum(unit is not None for unit in units) if np.any(query) else 0)


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[VectorTable, VectorTable]]:
    with pair(tmp_path_factory.mktemp("pair"), request.getfixturevalue("postgres")) as made:
        yield made


@pytest.mark.pg
def test_near_equals_at_the_cut_are_those_of_double_precision(both: tuple[VectorTable, VectorTable]) -> None:
    """400 vectors of 384 dimensions a hair apart: the server's single precision orders them by chance."""
    draw = np.random.default_rng(7)
    query = draw.normal(size=384)
    matrix = query + draw.normal(size=(400, 384)) * 1e-3
    made = [VectorRow(f"m{seq:03}", seq, 1, unit) for seq, unit in enumerate(unit_rows(matrix))]
    for one in both:
        one.upsert("near", "e", made)
    local, remote = (one.top("near", "e", query, 50) for one in both)
    assert local == remote
    assert len(local.hits) == 50


@pytest.mark.pg
def test_pgvector_is_made_by_who_may_and_used_by_who_finds_it(postgres: Server) -> None:
    """A role without rights to make extensions: refused where there is none, served where there is one."""
    postgres.run("CREATE ROLE weak LOGIN", "CREATE DATABASE bare", "CREATE SCHEMA theirs AUTHORIZATION weak")
    try:
        stores = open_stores(postgres.address_of("weak", "bare"))
        with pytest.raises(InputError, match="making the schema failed: it does not allow this; grant the rights"):
            stores[1].ensure()
        served = open_stores(postgres.address_of("weak"), schema="theirs")
        served[1].ensure()
        served[1].upsert("ann", "e", rows([[1, 0]]))
        assert hits(served[1], [1, 0]) == ["a"]
        for one in (*stores, *served):
            one.close()
    finally:
        postgres.run("DROP SCHEMA theirs CASCADE", "DROP DATABASE bare", "DROP ROLE weak")


def test_pgvector_needs_postgres(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'm.db'}")
    with pytest.raises(InputError, match="pgvector needs PostgreSQL; use LocalVectors"):
        pgvectors.PgVectors(database)
    database.close()


def test_an_address_of_its_own_for_the_vectors(tmp_path: Path) -> None:
    database, vectors = open_stores(f"sqlite:///{tmp_path / 'm.db'}", f"sqlite:///{tmp_path / 'v.db'}")
    vectors.ensure()
    assert (tmp_path / "v.db").exists()
    database.close()
    vectors.close()


def test_the_same_file_for_both_is_refused(tmp_path: Path) -> None:
    """Both are written at the same time: one would wait for the other for ever."""
    address = f"sqlite:///{tmp_path / 'm.db'}"
    with pytest.raises(InputError, match="the vector table needs another SQLite file"):
        open_stores(address, address)
