"""The vector of a query, in time: one request a query, a bounded wait, a cooldown after failure, a small cache."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recallstack.systems.session.clock import Clock, mark_done
from recallstack.systems.session.switches import NO_SWITCHES, Switches

COOLDOWN_MS = 15_000
"""How long a query whose result was empty or failed is not asked again (seed 000, proposed fix 1)."""
CACHE_SIZE = 8
"""Vectors kept; the one that was stored first goes first, as in the public plugin."""
TIMEOUT_MS = 2_000
"""How long an assembly waits for a vector (choice: the source names no figure)."""

Vector = NDArray[np.float64]
Embed = Callable[[str], Awaitable[ArrayLike | None]]
"""A query to its vector, `[d]`. None, an empty or an all-zero vector is an empty result; raising is a failure."""


class _NoVector(Exception):
    """What an embedder gave is no vector."""


def _checked(given: ArrayLike | None) -> Vector:
    """float64 `[d]`. Raises _NoVector."""
    try:
        vector = np.asarray(() if given is None else given, np.float64)
    except (TypeError, ValueError):
        raise _NoVector("the embedder gave something that is not numbers") from None
    if vector.ndim != 1:
        raise _NoVector(f"the embedder gave an array of shape {vector.shape} for one query")
    if not np.isfinite(vector).all():
        raise _NoVector("the embedder gave a number that is not finite")
    if not vector.any():
        raise _NoVector("the embedder gave an empty vector")
    return vector


class QueryVectors:
    """The query vectors of one plugin, shared by its sessions.

    requests: how often `embed` was called. failures: how many of its results were empty or failed.
    last_failure: the last one in one line, without the query's text.
    """

    def __init__(self, embed: Embed, clock: Clock, switches: Switches = NO_SWITCHES) -> None:
        self.clock = clock
        self.requests = 0
        self.failures = 0
        self.last_failure = ""
        self._embed = embed
        self._switches = switches
        self._cache: dict[str, Vector | None] = {}
        self._in_flight: dict[str, asyncio.Task[Vector | None]] = {}
        self._tasks: set[asyncio.Task[Vector | None]] = set()
        self._failed_at: dict[str, float] = {}
        self._late: set[str] = set()
        self._closed = False

    @property
    def in_flight(self) -> int:
        """Requests that have no result yet."""
        return len(self._tasks)

    def __len__(self) -> int:
        return len(self._cache)

    def cached(self, query: str) -> Vector | None:
        """The vector of a query if it is here."""
        return self._cache.get(query)

    def blocked(self, query: str) -> bool:
        """Whether the query is not to be asked now because it failed a moment ago."""
        if query not in self._failed_at or self._switches.cooldown_zero:
            return False
        passed = self.clock.now_ms - self._failed_at[query]
        return passed <= COOLDOWN_MS if self._switches.cooldown_inclusive else passed < COOLDOWN_MS

    def start(self, query: str) -> asyncio.Task[Vector | None] | None:
        """The request for a query, sent unless one is under way.

        None if there is nothing to wait for: a blank query, a vector in the cache, a query that is blocked.
        """
        if self._closed:
            raise RuntimeError("the query vectors are closed")
        if not query.strip() or query in self._cache or self.blocked(query):
            return None
        under_way = self._in_flight.get(query)
        if under_way is not None and not self._switches.no_sharing:
            return under_way
        self.requests += 1
        task = asyncio.ensure_future(self._request(query))
        self._in_flight[query] = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait(self, query: str, timeout_ms: float = TIMEOUT_MS) -> Vector | None:
        """The vector of a query, or None if it is not here after `timeout_ms`; the request goes on then."""
        task = self.start(query)
        if task is None or self._switches.prefetch_not_awaited:
            return self.cached(query)
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.clock.call_later(timeout_ms, lambda: mark_done(over))
        first: list[asyncio.Future[Any]] = [task, over]
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not self._switches.timer_left:
                timer.cancel()
            over.cancel()
        if task.done():
            return None if task.cancelled() else task.result()
        self._late.add(query)
        if self._switches.late_result_cools_down:
            self._failed_at[query] = self.clock.now_ms
        return None

    async def close(self) -> None:
        """Cancel the requests that are under way and wait until they have ended."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _request(self, query: str) -> Vector | None:
        own = asyncio.current_task()
        try:
            vector = _checked(await self._embed(query))
        except Exception as error:  # noqa: BLE001 (whatever an embedder raises is a failed result, and is counted)
            # Of a foreign exception the name alone: its text may quote the query.
            self._fail(query, str(error) if isinstance(error, _NoVector) else type(error).__name__)
            return None
        finally:
            if self._in_flight.get(query) is own:
                del self._in_flight[query]
            was_late = query in self._late
            self._late.discard(query)
        if not (was_late and self._switches.late_result_dropped):
            self._keep(query, vector)
        return vector

    def _fail(self, query: str, why: str) -> None:
        self.failures += 1
        self.last_failure = why
        now = self.clock.now_ms
        self._failed_at = {one: at for one, at in self._failed_at.items() if now - at <= COOLDOWN_MS}
        self._failed_at[query] = now
        if self._switches.failed_result_cached:
            self._keep(query, None)

    def _keep(self, query: str, vector: Vector | None) -> None:
        self._failed_at.pop(query, None)
        self._cache[query] = vector
        if len(self._cache) > CACHE_SIZE and not self._switches.cache_unbounded:
            del self._cache[next(iter(self._cache))]
