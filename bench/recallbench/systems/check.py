"""`recallbench systems check SPEC`: tells the author of an adapter what is wrong, one line a check."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from recallbench.systems.check_set import EMPTY, FIRST, ODD, SECOND, VECTORS, WORDED, question
from recallbench.systems.check_talk import Finding, Level, Stop, Talk
from recallbench.systems.external import ExternalSystem
from recallbench.systems.faults import Fault, Lost
from recallbench.systems.loops import run_async
from recallbench.systems.recipe import recipe_of
from recallbench.systems.runfile import RunFile, read_saved
from recallbench.systems.spec import Spec
from recallbench.systems.specs import external
from recallbench.systems.stdio import StdioConnection

ALL = 100
"""Hits that are asked for where all may come back."""


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


class _Check(Talk):
    """The steps, in order. Each gives a level and a message, or raises Fault or Lost; no message is no line."""

    _steady = True

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
        except Stop:
            pass
        finally:
            if self._connection is not None:
                await self._connection.close()
        return self._found

    async def _search(self) -> tuple[Level, str]:
        asked, wanted = WORDED
        reply, ids, nothing = await self._ask(asked)
        if not self._live().takes_memories:
            return "ok", f"hits: {len(reply.hits)}"
        if nothing:
            return "warning", f"{nothing} of {len(reply.hits)} rows match no memory: return id, source_ids or text"
        if wanted not in ids:
            return "warning", f"the question that holds the words of memory {wanted} got {ids or 'nothing'}"
        if len(set(ids)) < len(ids):
            return "warning", f"a memory came back twice: {ids}; it takes a place each time and counts once"
        return (
            "ok",
            f"hits: {len(reply.hits)}; the memory with the words of the question is number {ids.index(wanted) + 1}",
        )

    async def _order(self) -> tuple[Level, str]:
        reply, _, _ = await self._ask(WORDED[0])
        scores = [hit.score for hit in reply.hits]
        known = [score for score in scores if not math.isnan(score)]
        if len(known) < len(scores):
            return "warning", f"{len(scores) - len(known)} of {len(scores)} hits have no score; ties cannot be told"
        if any(a < b for a, b in itertools.pairwise(known)):
            return "warning", "scores do not fall along the list; the order of the list counts"
        return "ok", "scores fall along the list"

    async def _top_k(self) -> tuple[Level, str]:
        one, _, _ = await self._ask(WORDED[0], top_k=1)
        many, _, _ = await self._ask(WORDED[0], top_k=ALL)
        return "ok", f"hits for top_k 1: {len(one.hits)}; for top_k {ALL}: {len(many.hits)}"

    async def _repeats(self) -> tuple[Level, str]:
        lists = {tuple((await self._ask(WORDED[0]))[1]) for _ in range(3)}
        self._steady = len(lists) == 1
        if not self._steady:
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
        other = question("the harbour light", "c-2")
        alone = [(await self._ask(one))[1] for one in (WORDED[0], other)]
        together = await asyncio.gather(self._ask(WORDED[0]), self._ask(other), return_exceptions=True)
        for one in together:
            if isinstance(one, BaseException):
                raise one
        got = [one[1] for one in together if not isinstance(one, BaseException)]
        if not self._steady:
            return "ok", "two questions at once were answered"
        if got != alone:
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
        return "ok", f"calls of embed: {connection.calls - before}"

    async def _second_corpus(self) -> tuple[Level, str]:
        if not self._live().takes_memories:
            return "skipped", ""
        await self._load(SECOND)
        _, ids, _ = await self._ask(WORDED[0], SECOND, top_k=ALL)
        return "ok", f"after reset, only memories of the new corpus came back: {len(ids)}"

    async def _empty_store(self) -> tuple[Level, str]:
        connection = self._live()
        if not connection.takes_memories:
            return "skipped", ""
        await connection.reset(EMPTY)
        await connection.index([])
        reply = await connection.ask(WORDED[0], ALL)
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
