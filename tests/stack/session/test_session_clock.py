"""The virtual clock under real asyncio, and the real clock with the same protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual import play

from recallstack.systems.session.clock import Clock, RealClock, VirtualClock, settle


def test_timers_fire_in_the_order_of_their_times_and_equals_as_they_were_set() -> None:
    async def scenario(clock: VirtualClock) -> None:
        fired: list[tuple[str, float]] = []

        def later(ms: float, name: str) -> None:
            clock.call_later(ms, lambda: fired.append((name, clock.now_ms)))

        later(20, "c")
        later(10, "a")
        later(10, "b")
        later(31, "never")
        await clock.advance(9)
        assert fired == []
        await clock.advance(21)
        assert fired == [("a", 10.0), ("b", 10.0), ("c", 20.0)]
        assert clock.now_ms == 30.0

    play(scenario, timers_left=1)


def test_a_timer_at_exactly_the_end_fires_and_what_it_sets_counts_from_then() -> None:
    async def scenario(clock: VirtualClock) -> None:
        at: list[float] = []

        async def ticking() -> None:
            for _ in range(4):
                await clock.sleep(10)
                at.append(clock.now_ms)

        task = asyncio.ensure_future(ticking())
        await clock.advance(30)  # sleeps that begin on the way fall due on the way
        assert at == [10.0, 20.0, 30.0]
        await clock.advance(9.5)
        assert len(at) == 3
        await clock.advance(0.5)
        await task
        assert at[-1] == 40.0

    play(scenario)


def test_tasks_run_until_all_of_them_wait_after_each_timer() -> None:
    async def scenario(clock: VirtualClock) -> None:
        seen: list[str] = []
        inbox: asyncio.Queue[str] = asyncio.Queue()

        async def reader() -> None:
            while (item := await inbox.get()) != "end":
                for _ in range(50):  # many rounds of the loop, without time
                    await asyncio.sleep(0)
                seen.append(f"{item} at {clock.now_ms:g}")

        task = asyncio.ensure_future(reader())
        clock.call_later(5, lambda: inbox.put_nowait("x"))
        clock.call_later(6, lambda: inbox.put_nowait("y"))
        clock.call_later(7, lambda: inbox.put_nowait("end"))
        await clock.advance(100)
        await task
        assert seen == ["x at 5", "y at 6"]

    play(scenario)


def test_a_cancelled_timer_never_fires_and_does_not_count() -> None:
    async def scenario(clock: VirtualClock) -> None:
        fired: list[int] = []
        timers = [clock.call_later(10, lambda n=n: fired.append(n)) for n in range(3)]  # type: ignore[misc]
        timers[0].cancel()
        clock.call_later(5, timers[1].cancel)
        assert clock.pending_timers == 3
        await clock.advance(10)
        assert fired == [2]
        timers[2].cancel()  # after it fired: without effect
        assert clock.pending_timers == 0

    play(scenario)


def test_a_cancelled_sleep_leaves_no_timer() -> None:
    async def scenario(clock: VirtualClock) -> None:
        task = asyncio.ensure_future(clock.sleep(10))
        await settle()
        assert clock.pending_timers == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert clock.pending_timers == 0

    play(scenario)


def test_drive_jumps_from_timer_to_timer_and_stops_with_what_it_awaits() -> None:
    async def scenario(clock: VirtualClock) -> None:
        async def work() -> str:
            await clock.sleep(700)
            await clock.sleep(300)
            return "done"

        other = clock.call_later(5_000, lambda: None)
        assert await clock.drive(work()) == "done"
        assert clock.now_ms == 1_000.0
        other.cancel()

    play(scenario)


def test_drive_does_not_hang_on_what_never_comes() -> None:
    async def scenario(clock: VirtualClock) -> None:
        with pytest.raises(RuntimeError, match="no timer brings"):
            await clock.drive(asyncio.get_running_loop().create_future())

    play(scenario)


def test_drive_passes_errors_on() -> None:
    async def scenario(clock: VirtualClock) -> None:
        async def breaks() -> None:
            await clock.sleep(1)
            raise KeyError("x")

        with pytest.raises(KeyError):
            await clock.drive(breaks())

    play(scenario)


def test_tasks_that_never_wait_are_an_error_not_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recallstack.systems.session.clock.IDLE_LIMIT", 50)

    async def scenario(clock: VirtualClock) -> None:
        async def busy() -> None:
            while True:
                await asyncio.sleep(0)

        task = asyncio.ensure_future(busy())
        with pytest.raises(RuntimeError, match="still run after 50 rounds"):
            await clock.advance(1)
        task.cancel()

    play(scenario)


def test_time_never_goes_back() -> None:
    async def scenario(clock: VirtualClock) -> None:
        with pytest.raises(ValueError, match="cannot go back by 3 ms"):
            await clock.advance(-3)
        fired: list[float] = []
        clock.call_later(-5, lambda: fired.append(clock.now_ms))  # in the past: as soon as it moves
        await clock.advance(0)
        assert fired == [0.0]

    play(scenario)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=12),
    st.lists(st.integers(0, 25), min_size=1, max_size=6),
)
@settings(deadline=None, max_examples=100)
def test_in_however_many_strides_the_same_timers_fire_at_the_same_times(
    timers: list[tuple[int, bool]], strides: list[int]
) -> None:
    fired: list[tuple[int, float]] = []

    async def scenario(clock: VirtualClock) -> None:
        for number, (ms, cancelled) in enumerate(timers):
            timer = clock.call_later(ms, lambda n=number: fired.append((n, clock.now_ms)))  # type: ignore[misc]
            if cancelled:
                timer.cancel()
        for stride in strides:
            await clock.advance(stride)
        assert clock.now_ms == sum(strides)

    live = [(ms, number) for number, (ms, cancelled) in enumerate(timers) if not cancelled]
    play(scenario, timers_left=sum(ms > sum(strides) for ms, _ in live))
    assert fired == [(number, float(ms)) for ms, number in sorted(live) if ms <= sum(strides)]


def test_the_real_clock_counts_its_timers_too() -> None:
    async def main() -> None:
        clock: Clock = RealClock()
        fired: list[str] = []
        callbacks: list[Callable[[], object]] = [lambda: fired.append("a"), lambda: fired.append("b")]
        timers = [clock.call_later(3_600_000, one) for one in callbacks]
        assert clock.pending_timers == 2
        timers[0].cancel()
        timers[0].cancel()
        assert clock.pending_timers == 1
        timers[1].cancel()
        before = clock.now_ms
        await clock.sleep(0)
        assert clock.pending_timers == 0
        assert clock.now_ms >= before
        assert fired == []

    asyncio.run(main())


def test_the_real_clock_counts_in_milliseconds_of_the_loop() -> None:
    class Loop(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return 12.5

    async def main() -> float:
        clock = RealClock()
        timer = clock.call_later(2_000, lambda: None)
        (held,) = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        assert held.when() == 14.5
        timer.cancel()
        return clock.now_ms

    with asyncio.Runner(loop_factory=Loop) as runner:
        assert runner.run(main()) == 12_500.0
