"""Runs an async test on a virtual clock, and looks at what it left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from recallstack.systems.session.clock import VirtualClock, settle


def play(scenario: Callable[[VirtualClock], Awaitable[None]], timers_left: int = 0) -> None:
    """Run a scenario; no task may be left, and no timer but `timers_left`."""

    async def main() -> None:
        clock = VirtualClock()
        await scenario(clock)
        await settle()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert clock.pending_timers == timers_left

    asyncio.run(main(), debug=False)
