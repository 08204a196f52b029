"""Virtual time under real asyncio: an event loop whose clock jumps to the next timer when nothing else is ready.

`asyncio.sleep`, `asyncio.timeout` and `loop.call_later` work as they are and take no time, in the order in which
they would have happened. Time is kept in seconds; a test or scenario that waits for what never comes gets an error
instead of a hang.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from contextvars import Context
from typing import TypeVarTuple, Unpack

Arguments = TypeVarTuple("Arguments")

START_S = 1_000.0
"""The clock at the start of a loop: not 0, so that a time that was never set is no time of the run."""


class NothingToWaitFor(RuntimeError):
    """Every task waits, and there is no timer and no socket that could wake one."""


class _Jumping(selectors.SelectSelector):
    """A selector that waits for sockets only as long as something is ready, and moves the clock instead."""

    now = START_S

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise NothingToWaitFor("all tasks wait for something that never comes")
        if not ready and timeout is not None and timeout > 0:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on virtual time. `pending_timers` tells what a run left behind."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        self._timers: list[asyncio.TimerHandle] = []
        super().__init__(self._jumping)

    def time(self) -> float:
        """Seconds; moves only while the loop is idle."""
        return self._jumping.now

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = super().call_at(when, callback, *args, context=context)
        self._timers = [*self.pending_timers(), handle]
        return handle

    def pending_timers(self) -> list[asyncio.TimerHandle]:
        """Timers that have neither fired nor been cancelled."""
        return [one for one in self._timers if not one.cancelled() and one.when() > self.time()]
