"""Talking with a system that is checked: one connection, made anew where it is lost, and a line for each finding."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from recallbench.datasets.model import Question
from recallbench.systems.check_set import FIRST, SET
from recallbench.systems.connection import Connection
from recallbench.systems.external import ExternalSystem
from recallbench.systems.faults import Fault, Lost
from recallbench.systems.matching import Matcher
from recallbench.systems.stdio import StdioConnection
from recallbench.systems.wire import Hello, Reply

TOP_K = 5
LOG_LINES = 5
"""Lines of the system's log that follow a fault which ended it."""
Level = Literal["ok", "warning", "FAIL", "skipped", "log"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the check."""

    level: Level
    name: str
    message: str


class Stop(Exception):
    """Nothing more can be checked."""


class Talk:
    """The connection of a check, and what was found so far. done: given each finding as it comes."""

    def __init__(self, system: ExternalSystem, done: Callable[[Finding], None]) -> None:
        self._system, self._done = system, done
        self._found: list[Finding] = []
        self._connection: Connection | None = None
        self._hello: Hello | None = None
        self._map: dict[str, Any] = {}
        self._told: set[str] = set()

    def _say(self, level: Level, name: str, message: str) -> None:
        finding = Finding(level, name, message)
        self._found.append(finding)
        self._done(finding)

    def _fail(self, name: str, error: Fault | Lost) -> None:
        """A fault, once in full; after one that ended the system, the end of its log."""
        message = f"it {error}"
        before = next((one.name for one in self._found if one.message == message), "")
        self._say("FAIL", name, f"as in {before}" if before else message)
        if isinstance(error, Lost) and not before:
            for line in getattr(self._connection, "log_lines", lambda _: [])(LOG_LINES):
                self._say("log", name, line)

    async def _start(self) -> None:
        try:
            hello = await self._open()
        except (Fault, Lost) as error:
            self._fail("hello", error)
            raise Stop from None
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
            self._fail(name, error)
            if name == "memories":
                raise Stop from None
        except Lost as error:
            self._fail(name, error)
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
            raise Stop from None

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

    def _live(self) -> Connection:
        assert self._connection is not None
        return self._connection

    def _notes(self) -> list[str]:
        """What was odd since the last look, each once."""
        if self._connection is None:
            return []
        notes = [what for what in self._connection.notes if what not in self._told]
        self._told.update(notes)
        return notes
