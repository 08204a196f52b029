"""The vector of a query in time: hand-made sequences from the seed (point 1, root cause B, and the proposed fix)."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from virtual import play

from recallstack.systems.session.clock import VirtualClock, settle
from recallstack.systems.session.prefetch import CACHE_SIZE, COOLDOWN_MS, QueryVectors
from recallstack.systems.session.switches import Switches

FIXED = Switches()
LEGACY = Switches(prefetch_not_awaited=True)


class Embedder:
    """Answers each query after `latency` ms with what `answers` says at that time; [1, 2] by default."""

    def __init__(self, clock: VirtualClock, latency: float = 100) -> None:
        self.clock, self.latency = clock, latency
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, float]] = []

    async def __call__(self, query: str) -> ArrayLike | None:
        self.asked.append((query, self.clock.now_ms))
        if self.latency:
            await self.clock.sleep(self.latency)
        answer = self.answers.get(query, [1.0, 2.0])
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]


def numbers(vector: Any) -> list[float] | None:
    return None if vector is None else [float(one) for one in vector]


def test_callers_of_one_query_share_one_request() -> None:
    async def scenario(clock: VirtualClock) -> None:
        for switches, requests in ((FIXED, 1), (Switches(no_sharing=True), 3)):
            embed = Embedder(clock)
            vectors = QueryVectors(embed, clock, switches)
            waits = [asyncio.ensure_future(vectors.wait("q", 1_000)) for _ in range(2)]
            await clock.advance(50)
            waits.append(asyncio.ensure_future(vectors.wait("q", 1_000)))
            await clock.advance(100)
            assert [numbers(await one) for one in waits] == [[1.0, 2.0]] * 3
            assert (vectors.requests, len(embed.asked)) == (requests, requests)
            assert numbers(await vectors.wait("q", 0)) == [1.0, 2.0]  # from the cache
            assert vectors.requests == requests
            await vectors.close()

    play(scenario)


def test_queries_do_not_share_with_each_other() -> None:
    async def scenario(clock: VirtualClock) -> None:
        embed = Embedder(clock)
        embed.answers = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
        vectors = QueryVectors(embed, clock)
        both = asyncio.gather(vectors.wait("a", 500), vectors.wait("b", 500))
        await clock.advance(100)
        assert [numbers(one) for one in await both] == [[1.0, 0.0], [0.0, 1.0]]
        await vectors.close()

    play(scenario)


@pytest.mark.parametrize(
    "failure",
    [None, [], [0.0, 0.0], [[1.0]], [float("nan")], ["x"], {"a": 1}, ConnectionError("no route"), ValueError("secret")],
)
def test_an_empty_or_failed_result_blocks_the_query_for_15_seconds(failure: Any) -> None:
    """At 14,999 ms after the result it is blocked, at exactly 15,000 it may be asked again (design)."""

    async def scenario(clock: VirtualClock) -> None:
        embed = Embedder(clock, latency=0)
        embed.answers = {"q": failure}
        vectors = QueryVectors(embed, clock)
        assert await clock.drive(vectors.wait("q", 1_000)) is None
        assert (vectors.requests, vectors.failures) == (1, 1)
        assert "secret" not in vectors.last_failure
        embed.answers = {}
        await clock.advance(14_999)
        assert vectors.blocked("q")
        assert await vectors.wait("q", 1_000) is None
        assert numbers(await clock.drive(vectors.wait("another", 1_000))) == [1.0, 2.0]
        await clock.advance(1)
        assert numbers(await clock.drive(vectors.wait("q", 1_000))) == [1.0, 2.0]
        assert [query for query, _ in embed.asked] == ["q", "another", "q"]
        await vectors.close()

    play(scenario)


def test_the_cooldown_begins_with_the_result_not_with_the_request() -> None:
    async def scenario(clock: VirtualClock) -> None:
        embed = Embedder(clock, latency=400)
        embed.answers = {"q": []}
        vectors = QueryVectors(embed, clock)
        await clock.drive(vectors.wait("q", 1_000))
        await clock.advance(15_000 - 1)
        assert vectors.blocked("q")  # 15,399 ms after the request
        await clock.advance(1)
        assert not vectors.blocked("q")
        await vectors.close()

    play(scenario)


@pytest.mark.parametrize(
    ("mutant", "after_ms", "right", "wrong"),
    [
        ("cooldown_zero", 0, 1, 2),
        ("cooldown_inclusive", COOLDOWN_MS, 2, 1),
        ("failed_result_cached", COOLDOWN_MS, 2, 1),
    ],
)
def test_each_mutant_of_the_cooldown_is_seen(mutant: str, after_ms: float, right: int, wrong: int) -> None:
    async def scenario(clock: VirtualClock) -> None:
        for switches, requests in ((FIXED, right), (Switches(**{mutant: True}), wrong)):
            embed = Embedder(clock, latency=0)
            embed.answers = {"q": None}
            vectors = QueryVectors(embed, clock, switches)
            await vectors.wait("q", 1_000)
            await clock.advance(after_ms)
            await vectors.wait("q", 1_000)
            assert vectors.requests == requests
            await vectors.close()

    play(scenario)


def test_a_wait_ends_at_its_timeout_and_the_late_result_is_cached_without_cooldown() -> None:
    async def scenario(clock: VirtualClock) -> None:
        vectors = QueryVectors(Embedder(clock, latency=500), clock)
        wait = asyncio.ensure_future(vectors.wait("q", 200))
        await clock.advance(199)
        assert not wait.done()
        await clock.advance(1)
        assert await wait is None
        assert clock.pending_timers == 1  # the embedder's own; the wait's is gone
        assert not vectors.blocked("q")
        await clock.advance(300)
        assert numbers(vectors.cached("q")) == [1.0, 2.0]
        assert (vectors.requests, vectors.failures) == (1, 0)
        await vectors.close()

    play(scenario)


def test_a_second_wait_goes_on_with_the_request_that_the_first_gave_up() -> None:
    async def scenario(clock: VirtualClock) -> None:
        vectors = QueryVectors(Embedder(clock, latency=500), clock)
        assert await clock.drive(vectors.wait("q", 200)) is None
        second = asyncio.ensure_future(vectors.wait("q", 1_000))
        await clock.advance(300)
        assert numbers(await second) == [1.0, 2.0]
        assert vectors.requests == 1
        await vectors.close()

    play(scenario)


def test_each_mutant_of_the_late_result_is_seen() -> None:
    async def scenario(clock: VirtualClock) -> None:
        async def second_wait(switches: Switches) -> tuple[list[float] | None, float]:
            """What a second wait brings that begins at 200 ms, and when."""
            vectors = QueryVectors(Embedder(clock, latency=500), clock, switches)
            begun = clock.now_ms
            await clock.drive(vectors.wait("q", 200))
            got = await clock.drive(vectors.wait("q", 1_000))
            took = clock.now_ms - begun
            await clock.advance(1_000)
            assert (vectors.cached("q") is None) == switches.late_result_dropped
            await vectors.close()
            return numbers(got), took

        assert await second_wait(FIXED) == ([1.0, 2.0], 500.0)
        assert await second_wait(Switches(late_result_cools_down=True)) == (None, 200.0)
        await second_wait(Switches(late_result_dropped=True))

    play(scenario)


@pytest.mark.parametrize("answer", [[1.0, 2.0], [], ConnectionError("x")])
def test_a_wait_clears_its_timer_whatever_comes(answer: Any) -> None:
    async def scenario(clock: VirtualClock) -> None:
        embed = Embedder(clock)
        embed.answers = {"q": answer}
        vectors = QueryVectors(embed, clock)
        await clock.drive(vectors.wait("q", 60_000))
        assert clock.pending_timers == 0
        await vectors.close()

    play(scenario)


def test_a_cancelled_wait_clears_its_timer_and_leaves_the_request_to_the_others() -> None:
    async def scenario(clock: VirtualClock) -> None:
        vectors = QueryVectors(Embedder(clock), clock)
        given_up, waiting = (asyncio.ensure_future(vectors.wait("q", 1_000)) for _ in range(2))
        await clock.advance(10)
        given_up.cancel()
        await settle()
        assert given_up.cancelled()
        await clock.advance(90)
        assert numbers(await waiting) == [1.0, 2.0]
        await vectors.close()

    play(scenario)


def test_the_mutant_that_leaves_its_timer_is_seen() -> None:
    async def scenario(clock: VirtualClock) -> None:
        vectors = QueryVectors(Embedder(clock), clock, Switches(timer_left=True))
        await clock.drive(vectors.wait("q", 60_000))
        assert clock.pending_timers == 1
        await clock.advance(60_000)
        await vectors.close()

    play(scenario)


def test_eight_vectors_are_kept_and_the_first_stored_goes_first() -> None:
    async def scenario(clock: VirtualClock) -> None:
        for switches, kept in ((FIXED, 8), (Switches(cache_unbounded=True), 9)):
            embed = Embedder(clock, latency=0)
            vectors = QueryVectors(embed, clock, switches)
            for number in range(8):
                await vectors.wait(f"q{number}", 100)
            await vectors.wait("q0", 100)  # read again: it is still the first stored
            await vectors.wait("q8", 100)
            assert len(vectors) == kept
            assert [vectors.cached(f"q{n}") is not None for n in range(9)] == [kept == 9] + [True] * 8
            await vectors.close()
        assert CACHE_SIZE == 8

    play(scenario)


def test_legacy_reads_the_cache_on_the_next_line() -> None:
    """Root cause B: every new question misses on step 1; a later step finds the vector."""

    async def scenario(clock: VirtualClock) -> None:
        embed = Embedder(clock, latency=0)  # even an embedder that answers at once is too late
        vectors = QueryVectors(embed, clock, LEGACY)
        assert await vectors.wait("q", 60_000) is None
        assert clock.pending_timers == 0
        await clock.advance(0)
        assert numbers(await vectors.wait("q", 60_000)) == [1.0, 2.0]
        assert await vectors.wait("the next question", 60_000) is None
        assert vectors.requests == 2
        await vectors.close()

    play(scenario)


@pytest.mark.parametrize("query", ["", "  \n"])
def test_a_blank_query_is_never_sent(query: str) -> None:
    async def scenario(clock: VirtualClock) -> None:
        vectors = QueryVectors(Embedder(clock), clock)
        assert await vectors.wait(query, 1_000) is None
        assert vectors.requests == 0
        await vectors.close()

    play(scenario)


def test_closing_cancels_what_is_under_way() -> None:
    async def scenario(clock: VirtualClock) -> None:
        vectors = QueryVectors(Embedder(clock, latency=9_000), clock)
        wait = asyncio.ensure_future(vectors.wait("q", 60_000))
        await clock.advance(5)
        assert vectors.in_flight == 1
        await vectors.close()
        assert vectors.in_flight == 0
        assert await wait is None
        assert vectors.cached("q") is None
        await vectors.close()
        with pytest.raises(RuntimeError, match="closed"):
            await vectors.wait("q", 1)

    play(scenario)


def test_an_embedder_that_raises_before_it_awaits_is_a_failure_too() -> None:
    async def scenario(clock: VirtualClock) -> None:
        def broken(query: str) -> Any:
            raise OSError("no model")

        vectors = QueryVectors(broken, clock)
        assert await vectors.wait("q", 100) is None
        assert (vectors.failures, vectors.last_failure) == (1, "OSError")
        await vectors.close()

    play(scenario)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "the embedder gave an empty vector"),
        ([[1.0, 2.0]], "the embedder gave an array of shape (1, 2) for one query"),
        ([np.inf], "the embedder gave a number that is not finite"),
        ("words", "the embedder gave something that is not numbers"),
        (KeyError("the query's text"), "KeyError"),
    ],
)
def test_a_failure_says_why_without_the_text(answer: Any, says: str) -> None:
    async def scenario(clock: VirtualClock) -> None:
        embed = Embedder(clock)
        embed.answers = {"q": answer}
        vectors = QueryVectors(embed, clock)
        await clock.drive(vectors.wait("q", 500))
        assert vectors.last_failure == says
        await vectors.close()

    play(scenario)


def test_old_failures_are_forgotten() -> None:
    """The table of failures is bounded by those of the last 15 s, however many queries fail."""

    async def scenario(clock: VirtualClock) -> None:
        embed = Embedder(clock, latency=0)
        vectors = QueryVectors(embed, clock)
        for number in range(50):
            embed.answers[f"q{number}"] = None
            await vectors.wait(f"q{number}", 100)
            await clock.advance(1_000)
        assert len(vectors._failed_at) <= 16
        await vectors.close()

    play(scenario)
