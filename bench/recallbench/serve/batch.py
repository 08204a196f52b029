"""Concurrent requests, answered in batches by one worker thread.

While a batch is computed the event loop goes on reading requests; what has gathered by then is the next
batch. So fifty clients cost a few batch calls, and the stack is never entered by two threads at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from recallstack.systems.preretrieval.contract import SearchRequest, SearchResponse

AnswerBatch = Callable[[Sequence[SearchRequest]], Sequence[SearchResponse]]
"""Answers of a batch, one a request, in order."""

MOST = 64
"""Requests in one batch (choice): bounds the memory that a batch takes."""

_Waiting = tuple[SearchRequest, "asyncio.Future[SearchResponse]"]


class Batcher:
    """Gathers requests of one event loop and hands them to `answer_batch`, at most `most` at a time."""

    def __init__(self, answer_batch: AnswerBatch, most: int = MOST) -> None:
        self._answer_batch = answer_batch
        self._most = most
        self._waiting: deque[_Waiting] = deque()
        self._worker: asyncio.Task[None] | None = None

    async def ask(self, request: SearchRequest) -> SearchResponse:
        """The answer to one request. Raises what `answer_batch` raises for it."""
        future: asyncio.Future[SearchResponse] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
            failed = await self._run(batch)
            if failed is not None and len(batch) > 1:
                # One bad request must not fail its neighbours: each is asked again alone.
                for one in batch:
                    _refuse([one], await self._run([one]))
            else:
                _refuse(batch, failed)

    async def _run(self, batch: Sequence[_Waiting]) -> BaseException | None:
        """Answer a batch; what went wrong, if anything did (then nobody has an answer)."""
        requests = [request for request, _ in batch]
        call = asyncio.ensure_future(asyncio.to_thread(self._answer_batch, requests))
        await asyncio.wait([call])
        error = call.exception()
        if error is not None:
            return error
        answers = call.result()
        if len(answers) != len(batch):
            return RuntimeError(f"{len(answers)} answers for {len(batch)} requests")
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():  # a client that has gone took its future with it
                future.set_result(answer)
        return None


def _refuse(batch: Sequence[_Waiting], error: BaseException | None) -> None:
    for _, future in batch:
        if error is not None and not future.done():
            future.set_exception(error)
