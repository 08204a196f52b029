"""`recallbench systems check SPEC`: tells the author of an adapter what is wrong, one line a check."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from recallbench.datasets.model import Question
from recallbench.systems.check_set import EMPTY, FIRST, ODD, SECOND, SET, VECTORS, WORDED, question
from recallbench.systems.connection import Connection
from recallbench.systems.external import ExternalSystem, run_async
from recallbench.systems.faults import Fault, Lost
from recallbench.systems.matching import Matcher
from recallbench.systems.recipe import recipe_of
from recallbench.systems.runfile import RunFile, read_saved
from recallbench.systems.specs import Spec, external
from recallbench.systems.stdio import StdioConnection
from recallbench.systems.wire import Hello, Reply

TOP_K = 5
Level = Literal["ok", "warning", "FAIL", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the check."""

    level: Level
    name: str
    message: str


def check_system(one: Spec, overrides: dict[str, Any], done: Callable[[Finding], None]) -> list[Finding]:
    """All findings, each also given to `done` as it comes. Raises InputError for a bad spec or settings."""
    if one.kind == "recipe":
        recipe = recipe_of(one.rest)
        found = [Finding("ok", "recipe", f"{recipe.name}: runs in process, nothing to speak with")]
    else:
        system = external(one, overrides)
        if isinstance(system, RunFile):
            found = [_saved(system.path)]
        else:
            assert isinstance(system, ExternalSystem)
            return run_async(_Check(system, done).whole())
    for finding in found:
        done(finding)
    return found


def _saved(path: Path) -> Finding:
    lists = read_saved(path)
    rows = sum(map(len, lists.values()))
    return Finding("ok", "file", f"{len(lists)} questions, {rows} rows; every score is a finite number")


class _Stop(Exception):
    """Nothing more can be checked."""


