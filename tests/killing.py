"""Work that is killed with SIGKILL at an event of its own: what the crash tests of both stores share.

A test holds a `Killer`; the script that it starts calls `serve_kills` with its work. That process forks one process
for each command (importing once), and each child kills itself at the event that the command names.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

VM_STEPS = 20
"""Instructions of SQLite's virtual machine from one event inside a statement to the next."""
Command = dict[str, Any]
Step = Callable[[], None]


class Killer:
    """A process that forks one process for each command and tells how it ended."""

    def __init__(self, script: Path, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(script), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, command: Command, at: int) -> int:
        """The exit code of the process, negative for a signal. at: the event at which it dies; 0: never."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**command, "at": at}) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def trace_lines(package: str, step: Step) -> None:
    """Call `step` at every line of the package from now on."""

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(package):
            return None
        if event == "line":
            step()
        return trace

    sys.settrace(trace)


def serve_kills(
    work: Callable[[Command], None], count_events: Callable[[Step], None], events_of: Callable[[Command], Path]
) -> None:
    """Read one JSON command a line; a fork does it, and dies at event `command["at"]`.

    count_events: makes the work call a step at each of its events. events_of: where the number of events is written
    by a process that came to its end.
    """
    for line in sys.stdin:
        command = json.loads(line)
        child = os.fork()
        if not child:
            code = 1
            try:
                _run_and_die(command, work, count_events, events_of(command))
                code = 0
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run_and_die(
    command: Command, work: Callable[[Command], None], count_events: Callable[[Step], None], file: Path
) -> None:
    events = 0

    def step() -> None:
        nonlocal events
        events += 1
        if events == command["at"]:
            os.kill(os.getpid(), signal.SIGKILL)

    count_events(step)
    work(command)
    sys.settrace(None)
    file.write_text(str(events))
