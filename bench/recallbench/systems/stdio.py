"""`stdio:COMMAND`: protocol 1 as JSON lines on standard input and output."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recallbench.datasets.model import Question
from recallbench.systems.faults import Fault, Lost, one_line
from recallbench.systems.process import Child, Lines
from recallbench.systems.settings import StdioSettings
from recallbench.systems.wire import (
    PROTOCOL,
    Hello,
    Reply,
    memory_values,
    question_values,
    read_hello,
    read_ids,
    read_reply,
)
from recallstack.ranking.rows import Memory

_HEAD_ID = re.compile(rb'"id"\s*:\s*(\d+)\s*[,}]')
_CLEAN = "keep standard output for answers (print to standard error, or answer on --stdio-fd 3)"


class StdioConnection:
    """A child process that speaks protocol 1.

    vectors: text -> embedding, what the harness answers to `embed`; a text without one gets null. calls: how often
    the system asked for some. quote: whether messages may quote what came (only where all texts are ours).
    """

    takes_memories = True
    in_a_row = False

    def __init__(
        self,
        command: Sequence[str],
        settings: StdioSettings,
        vectors: Mapping[str, Sequence[float]] | None = None,
        quote: bool = False,
    ) -> None:
        self._command, self._settings, self.quote = command, settings, quote
        self.calls = 0
        self.vectors = dict(vectors or {})
        self.notes: Counter[str] = Counter()
        self.hello: Hello | None = None
        self._child: Child | None = None
        self._lines: Lines | None = None
        self._next = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._given_up: set[int] = set()
        self._stray = ""
        self._dead = ""
        self._reverse: set[asyncio.Task[None]] = set()
        self.left_politely = False

    async def open(self) -> Hello:
        one = self._settings
        self._lines = Lines(one.max_bytes, self._on_line, self._on_long, self._on_end)
        try:
            self._child = await Child.start(
                self._command,
                self._lines,
                folder=Path(one.folder) if one.folder else None,
                env=one.env,
                answers_fd=one.stdio_fd,
            )
        except OSError as error:
            raise Lost(f"could not be started: {error.strerror or error}") from None
        self.hello = read_hello(await self.request("hello", one.start_timeout_s, protocol=PROTOCOL))
        return self.hello

    async def reset(self, corpus: str) -> None:
        await self.request("reset", self._settings.index_timeout_s, corpus=corpus)

    async def index(self, memories: Sequence[Memory]) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        sent = [memory.id for memory in memories]
        limit, block = self._settings.index_timeout_s, self._settings.block
        for start in range(0, len(memories), block):
            rows = [memory_values(memory) for memory in memories[start : start + block]]
            reply = await self.request("index", limit, memories=rows)
            _add(found, read_ids(reply, sent[start : start + block]))
        _add(found, read_ids(await self.request("index_done", limit), sent))
        return found

    async def ask(self, question: Question, top_k: int) -> Reply:
        reply = await self.request(
            self._settings.op,
            self._settings.timeout_s,
            question=question_values(question, "session" in self.able),
            top_k=top_k,
        )
        return read_reply(reply, top_k)

    async def request(self, op: str, seconds: float, /, **fields: Any) -> dict[str, Any]:
        """One request and its reply. Raises Fault for an error reply or garbage, Lost where none comes in time."""
        if self._child is None or self._dead:
            raise Lost(self._dead or "is not running")
        self._next += 1
        number, future = self._next, asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        line = json.dumps({"id": number, "op": op, **fields}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            async with asyncio.timeout(seconds):
                await self._child.write(line)
                reply: dict[str, Any] = await future
        except TimeoutError:
            self._given_up.add(number)
            hint = f"; {self._stray}" if self._stray else ""
            raise Lost(f"gave no reply to {op} in {seconds:g} s{hint}", hung=True) from None
        finally:
            self._waiting.pop(number, None)
        if reply.get("error") is not None:
            raise Fault(f"answered with an error: {one_line(_message(reply['error']))}")
        return reply

    @property
    def able(self) -> frozenset[str]:
        """What the system declared."""
        return self.hello.capabilities if self.hello else frozenset()

    def log_lines(self, count: int) -> list[str]:
        """The last lines of the system's log."""
        return self._lines.log_lines(count) if self._lines else []

    async def close(self, gently: bool = True) -> None:
        child, self._child = self._child, None
        for task in self._reverse:
            task.cancel()
        if child is not None:
            self.left_politely = await child.stop(self._settings.stop_s, gently)

    def _on_line(self, line: bytes) -> None:
        try:
            got = json.loads(line.decode())  # bytes would be guessed to be UTF-16 too
        except (ValueError, RecursionError) as error:
            self._bad(line, f"a line of {len(line)} bytes that is no JSON{self._quoted(line, error)}")
            return
        if not isinstance(got, dict):
            self._bad(line, f"a line that is no JSON object{self._quoted(line)}")
            return
        if "op" in got:
            self._call_back(got)
            return
        number = got.get("id")
        future = self._waiting.get(number) if isinstance(number, int) and not isinstance(number, bool) else None
        if future is not None and not future.done():
            future.set_result(got)
        elif isinstance(number, int) and (number in self._given_up or 0 < number <= self._next):
            late = "late" if number in self._given_up else "second"
            self.notes[f"a {late} reply to a request was dropped"] += 1
        else:
            what = "without an id" if number is None else f"with id {one_line(number, 40)!r}, which was not asked"
            self._bad(b"", f"a reply {what}; echo the id of the request")

    def _bad(self, line: bytes, what: str) -> None:
        """A line that cannot be used: a fault of the one request that waits, of the one it names, or nobody's."""
        named = _HEAD_ID.search(line[:200])
        number = int(named[1]) if named else None
        if number not in self._waiting:
            number = next(iter(self._waiting)) if len(self._waiting) == 1 else None
        if self.hello is None and self._lines is not None and number is not None and not line.lstrip().startswith(b"{"):
            # A banner: nothing was asked yet but who is there.
            self.notes[f"a line before the reply to hello is no JSON; {_CLEAN}"] += 1
            self._stray = f"it wrote a line that is no JSON{self._quoted(line)}"
            return
        future = self._waiting.get(number) if number is not None else None
        if future is not None and not future.done():
            self._given_up.add(number or 0)
            future.set_exception(Fault(f"answered {what}"))
        else:
            self._stray = f"it wrote {what}"
            self.notes[f"a line that answers no request was dropped; {_CLEAN}"] += 1

    def _on_long(self, head: bytes) -> None:
        self._bad(head, f"a line of more than {self._settings.max_bytes} bytes (max_bytes); it was not read")

    def _on_end(self, how: str) -> None:
        self._dead = how
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Lost(how))

    def _quoted(self, line: bytes, error: Exception | None = None) -> str:
        if self.quote:
            return f": {one_line(line.decode('utf-8', 'replace'), 80)!r}; {_CLEAN}"
        where = " (not UTF-8)" if isinstance(error, UnicodeDecodeError) else ""
        where = f" (at character {error.pos})" if isinstance(error, json.JSONDecodeError) else where
        return f"{where}; {_CLEAN}"

    def _call_back(self, got: Mapping[str, Any]) -> None:
        """A call of the system to us: `embed`."""
        self.calls += 1
        texts = got.get("texts")
        if got["op"] != "embed" or not isinstance(texts, list):
            answer: dict[str, Any] = {"error": 'the harness answers {"op": "embed", "texts": […]} and nothing else'}
        elif not self.vectors:
            answer = {"error": "no vectors are given here; use an embedding of your own"}
        else:
            answer = {"vectors": [self.vectors.get(one.strip()) if isinstance(one, str) else None for one in texts]}
        line = json.dumps({"id": got.get("id"), **answer}).encode() + b"\n"
        if self._child is not None:
            task = asyncio.get_running_loop().create_task(self._child.write(line))
            self._reverse.add(task)
            task.add_done_callback(self._reverse.discard)


def _message(error: Any) -> Any:
    return error.get("message", error) if isinstance(error, dict) else error


def _add(found: dict[str, list[str]], more: Mapping[str, Sequence[str]]) -> None:
    for theirs, ours in more.items():
        mine = found.setdefault(theirs, [])
        mine.extend(one for one in ours if one not in mine)
