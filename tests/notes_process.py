"""Processes for the crash tests of notes search: run as a script.

`kills`: reads one JSON command a line, forks a process that does it and kills itself with SIGKILL at a given event,
and prints how that process ended. `sync`: syncs as often as told. `search`: searches as often as told.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from notes_support import Table, config_of

import recallstack.notes
from recallstack.notes import ChunkRule, Notes
from recallstack.notes import sync as sync_module
from recallstack.notes import vectors as vectors_module
from recallstack.notes.store import Store

PACKAGE = str(Path(recallstack.notes.__file__).parent)
VM_STEPS = 20
"""Instructions of SQLite's virtual machine from one event inside a statement to the next."""


def work(command: dict[str, Any]) -> None:
    """One process's work on the notes of a folder. Small batches, so that there are many borders."""
    sync_module.BATCH = 2
    vectors_module.BATCH = 2
    rule = ChunkRule(longest=command["longest"]) if command.get("longest") else None
    with Notes(config_of(Path(command["folder"]), rule=rule), Table()) as notes:
        if command["do"] == "accept":
            notes.accept_spec_change()
        if command["do"] == "rebuild":
            notes.rebuild()
        else:
            notes.sync()


def count_events(step: Callable[[], None]) -> None:
    """Call `step` at every line of the package and every few instructions inside SQLite."""

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            step()
        return trace

    real = Store._prepare

    def prepare(self: Store) -> None:
        self.connection.set_progress_handler(step, VM_STEPS)
        real(self)

    Store._prepare = prepare  # type: ignore[method-assign]
    sys.settrace(trace)


def run_and_die(command: dict[str, Any]) -> None:
    """Do the work, and die at event `command["at"]` (0: never); the last line is the number of events."""
    events = 0

    def step() -> None:
        nonlocal events
        events += 1
        if events == command["at"]:
            os.kill(os.getpid(), signal.SIGKILL)

    count_events(step)
    work(command)
    sys.settrace(None)
    Path(command["folder"], "events").write_text(str(events))


def kills() -> None:
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


def main(what: str, folder: str = "", times: str = "1") -> None:
    if what == "kills":
        kills()
    for _ in range(int(times)):
        if what == "sync":
            work({"folder": folder, "do": "sync"})
        elif what == "search":
            with Notes(config_of(Path(folder)), Table()) as notes:
                assert all(hit.text for hit in notes.search("alpha beta").hits)


if __name__ == "__main__":
    main(*sys.argv[1:])
