"""The lifecycle worker: a timer that sweeps, as long as its switch and the rollout say so."""

from __future__ import annotations

from collections.abc import Callable

from recallstack.systems.memory.errors import StoreError
from recallstack.systems.memory.lifecycle import Lifecycle, Outcome
from recallstack.systems.memory.modes import Modes
from recallstack.systems.memory.switches import NO_SWITCHES, Switches
from recallstack.systems.session.clock import Clock, Timer

INTERVAL_MS = 3_600_000.0
"""Between two sweeps (a choice)."""


class Worker:
    """Sweeps every `interval_ms` on the given clock.

    sweeps: how many have taken place. remark: why the last one failed, or empty; the next one tries again.
    """

    def __init__(
        self,
        lifecycle: Lifecycle,
        modes: Callable[[], Modes],
        clock: Clock,
        interval_ms: float = INTERVAL_MS,
        switches: Switches = NO_SWITCHES,
    ) -> None:
        self._lifecycle = lifecycle
        self._modes = modes
        self._clock = clock
        self._interval_ms = interval_ms
        self._switches = switches
        self._timer: Timer | None = None
        self.sweeps = 0
        self.remark = ""
        self.last: tuple[Outcome, ...] = ()

    @property
    def running(self) -> bool:
        """Whether a timer is set."""
        return self._timer is not None

    def start(self) -> bool:
        """Set the timer if worker switch and rollout allow it; whether it is set. A second start changes nothing."""
        if self._timer is None and self._wanted():
            self._timer = self._clock.call_later(self._interval_ms, self._tick)
        return self.running

    def stop(self) -> None:
        """Clear the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wanted(self) -> bool:
        modes = self._modes()
        on = modes.lifecycle != "off" or self._switches.worker_switch_only or self._switches.timer_when_off
        return modes.worker and on

    def _tick(self) -> None:
        self._timer = None
        if not self._wanted():
            return
        try:
            self.last, self.remark = self._lifecycle.sweep(), ""
        except StoreError as error:
            self.last, self.remark = (), str(error)
        self.sweeps += 1
        self.start()
