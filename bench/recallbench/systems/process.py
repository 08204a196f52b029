"""A child process that speaks lines, and that is gone when we are done with it, whatever it does.

It runs in a process group of its own. Ending it: its input is closed, then SIGTERM, then SIGKILL to the whole group,
each after a bounded wait. Whatever is left at the exit of the interpreter is killed.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from recallbench.systems.faults import one_line
from recallstack.errors import InputError

KILL_S = 5.0
"""Seconds that the operating system has to take a killed process away."""
LAST_WORDS_S = 0.2
"""Seconds between the exit of a process and the end of its pipe, or the other way round, that are waited for: a
grandchild may hold the pipe open, and a process may close it and go on."""
LOG_BYTES = 8_000
"""The end of standard error that is kept for messages."""
_DUP = "import os,sys; a=sys.argv; os.dup2(int(a[1]),int(a[2])); os.closerange(int(a[2])+1,256); os.execvp(a[3],a[3:])"
"""Puts the answers' pipe at the descriptor that was asked for, then becomes the command."""
_ALIVE: set[int] = set()


@atexit.register
def _kill_all() -> None:
    for pid in tuple(_ALIVE):
        signal_group(pid, hard=True)


def program_of(command: Sequence[str], where: str, folder: Path | None = None) -> None:
    """Raises InputError where the program of a command cannot be found."""
    program = command[0]
    found = shutil.which(program) or (folder and shutil.which(str(folder / program)))
    if not found:
        raise InputError(f"{where}: no program {one_line(program)!r} on this machine; check the command and the PATH")


class Lines(asyncio.SubprocessProtocol):
    """What a child writes, cut into lines. Lines end at \\n only: JSON may hold every other line separator.

    on_line: given each line of the answers, without its end. on_long: given the head of a line that is longer than
    `max_bytes`; the rest of it is dropped. on_end: given why nothing more will come; called once.
    """

    def __init__(
        self,
        max_bytes: int,
        on_line: Callable[[bytes], None],
        on_long: Callable[[bytes], None],
        on_end: Callable[[str], None],
    ) -> None:
        self._max, self._on_line, self._on_long, self._on_end = max_bytes, on_line, on_long, on_end
        self._part, self._dropping = bytearray(), False
        self._eof, self._over = False, False
        self._log: deque[bytes] = deque()
        self._logged = 0
        self.answers_from = 1
        self.exited, self.closed = asyncio.Event(), asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == self.answers_from:
            self.feed(data)
        else:
            self._log.append(data[-LOG_BYTES:])
            self._logged += len(self._log[-1])
            while self._logged - len(self._log[0]) >= LOG_BYTES:
                self._logged -= len(self._log.popleft())

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self.writable.set()  # whoever waits for room finds the pipe closed
        elif fd == self.answers_from:
            self.answers_closed()

    def answers_closed(self) -> None:
        """The pipe of answers has ended; how the process ended is known soon."""
        self._eof = True
        self._ends_soon()

    def process_exited(self) -> None:
        self.exited.set()
        self._ends_soon()

    def _ends_soon(self) -> None:
        if self._eof and self.exited.is_set():
            self.end_of_answers()
        else:
            asyncio.get_running_loop().call_later(LAST_WORDS_S, self.end_of_answers)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def feed(self, data: bytes) -> None:
        """Bytes of the answers, in whatever pieces they come."""
        for place, piece in enumerate(data.split(b"\n")):
            if place:
                self._line_ends()
            if not self._dropping:
                self._part += piece
                if len(self._part) > self._max:
                    self._dropping = True
                    self._on_long(bytes(self._part[:LOG_BYTES]))
                    self._part.clear()

    def _line_ends(self) -> None:
        line, dropped = bytes(self._part), self._dropping
        self._part.clear()
        self._dropping = False
        if not dropped and line.strip():
            self._on_line(line)

    def end_of_answers(self) -> None:
        """Nothing more comes. Says so once."""
        if not self._over:
            self._over = True
            self._line_ends()  # a last line without its end
            self._on_end(self.epitaph())

    def epitaph(self) -> str:
        """How the process ended, with the last line of its log."""
        code = self._transport.get_returncode() if self._transport is not None else None
        if code is None:
            how = "closed its output and went on running"
        elif code < 0:
            with contextlib.suppress(ValueError):
                return self._with_log(f"was ended by {signal.Signals(-code).name}")
            how = f"was ended by signal {-code}"
        else:
            how = f"exited with code {code}"
        return self._with_log(how)

    def _with_log(self, how: str) -> str:
        last = self.log_lines(1)
        return f"{how} (its log ends: {last[0]})" if last else how

    def log_lines(self, count: int) -> list[str]:
        """The last lines of standard error."""
        text = b"".join(self._log).decode("utf-8", "replace")
        lines = [one_line(line) for line in text.splitlines() if line.strip()]
        return lines[-count:]


