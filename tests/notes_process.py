"""Processes for the crash tests of notes search: run as a script.

`kills`: serves kills of a sync (see `killing`). `sync`: syncs as often as told. `search`: searches as often as told.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from killing import VM_STEPS, serve_kills, trace_lines
from notes_support import Table, config_of

import recallstack.systems.notes
from recallstack.systems.notes import ChunkRule, Notes
from recallstack.systems.notes import sync as sync_module
from recallstack.systems.notes import vectors as vectors_module
from recallstack.systems.notes.store import Store

PACKAGE = str(Path(recallstack.systems.notes.__file__).parent)


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

    real = Store._prepare

    def prepare(self: Store) -> None:
        self.connection.set_progress_handler(step, VM_STEPS)
        real(self)

    Store._prepare = prepare  # type: ignore[method-assign]
    trace_lines(PACKAGE, step)


def main(what: str, folder: str = "", times: str = "1") -> None:
    if what == "kills":
        serve_kills(work, count_events, lambda command: Path(command["folder"], "events"))
    for _ in range(int(times)):
        if what == "sync":
            work({"folder": folder, "do": "sync"})
        elif what == "search":
            with Notes(config_of(Path(folder)), Table()) as notes:
                assert all(hit.text for hit in notes.search("alpha beta").hits)


if __name__ == "__main__":
    main(*sys.argv[1:])
