"""Asynchronous work from code that is not asynchronous: a command, a notebook's cell."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end from code that is not asynchronous, also inside a running loop (a notebook).

    SIGTERM ends it as Ctrl-C does: what was started is stopped, then KeyboardInterrupt is raised.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_until_sigterm(work))
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


async def _until_sigterm(work: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    asked = False

    def end() -> None:
        nonlocal asked
        asked = True
        if task is not None:
            task.cancel()

    handled = False
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows; another thread
        loop.add_signal_handler(signal.SIGTERM, end)
        handled = True
    try:
        return await work
    except asyncio.CancelledError:
        if asked:
            raise KeyboardInterrupt from None
        raise
    finally:
        if handled:
            loop.remove_signal_handler(signal.SIGTERM)


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does, so that what was started is stopped. Nothing changes outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