class Child:
    """A running command. Make it with `start`; `stop` must be called."""

    def __init__(self, transport: asyncio.SubprocessTransport, lines: Lines, answers: asyncio.BaseTransport | None):
        self._transport, self.lines, self._answers = transport, lines, answers
        self.pid = transport.get_pid()
        _ALIVE.add(self.pid)

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        lines: Lines,
        *,
        folder: Path | None = None,
        env: Mapping[str, str] | None = None,
        answers_fd: int = 1,
    ) -> Child:
        """Start a command. answers_fd: the descriptor on which it answers; 1 is standard output.

        Raises OSError where it cannot be started.
        """
        loop = asyncio.get_running_loop()
        more: dict[str, Any] = {"cwd": folder, "env": {**os.environ, **env} if env else None}
        if sys.platform == "win32":
            more["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP
        else:
            more["start_new_session"] = True
        if answers_fd == 1:
            transport, _ = await loop.subprocess_exec(lambda: lines, *command, **more)
            return cls(transport, lines, None)
        lines.answers_from = answers_fd
        reading, writing = os.pipe()
        source = os.fdopen(reading, "rb", buffering=0)
        try:
            answers, _ = await loop.connect_read_pipe(lambda: _Answers(lines), source)
        except BaseException:
            source.close()
            os.close(writing)
            raise
        try:
            launcher = [sys.executable, "-I", "-S", "-c", _DUP, str(writing), str(answers_fd), *command]
            transport, _ = await loop.subprocess_exec(lambda: lines, *launcher, pass_fds=(writing,), **more)
        except BaseException:
            answers.close()
            raise
        finally:
            os.close(writing)
        return cls(transport, lines, answers)

    async def write(self, data: bytes) -> None:
        """Give the child bytes; returns when there is room for more. Does not notice that the child is gone."""
        pipe = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))
        if pipe is not None and not pipe.is_closing():
            pipe.write(data)
            await self.lines.writable.wait()

    async def stop(self, grace_s: float, gently: bool = True) -> bool:
        """End the process and all of its group. Returns whether it went when its input was closed.

        grace_s: seconds between two steps. gently: False sends SIGTERM at once. Can be called again.
        """
        polite = False
        try:
            if gently and not self.lines.exited.is_set():
                pipe = self._transport.get_pipe_transport(0)
                if pipe is not None:
                    pipe.close()
                polite = await self._gone(grace_s)
            else:
                polite = self.lines.exited.is_set()
            if not self.lines.exited.is_set():
                signal_group(self.pid, hard=False)
                await self._gone(grace_s)
        finally:
            # Also after a clean exit: children of the child may have stayed in its group.
            signal_group(self.pid, hard=True)
            if self._answers is not None:
                self._answers.close()
        await self._gone(KILL_S)
        self._transport.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.lines.closed.wait(), KILL_S)
        _ALIVE.discard(self.pid)
        return polite

    async def _gone(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.lines.exited.wait(), seconds)
        return self.lines.exited.is_set()


class _Answers(asyncio.Protocol):
    """The pipe of answers on a descriptor of its own."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def data_received(self, data: bytes) -> None:
        self._lines.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lines.answers_closed()


def signal_group(pid: int, hard: bool) -> None:
    """End the group that a child leads; nothing happens where it is gone."""
    if sys.platform == "win32":
        subprocess.run(
            ["taskkill", "/T", "/PID", str(pid), *(["/F"] if hard else [])], capture_output=True, check=False
        )
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL if hard else signal.SIGTERM)