class _Check:
    """One check of one system: steps in order over one connection, which is made anew where a step loses it."""

    def __init__(self, system: ExternalSystem, done: Callable[[Finding], None]) -> None:
        self._system, self._done = system, done
        self._found: list[Finding] = []
        self._connection: Connection | None = None
        self._hello: Hello | None = None
        self._map: dict[str, Any] = {}
        self._latency: list[float] = []

    async def whole(self) -> list[Finding]:
        """All steps. The connection is closed whatever happens."""
        steps: list[tuple[str, Callable[[], Awaitable[tuple[Level, str]]]]] = [
            ("memories", lambda: self._load(FIRST)),
            ("search", self._search),
            ("order", self._order),
            ("top_k", self._top_k),
            ("repeats", self._repeats),
            ("odd texts", self._odd_texts),
            ("two at once", self._two_at_once),
            ("unknown operation", self._unknown_operation),
            ("session", self._session),
            ("vectors", self._vectors),
            ("second corpus", self._second_corpus),
            ("empty store", self._empty_store),
        ]
        try:
            await self._start()
            for name, step in steps:
                await self._step(name, step)
            await self._leave()
        except _Stop:
            pass
        finally:
            if self._connection is not None:
                await self._connection.close()
        return self._found

    def _say(self, level: Level, name: str, message: str) -> None:
        finding = Finding(level, name, message)
        self._found.append(finding)
        self._done(finding)

    async def _start(self) -> None:
        try:
            hello = await self._open()
        except (Fault, Lost) as error:
            self._say("FAIL", "hello", f"it {error}{self._log()}")
            raise _Stop from None
        able = ", ".join(sorted(hello.capabilities))
        capacity = f", capacity {hello.capacity}" if hello.capacity else ""
        self._say("ok", "hello", f"{hello.name} {hello.version}".rstrip() + f": {able}{capacity}")
        for note in self._notes():
            self._say("FAIL", "standard output", note)

    async def _open(self) -> Hello:
        connection = self._connection = self._system.make()
        if isinstance(connection, StdioConnection):
            connection.quote = True  # all texts are ours
        self._hello = await connection.open()
        op = getattr(self._system.settings, "op", "search")
        if op not in self._hello.capabilities:
            raise Fault(f"declares no capability {op}; ask with --op, or declare it")
        return self._hello

    async def _step(self, name: str, step: Callable[[], Awaitable[tuple[Level, str]]]) -> None:
        try:
            level, message = await step()
            if message:
                self._say(level, name, message)
        except Fault as error:
            self._say("FAIL", name, f"it {error}")
            if name == "memories":
                raise _Stop from None
        except Lost as error:
            self._say("FAIL", name, f"it {error}{self._log()}")
            await self._again(error.hung)
        for note in self._notes():
            self._say("warning", name, note)

    async def _again(self, hung: bool) -> None:
        """A new connection with the first corpus, after one was lost."""
        try:
            if self._connection is not None:
                await self._connection.close(gently=not hung)
            await self._open()
            await self._load(FIRST)
        except (Fault, Lost) as error:
            self._say("skipped", "the rest", f"it could not be started again: it {error}")
            raise _Stop from None

    async def _load(self, corpus: str) -> tuple[Level, str]:
        connection = self._live()
        memories = SET.corpora[corpus].memories
        if not connection.takes_memories:
            return "skipped", "it has its memories already: only the shape of its answers is checked"
        await connection.reset(corpus)
        self._map = dict(await connection.index(memories))
        mapped = f", {len(self._map)} ids of its own" if self._map else ""
        return "ok", f"{len(memories)} taken{mapped}"

    async def _ask(self, asked: Question, corpus: str = FIRST, top_k: int = TOP_K) -> tuple[Reply, list[str], int]:
        """(the answer, the ids it stands for, rows that match nothing)."""
        connection = self._live()
        reply = await connection.ask(asked, top_k)
        if not connection.takes_memories:
            return reply, [hit.id or hit.text or "" for hit in reply.hits], 0
        matcher = Matcher(SET, corpus, {**self._system.id_map, **self._map})
        matched = [matcher.ids(hit)[0] for hit in reply.hits]
        return reply, [one for ids in matched for one in ids], sum(not ids for ids in matched)

    async def _search(self) -> tuple[Level, str]:
        asked, wanted = WORDED
        reply, ids, nothing = await self._ask(asked)
        if not self._live().takes_memories:
            return "ok", f"{len(reply.hits)} hits"
        if nothing:
            return "warning", f"{nothing} of {len(reply.hits)} rows match no memory: return id, source_ids or text"
        if wanted not in ids:
            return "warning", f"the question that holds the words of memory {wanted} got {ids or 'nothing'}"
        if len(set(ids)) < len(ids):
            return "warning", f"a memory came back twice: {ids}; it takes a place each time and counts once"
        return "ok", f"{len(reply.hits)} hits; the memory with the words of the question is number {ids.index(wanted) + 1}"

    async def _order(self) -> tuple[Level, str]:
        reply, _, _ = await self._ask(WORDED[0])
        scores = [hit.score for hit in reply.hits]
        known = [score for score in scores if not math.isnan(score)]
        if len(known) < len(scores):
            return "warning", f"{len(scores) - len(known)} of {len(scores)} hits have no score; ties cannot be told"
        if any(a < b for a, b in zip(known, known[1:], strict=False)):
            return "warning", "scores do not fall along the list; the order of the list counts"
        return "ok", "scores fall along the list"

    async def _top_k(self) -> tuple[Level, str]:
        one, _, _ = await self._ask(WORDED[0], top_k=1)
        many, _, _ = await self._ask(WORDED[0], top_k=100)
        return "ok", f"{len(one.hits)} hits for top_k 1, {len(many.hits)} for top_k 100"

    async def _repeats(self) -> tuple[Level, str]:
        lists = {tuple((await self._ask(WORDED[0]))[1]) for _ in range(3)}
        if len(lists) > 1:
            return "warning", f"one question, asked three times, got {len(lists)} different lists"
        return "ok", "one question, asked three times, got the same list"

    async def _odd_texts(self) -> tuple[Level, str]:
        for what, text in ODD.items():
            try:
                await self._ask(question(text))
            except Fault as error:
                raise Fault(f"{error} (a question with {what})") from None
            except Lost as error:
                raise Lost(f"{error} (a question with {what})", hung=error.hung) from None
        return "ok", f"questions with {', '.join(ODD)}"

    async def _two_at_once(self) -> tuple[Level, str]:
        import asyncio

        other = question("the harbour light", "c-2")
        alone = [(await self._ask(one))[1] for one in (WORDED[0], other)]
        together = await asyncio.gather(self._ask(WORDED[0]), self._ask(other), return_exceptions=True)
        for one in together:
            if isinstance(one, BaseException):
                raise one
        if [one[1] for one in together if not isinstance(one, BaseException)] != alone:
            return "FAIL", "two questions at once got other answers than one after the other"
        return "ok", "two questions at once got the answers of each alone"

    async def _unknown_operation(self) -> tuple[Level, str]:
        connection = self._live()
        if not isinstance(connection, StdioConnection):
            return "skipped", ""
        try:
            await connection.request("no-such-operation", self._system.settings.timeout_s)
        except Fault:
            return "ok", "answered with an error"
        except Lost as error:
            raise Lost(f'{error}; answer {{"id": …, "error": "…"}}', hung=error.hung) from None
        return "warning", 'an operation that does not exist got no "error"'

    async def _session(self) -> tuple[Level, str]:
        if self._hello is None or "session" not in self._hello.capabilities:
            return "skipped", ""
        await self._ask(question(WORDED[0].text, session=True))
        return "ok", "a question with agent_scope, workspace_scope and channel"

    async def _vectors(self) -> tuple[Level, str]:
        connection = self._live()
        if not isinstance(connection, StdioConnection) or "vectors" not in connection.able:
            return "skipped", ""
        connection.vectors = dict(VECTORS)
        before = connection.calls
        await self._load(FIRST)
        await self._ask(WORDED[0])
        connection.vectors = {}
        if connection.calls == before:
            return "FAIL", "declared, and embed was not called, neither at index nor at search"
        return "ok", f"embed was called {connection.calls - before} times"

    async def _second_corpus(self) -> tuple[Level, str]:
        if not self._live().takes_memories:
            return "skipped", ""
        await self._load(SECOND)
        _, ids, _ = await self._ask(WORDED[0], SECOND)
        return "ok", f"after reset, only memories of the new corpus came back ({len(ids)})"

    async def _empty_store(self) -> tuple[Level, str]:
        connection = self._live()
        if not connection.takes_memories:
            return "skipped", ""
        await connection.reset(EMPTY)
        await connection.index([])
        reply = await connection.ask(WORDED[0], TOP_K)
        if reply.hits:
            return "FAIL", f"after reset and no memory, {len(reply.hits)} hits came back"
        return "ok", "after reset and no memory, nothing came back"

    async def _leave(self) -> None:
        connection = self._live()
        await connection.close()
        if isinstance(connection, StdioConnection):
            seconds = getattr(self._system.settings, "stop_s", 0.0)
            if connection.left_politely:
                self._say("ok", "leaving", "it left when its input was closed")
            else:
                self._say("warning", "leaving", f"it did not leave in {seconds:g} s when its input was closed; killed")

    def _live(self) -> Connection:
        assert self._connection is not None
        return self._connection

    def _notes(self) -> list[str]:
        """What was odd since the last look."""
        if self._connection is None:
            return []
        notes = [f"{what} ({count}×)" if count > 1 else what for what, count in self._connection.notes.items()]
        self._connection.notes.clear()
        return notes

    def _log(self) -> str:
        """The last lines of the system's log, for a fault that ended it."""
        lines = getattr(self._connection, "log_lines", lambda _: [])(3)
        return f"; its log: {' | '.join(lines)}" if lines else ""
