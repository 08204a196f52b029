"""Asks a system over a connection: corpus by corpus, with bounded restarts, and with what was seen on the way."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recallbench.datasets.model import LabelledSet
from recallbench.systems.base import Match, Observed, SystemRun, TraceRow
from recallbench.systems.connection import Connection
from recallbench.systems.external_trace import losses_of, trace_rows
from recallbench.systems.faults import Fault, Lost
from recallbench.systems.loops import run_async
from recallbench.systems.matching import IdMap, Matcher
from recallbench.systems.settings import Asking
from recallbench.systems.wire import Hello, Reply


class ExternalSystem:
    """A system that is asked over a connection.

    make: makes a new connection, unopened. id_map: the system's ids and ours, for all corpora.
    progress: called with the system's name after each question.
    """

    def __init__(
        self,
        name: str,
        spec: Mapping[str, Any],
        settings: Asking,
        connect: Callable[[], Connection],
        id_map: IdMap | None = None,
    ) -> None:
        self.name, self.spec = name, dict(spec)
        self.settings, self.make, self.id_map = settings, connect, dict(id_map or {})
        self.progress: Callable[[str], None] | None = None

    def run(self, labelled: LabelledSet, depth: int) -> SystemRun:
        """Ask every question. A fault is the fault of its question; nothing that the system does raises."""
        return run_async(_Drive(self, labelled, depth).whole())


class _Refused(Exception):
    """The questions of a corpus cannot be asked."""


@dataclass(slots=True)
class _Answer:
    """What came of one question. lists: the matched ids of each repeat."""

    error: str = ""
    ids: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    matches: tuple[Match, ...] = ()
    lists: list[tuple[str, ...]] = field(default_factory=list)
    latency_ms: float = math.nan
    trace: dict[str, list[str]] = field(default_factory=dict)
    merged: int = 0


Item = tuple[int, int]
"""(repeat, place of the question in the set)."""


class _Drive:
    """One run of one system over one set."""

    def __init__(self, system: ExternalSystem, labelled: LabelledSet, depth: int) -> None:
        self._system, self._labelled, self._depth, self._settings = system, labelled, depth, system.settings
        self._answers = [_Answer() for _ in labelled.questions]
        self._hello: Hello | None = None
        self._connection: Connection | None = None
        self._loaded: str | None = None
        self._matcher: Matcher | None = None
        self._losses, self._ended, self._warm = 0, "", False
        self._notes: Counter[str] = Counter()

    async def whole(self) -> SystemRun:
        """Every corpus that has questions; the connection is closed whatever happens."""
        try:
            for corpus in dict.fromkeys(question.corpus for question in self._labelled.questions):
                await self._corpus(corpus)
        finally:
            await self._drop()
        return self._result()

    async def _corpus(self, corpus: str) -> None:
        places = [i for i, question in enumerate(self._labelled.questions) if question.corpus == corpus]
        waiting: deque[Item] = deque((turn, place) for turn in range(self._settings.repeats) for place in places)
        suspects: deque[Item] = deque()
        while waiting or suspects:
            try:
                await self._ready(corpus)
            except _Refused as error:
                for _, place in (*suspects, *waiting):
                    self._fail(place, str(error))
                return
            if suspects:
                await self._ask(deque([suspects.popleft()]), 1)
                continue
            lost = await self._ask(waiting, self._settings.concurrency)
            suspects.extend(lost)

    async def _ready(self, corpus: str) -> None:
        """A connection that holds this corpus. Raises _Refused where there will be none."""
        while True:
            if self._ended:
                raise _Refused(self._ended)
            try:
                if self._connection is None:
                    await self._open()
                if self._loaded != corpus:
                    await self._load(corpus)
                if not self._warm:
                    await self._warm_up(corpus)
                return
            except Fault as error:
                self._loaded = None
                raise _Refused(f"{error} (corpus {corpus!r} was not taken)") from None
            except Lost as error:
                await self._count_loss(error)

    async def _open(self) -> None:
        connection = self._connection = self._system.make()
        try:
            hello = await connection.open()
            op = getattr(self._settings, "op", "search")
            if op not in hello.capabilities:
                raise Fault(f"declares no capability {op}, which it was to be asked with")
        except (Fault, Lost) as error:
            if self._hello is None:  # it never worked: to start it again would only take time
                await self._drop(gently=not isinstance(error, Lost))
                self._ended = f"was not asked: at the start it {error}"
                raise _Refused(self._ended) from None
            raise Lost(str(error)) from None
        self._hello = hello

    async def _load(self, corpus: str) -> None:
        connection = self._connection
        assert connection is not None
        found: Mapping[str, Sequence[str]] = {}
        if connection.takes_memories:
            self._loaded = None
            await connection.reset(corpus)
            found = await connection.index(self._labelled.corpora[corpus].memories)
        self._matcher = Matcher(self._labelled, corpus, {**self._system.id_map, **found}, connection.takes_memories)
        self._loaded = corpus

    async def _warm_up(self, corpus: str) -> None:
        self._warm = True
        connection = self._connection
        assert connection is not None
        mine = [question for question in self._labelled.questions if question.corpus == corpus]
        for number in range(self._settings.warm_up):
            with contextlib.suppress(Fault):  # the question is asked again, and fails then
                await connection.ask(mine[number % len(mine)], self._depth)

    async def _ask(self, waiting: deque[Item], concurrency: int) -> list[Item]:
        """Ask from the front until none is left or the connection is lost. Returns who may have caused the loss.

        Alone under way, a question has caused the loss, and fails; so does one that hangs, and those beside it are
        asked again. Several that were under way at a death are returned, to be asked one by one.
        """
        connection = self._connection
        lost: list[tuple[Item, Lost]] = []

        async def worker() -> None:
            while waiting and not lost:
                item = waiting.popleft()
                if self._answers[item[1]].error:
                    continue  # a repeat of a question that has failed already
                try:
                    await self._one(connection, item)
                except Lost as error:
                    lost.append((item, error))
                    if error.hung and connection is not None:
                        await connection.close(gently=False)  # those beside it hear of it at once

        await asyncio.gather(*(worker() for _ in range(min(concurrency, len(waiting)))))
        if not lost:
            return []
        known = [one for one in lost if one[1].own]
        culprits = known or (lost if len(lost) == 1 else [])
        for (_, place), error in culprits:
            self._fail(place, str(error))
        innocent = sorted(one[0] for one in lost if one not in culprits)  # in the order of the questions
        await self._count_loss((culprits or lost)[0][1])
        if known:
            waiting.extendleft(reversed(innocent))
            return []
        return innocent

    async def _one(self, connection: Connection | None, item: Item) -> None:
        turn, place = item
        answer, question = self._answers[place], self._labelled.questions[place]
        assert connection is not None
        assert self._matcher is not None
        begun = time.perf_counter()
        try:
            reply = await connection.ask(question, self._depth)
            taken = (time.perf_counter() - begun) * 1000
            self._take(answer, reply, self._matcher, turn, taken)
        except Fault as error:
            self._fail(place, str(error))
        if connection.in_a_row:
            self._losses = 0
        if self._system.progress:
            self._system.progress(self._system.name)

    def _take(self, answer: _Answer, reply: Reply, matcher: Matcher, turn: int, taken: float) -> None:
        ids: list[str] = []
        scores: list[float] = []
        matches: list[Match] = []
        for rank, hit in enumerate(reply.hits, 1):
            mine, match = matcher.ids(hit)
            for name in mine or (hit.id if hit.id is not None else f"?{rank}",):
                ids.append(name)
                scores.append(hit.score)
                matches.append(match)
            answer.merged += turn == 0 and len(mine) > 1
        answer.lists.append(tuple(ids))
        if turn == 0:
            answer.ids, answer.scores, answer.matches = tuple(ids), tuple(scores), tuple(matches)
            answer.latency_ms = taken
            answer.trace = {stage: matcher.known(names) for stage, names in reply.trace.items()}

    def _fail(self, place: int, error: str) -> None:
        answer = self._answers[place]
        answer.error = answer.error or error

    async def _count_loss(self, error: Lost) -> None:
        await self._drop(gently=not error.hung)
        self._losses += 1
        if self._losses > self._settings.restarts:
            times = "once" if self._losses == 1 else f"{self._losses} times"
            bound = f"restarts: {self._settings.restarts}"
            self._ended = f"was not asked any more: it was lost {times} ({bound}), at the last it {error}"

    async def _drop(self, gently: bool = True) -> None:
        connection, self._connection, self._loaded = self._connection, None, None
        if connection is not None:
            await connection.close(gently)
            self._notes.update(connection.notes)

    def _result(self) -> SystemRun:
        answers, questions = self._answers, self._labelled.questions
        failed = np.array([bool(one.error) for one in answers], np.bool_)
        kept = [_Answer(one.error) if one.error else one for one in answers]
        hello = self._hello
        spec = self._system.spec
        if hello is not None:
            spec = {**spec, "name": hello.name, "version": hello.version, "capabilities": sorted(hello.capabilities)}
        trace: list[TraceRow] = []
        losses: list[Mapping[str, str]] = []
        for place, (question, one) in enumerate(zip(questions, kept, strict=True)):
            trace.extend(trace_rows(place, question, one.trace))
            losses.append(losses_of(question, one.trace, one.ids))
        return SystemRun(
            self._system.name,
            spec,
            tuple(one.ids for one in kept),
            tuple(one.scores for one in kept),
            np.array([len(one.ids) for one in kept], np.int32),
            failed,
            tuple(losses) if trace else (),
            tuple(trace),
            hello.capacity if hello else None,
            self._said(),
            Observed(
                tuple(one.error for one in answers),
                tuple(one.matches for one in kept),
                tuple(one.latency_ms for one in kept),
                tuple(len(set(one.lists)) > 1 for one in kept),
                self._settings.repeats,
            ),
        )

    def _said(self) -> tuple[str, ...]:
        notes = [f"{what} ({count}×)" if count > 1 else what for what, count in sorted(self._notes.items())]
        if self._losses and not self._ended:
            notes.append(f"it was started again {self._losses} times" if self._losses > 1 else "it was started again")
        merged = sum(one.merged for one in self._answers if not one.error)
        if merged:
            notes.append(f"{merged} returned rows stand for several memories; those take places one after the other")
        able = self._hello.capabilities if self._hello else None
        asks = any(one.session != type(one.session)() for one in self._labelled.questions)
        if able is not None and asks and "session" not in able:
            notes.append("it does not declare session: it was not told who asks")
        return tuple(notes)
