"""Asynchronous work from code that is not asynchronous: a command, a notebook's cell."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
ENDING = [one for one in (signal.SIGTERM, getattr(signal, "SIGHUP", None)) if one is not None]
"""What a scheduler sends, and what comes when a terminal closes (there is none on Windows)."""


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end from code that is not asynchronous, also inside a running loop (a notebook).

    SIGTERM, or the end of its terminal, ends it as Ctrl-C does: what was started is stopped, then KeyboardInterrupt is
    raised.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_until_ended(work))
    found: list[T] = []
    failed: list[BaseException] = []

    def main() -> None:
        try:
            found.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 (raised again in the caller's thread)
            failed.append(error)

    thread = threading.Thread(target=main)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


async def _until_ended(work: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    asked = False

    def end() -> None:
        nonlocal asked
        asked = True
        if task is not None:
            task.cancel()

    handled = []
    for one in _heeded():
        before = signal.getsignal(one)
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows; another thread
            loop.add_signal_handler(one, end)
            handled.append((one, before))
    try:
        return await work
    except asyncio.CancelledError:
        if asked:
            raise KeyboardInterrupt from None
        raise
    finally:
        for one, before in handled:
            loop.remove_signal_handler(one)
            signal.signal(one, before)  # removal alone would leave the default, and not what stood before


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """What ends a process does what Ctrl-C does, so that what was started is stopped. In the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    before = [(one, signal.signal(one, end)) for one in _heeded()]
    try:
        yield
    finally:
        for one, handler in before:
            signal.signal(one, handler)


def _heeded() -> list[signal.Signals]:
    """Signals that end this process: not those that whoever started it wants ignored (nohup)."""
    return [one for one in ENDING if signal.getsignal(one) is not signal.SIG_IGN]
