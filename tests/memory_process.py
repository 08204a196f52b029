"""Processes for the crash tests of the memory system: run as a script.

Serves kills (see `killing`) of writes, compactions and promotions.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import sqlalchemy as sa
from killing import VM_STEPS, serve_kills, trace_lines
from memory_support import ALL_MODES, START, Letters

import recallstack.systems.memory
from recallstack.systems.memory import database as database_module
from recallstack.systems.memory.model import NewMemory
from recallstack.systems.memory.portal import Portal
from recallstack.systems.memory.services import Settings, open_stores

PACKAGE = str(Path(recallstack.systems.memory.__file__).parent)
BATCHES = [["aab", "abb", "acc"], ["bba", "bcc"], ["cca", "ccb", "abc"]]
CANDIDATES = ["aaaa", "bbbb", "cccc"]


def portal_of(command: dict[str, Any]) -> Portal:
    database, vectors = open_stores(command["url"], schema=command.get("schema"))
    if not database.postgres:
        # What a killed process has handed to the system is not lost: here nothing needs to reach the disk.
        for one in (database, vectors.database):  # type: ignore[attr-defined]
            sa.event.listen(one.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
    return Portal(database, vectors, Letters(), Settings(modes=ALL_MODES, now=lambda: START))


def work(command: dict[str, Any]) -> None:
    """Write batches, compact, promote candidates; what is acknowledged is told at once."""
    acknowledged = os.open(command["acks"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(*what: Any) -> None:
        os.write(acknowledged, (json.dumps(what) + "\n").encode())

    portal = portal_of(command)
    portal.start()
    for number, batch in enumerate(BATCHES):
        ids = portal.write("ann", f"s{number}", [NewMemory(content=text, id=text) for text in batch]).ids
        tell("written", ids)
    tell("compacted", portal.compact("ann", "s2").ids)
    for text in CANDIDATES:
        [candidate] = portal.save_candidates("bob", "s", [NewMemory(content=text)]).ids
        tell("candidate", candidate)
        tell("promoted", candidate, portal.promote(candidate, "ann").ids)
    portal.close()
    os.close(acknowledged)


def count_events(step: Callable[[], None]) -> None:
    """Call `step` at every line of the package and every few instructions inside SQLite."""

    real = database_module._prepare_sqlite

    def prepare(connection: sqlite3.Connection, busy_s: float) -> None:
        connection.set_progress_handler(step, VM_STEPS)
        real(connection, busy_s)

    database_module._prepare_sqlite = prepare
    trace_lines(PACKAGE, step)


if __name__ == "__main__":
    serve_kills(work, count_events, lambda command: Path(command["acks"] + ".events"))
