"""Killed with SIGKILL at random points of write and promote: what was acknowledged is there, nothing is half."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from killing import Killer
from memory_process import BATCHES, CANDIDATES, portal_of
from memory_support import check_invariants, stores_of, table

from recallstack.systems.memory.portal import Portal
from recallstack.systems.memory.schema import CANDIDATES as CANDIDATE_TABLE
from recallstack.systems.memory.schema import DEBTS, MEMORIES, table_exists

SCRIPT = Path(__file__).parents[2] / "memory_process.py"


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    one = Killer(SCRIPT)
    yield one
    one.close()


def state(portal: Portal) -> dict[tuple[str, str], tuple[Any, ...]]:
    """(user, id) -> what the row says."""
    return {
        (row.user_id, row.id): (row.content, row.type, row.archived, row.forgotten)
        for row in table(portal._database, MEMORIES)
    }


def check(command: dict[str, Any], final: dict[tuple[str, str], tuple[Any, ...]], first: bool) -> None:
    """After a kill: what was acknowledged is there, batches are whole, and the next sync pays every debt.

    first: nothing was there before, so that a row of the compacted session is archived if and only if the summary
    is there. (A second run saves these rows again.)
    """
    portal = portal_of(command)
    acks = Path(command["acks"])
    told = [json.loads(line) for line in acks.read_text().splitlines()] if acks.exists() else []
    if not table_exists(portal._database, CANDIDATE_TABLE):
        assert told == []  # killed before there was a schema
    else:
        database, vectors = portal._database, portal._services.vectors
        vectors.ensure()
        check_invariants(database, vectors, "letters")
        rows = state(portal)
        candidates = {row.id: (row.status, row.memory_id) for row in table(database, CANDIDATE_TABLE)}
        for batch in BATCHES:
            assert len([text for text in batch if ("ann", text) in rows]) in (0, len(batch))
        summary = [key for key in final if final[key][1] == "summary"]
        assert [key for key in rows if rows[key][1] == "summary"] in ([], summary)
        compacted = bool(set(summary) & rows.keys())
        for text in BATCHES[2]:
            assert not first or ("ann", text) not in rows or rows["ann", text][2] == compacted
        for what, *of in told:
            if what in ("written", "compacted"):
                assert {("ann", one) for one in of[0]} <= rows.keys()
            elif what == "candidate":
                assert of[0] in candidates
            else:
                assert candidates[of[0]] == ("promoted", of[1][0])
                assert ("bob", of[1][0]) in rows
        assert {key: rows[key] for key in rows if key not in final} == {}
        assert portal.repay().debt == 0
        assert table(database, DEBTS) == []
        check_invariants(database, vectors, "letters")
        active = {key for key, row in rows.items() if not row[2]}
        assert set(vectors.owners()) == active
        for user, one in active:
            assert one in portal.recall(user, "zz abc", 100).ids
    portal.close()


def kill_at_random_points(
    killer: Killer, command_of: Any, points: int, seed: int, settle: Any = lambda command: None
) -> int:
    """Kill `points` times; after each, what `check` says, and the work done again ends where it should.

    Returns how many processes were really killed.
    """
    draw = random.Random(seed)
    with command_of("whole") as command:
        assert killer.run(command, 0) == 0
        total = int(Path(command["acks"] + ".events").read_text())
        portal = portal_of(command)
        final = state(portal)
        portal.close()
    assert len(final) == sum(map(len, BATCHES)) + 1 + len(CANDIDATES)
    killed = 0
    for trial in range(points):
        with command_of(f"trial{trial}") as command:
            for time in range(1 + (trial % 4 == 0)):  # every fourth is killed again, over what the first one left
                ended = killer.run(command, draw.randint(1, total))
                assert ended in (0, -signal.SIGKILL)
                killed += ended == -signal.SIGKILL
                settle(command)
                check(command, final, time == 0)
            assert killer.run(command, 0) == 0
            portal = portal_of(command)
            assert state(portal) == final
            check_invariants(portal._database, portal._services.vectors, "letters")
            portal.close()
    return killed


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_at_two_hundred_random_points(
    killer: Killer, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def command_of(name: str) -> Iterator[dict[str, Any]]:
        folder = tmp_path / name
        folder.mkdir()
        with stores_of("sqlite", folder, request) as stores:
            yield {"url": stores.url, "acks": str(folder / "acks")}

    killed = kill_at_random_points(killer, command_of, 200, seed=3)
    with capsys.disabled():
        print(f"\nmemory write and promote: killed {killed} times with SIGKILL, every invariant held")
    assert killed >= 200


@pytest.mark.slow
@pytest.mark.pg
def test_killed_at_random_points_of_postgres(
    killer: Killer, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    import psycopg

    @contextmanager
    def command_of(name: str) -> Iterator[dict[str, Any]]:
        folder = tmp_path / name
        folder.mkdir()
        with stores_of("postgres", folder, request) as stores:
            yield {"url": stores.url, "schema": stores.schema, "acks": str(folder / "acks")}

    def settle(command: dict[str, Any]) -> None:
        """Until the server has noticed that the client is gone: a COMMIT on its way may still take place."""
        with psycopg.connect(command["url"], autocommit=True) as connection:
            for _ in range(1000):
                [left] = connection.execute(
                    "SELECT count(pg_sleep(0.01)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                    "AND backend_type = 'client backend'"
                ).fetchone() or [0]
                if not left:
                    return
        raise AssertionError("a killed client's session does not end")

    killed = kill_at_random_points(killer, command_of, 12, seed=4, settle=settle)
    with capsys.disabled():
        print(f"\nmemory on PostgreSQL: killed {killed} times with SIGKILL, every invariant held")
    assert killed >= 12
