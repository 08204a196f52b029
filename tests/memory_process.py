"""Processes for the crash tests of the memory system: run as a script.

Reads one JSON command a line, forks a process that does the work and kills itself with SIGKILL at a given event, and
prints how that process ended.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import sqlalchemy as sa
from memory_support import ALL_MODES, START, Letters

import recallstack.memory
from recallstack.memory import database as database_module
from recallstack.memory.model import NewMemory
from recallstack.memory.portal import Portal
from recallstack.memory.services import Settings, open_stores

PACKAGE = str(Path(recallstack.memory.__file__).parent)
VM_STEPS = 20
"""Instructions of SQLite's virtual machine from one event inside a statement to the next."""
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

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            step()
        return trace

    real = database_module._prepare_sqlite

    def prepare(connection: sqlite3.Connection, busy_s: float) -> None:
        connection.set_progress_handler(step, VM_STEPS)
        real(connection, busy_s)

    database_module._prepare_sqlite = prepare
    sys.settrace(trace)


def run_and_die(command: dict[str, Any]) -> None:
    """Do the work, and die at event `command["at"]` (0: never); then write down the number of events."""
    events = 0

    def step() -> None:
        nonlocal events
        events += 1
        if events == command["at"]:
            os.kill(os.getpid(), signal.SIGKILL)

    count_events(step)
    work(command)
    sys.settrace(None)
    Path(command["acks"] + ".events").write_text(str(events))


def main() -> None:
    for line in sys.stdin:
        command = json.loads(line)
        child = os.fork()
        if not child:
            code = 1
            try:
                run_and_die(command)
                code = 0
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
