"""Time for a session: milliseconds, timers that can be counted, and a clock that moves only when told to.

Asynchrony stays real asyncio (tasks, futures) on both clocks.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
IDLE_LIMIT = 100_000
"""Rounds of the event loop after which tasks that never wait are an error."""


class Timer(Protocol):
    """A callback to come."""

    def cancel(self) -> None:
        """Never call back; without effect once it did."""


class Clock(Protocol):
    """Where a session takes its time from."""

    @property
    def now_ms(self) -> float:
        """Milliseconds; only differences mean anything."""

    @property
    def pending_timers(self) -> int:
        """Timers that have neither fired nor been cancelled."""

    def call_later(self, ms: float, callback: Callable[[], object]) -> Timer:
        """Call back after so many milliseconds."""

    async def sleep(self, ms: float) -> None:
        """Wait for so many milliseconds; a cancelled sleep leaves no timer."""


def mark_done(future: asyncio.Future[None]) -> None:
    """The future is done now, if it was not already."""
    if not future.done():
        future.set_result(None)


async def _sleep(clock: Clock, ms: float) -> None:
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = clock.call_later(ms, lambda: mark_done(over))
    try:
        await over
    finally:
        timer.cancel()


class _RealTimer:
    def __init__(self, clock: RealClock, ms: float, callback: Callable[[], object]) -> None:
        self._clock, self._callback = clock, callback
        self._handle = asyncio.get_running_loop().call_later(ms / 1000, self._fire)
        clock.timers.add(self)

    def _fire(self) -> None:
        self._clock.timers.discard(self)
        self._callback()

    def cancel(self) -> None:
        self._handle.cancel()
        self._clock.timers.discard(self)


class RealClock:
    """The clock of the running event loop. On a loop with virtual time it is a virtual clock too."""

    def __init__(self) -> None:
        self.timers: set[Timer] = set()

    @property
    def now_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1000

    @property
    def pending_timers(self) -> int:
        return len(self.timers)

    def call_later(self, ms: float, callback: Callable[[], object]) -> Timer:
        return _RealTimer(self, ms, callback)

    async def sleep(self, ms: float) -> None:
        await _sleep(self, ms)


class _VirtualTimer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    """A clock that stands still until `advance` or `drive` moves it. Nothing here takes real time.

    It needs asyncio's own event loop, whose queue of ready callbacks tells when all tasks wait; a task that waits
    for a thread or a socket counts as waiting.
    """

    def __init__(self, now_ms: float = 0.0) -> None:
        self._now = now_ms
        self._number = count()
        self._timers: list[tuple[float, int, _VirtualTimer]] = []

    @property
    def now_ms(self) -> float:
        return self._now

    @property
    def pending_timers(self) -> int:
        return sum(timer.callback is not None for _, _, timer in self._timers)

    def call_later(self, ms: float, callback: Callable[[], object]) -> Timer:
        timer = _VirtualTimer(callback)
        heapq.heappush(self._timers, (self._now + max(0.0, ms), next(self._number), timer))
        return timer

    async def sleep(self, ms: float) -> None:
        await _sleep(self, ms)

    async def advance(self, ms: float) -> None:
        """Move on by so many milliseconds.

        Timers that fall due fire in the order of their times (equals: as they were set), and after each the tasks
        run until all of them wait; timers that they set on the way fire too if they fall due in time.
        """
        if ms < 0:
            raise ValueError(f"the clock cannot go back by {-ms} ms")
        end = self._now + ms
        await settle()
        while (due := self._next()) is not None and due <= end:
            await self._fire()
        self._now = end

    async def drive(self, awaitable: Awaitable[T]) -> T:
        """Await something while the clock jumps from timer to timer; what is waited for decides when it stops.

        Raises RuntimeError if it waits for what no timer brings.
        """
        task = asyncio.ensure_future(awaitable)
        try:
            await settle()
            while not task.done():
                if self._next() is None:
                    raise RuntimeError("waiting for something that no timer brings")
                await self._fire()
            return await task
        finally:
            if not task.done():
                task.cancel()
                await settle()

    def _next(self) -> float | None:
        """When the next timer falls due; cancelled ones are dropped."""
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    async def _fire(self) -> None:
        due, _, timer = heapq.heappop(self._timers)
        callback, timer.callback = timer.callback, None
        self._now = max(self._now, due)
        if callback is not None:
            callback()
        await settle()


async def settle() -> None:
    """Let every other task of the running loop go on until all of them wait.

    Raises RuntimeError on a loop that is not asyncio's own, or if tasks never wait.
    """
    ready: Any = getattr(asyncio.get_running_loop(), "_ready", None)
    if ready is None:
        raise RuntimeError("the virtual clock needs asyncio's own event loop")
    for _ in range(IDLE_LIMIT):
        await asyncio.sleep(0)
        if not ready:
            return
    raise RuntimeError(f"tasks still run after {IDLE_LIMIT} rounds of the event loop")
