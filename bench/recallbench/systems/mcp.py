"""`mcp:COMMAND` and `mcp+http:URL`: an MCP server's search tool, and its save tool where one is named (extra `mcp`)."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recallbench.datasets.model import Question
from recallbench.systems.faults import Fault, Lost, one_line
from recallbench.systems.mcp_shape import Shape, Tool, rows_of, saved_id, shape_of, value_of
from recallbench.systems.settings import McpHttpSettings, McpSettings
from recallbench.systems.wire import Hello, Reply, read_hits
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory

if TYPE_CHECKING:
    from mcp import Client

TOOLS = 1_000
"""Most tools that are listed (choice)."""
CLOSE_S = 10.0
"""Seconds that the SDK has to close a session beyond what the process takes to end."""


def mcp_command(command: Sequence[str], settings: McpSettings) -> Callable[[], McpConnection]:
    """How connections to a server that is started are made. Raises InputError without the extra."""
    _require()
    return lambda: McpConnection(settings, command=command)


def mcp_address(url: str, settings: McpHttpSettings) -> Callable[[], McpConnection]:
    """How connections to a server that runs are made (streamable HTTP). Raises InputError without the extra."""
    _require()
    return lambda: McpConnection(settings, url=url)


def _require() -> None:
    try:
        from mcp import Client  # noqa: F401
    except ImportError:
        raise InputError('an MCP server needs the official SDK: pip install "recallbench[mcp]"') from None


class McpConnection:
    """One session with an MCP server. The session lives in a task of its own, which opens and closes it."""

    in_a_row = False

    def __init__(self, settings: McpSettings | McpHttpSettings, command: Sequence[str] = (), url: str = "") -> None:
        self._settings, self._command, self._url = settings, command, url
        self.takes_memories = bool(settings.save_tool)
        self.notes: Counter[str] = Counter()
        self.shape: Shape | None = None
        self._client: Client | None = None
        self._transport: Any = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._holds = False

    async def open(self) -> Hello:
        await self._connect()
        assert self._client is not None
        self.shape = shape_of(
            await self._within(self._tools(), self._settings.start_timeout_s, "list its tools"), self._settings
        )
        info = self._client.server_info
        name, version = (info.name, info.version) if info else ("an MCP server", "")
        return Hello(one_line(name, 60), one_line(version or "", 40), frozenset({"search"}))

    async def reset(self, corpus: str) -> None:
        """Forget: by the reset tool, or by a new process where something was saved."""
        settings = self._settings
        if settings.reset_tool:
            await self._call(settings.reset_tool, {}, settings.index_timeout_s)
        elif self._holds:
            if self._url:
                raise Fault("has memories of another corpus and no reset_tool is set")
            await self.close()
            await self._connect()
        self._holds = False

    async def index(self, memories: Sequence[Memory]) -> Mapping[str, Sequence[str]]:
        shape, settings = self.shape, self._settings
        assert shape is not None
        found: dict[str, list[str]] = {}
        for memory in memories:
            self._holds = True
            arguments = {**settings.save_arguments, shape.save_text: memory.text.strip()}
            if settings.save_id_argument:
                arguments[settings.save_id_argument] = memory.id
            name = saved_id(await self._call(shape.save, arguments, settings.index_timeout_s), settings)
            if name is not None and memory.id not in found.setdefault(name, []):
                found[name].append(memory.id)
        return found

    async def ask(self, question: Question, top_k: int) -> Reply:
        shape, settings = self.shape, self._settings
        assert shape is not None
        arguments = {**settings.arguments, shape.query: question.text}
        if shape.limit:
            arguments[shape.limit] = top_k
        rows = rows_of(await self._call(shape.search, arguments, settings.timeout_s), settings)
        if not shape.limit and len(rows) > top_k:
            self.notes[f"{shape.search} takes no limit: its answers were cut"] += 1
            rows = rows[:top_k]
        return Reply(read_hits(rows, top_k))

    async def close(self, gently: bool = True) -> None:
        if self._transport is not None:
            self._transport.gently = gently
        task, client = self._task, self._client
        self._task = self._client = None
        self._stop.set()
        if task is not None and client is None:
            task.cancel()  # it is still waiting for the server's first word
        if task is not None:
            limit = CLOSE_S + 3 * getattr(self._settings, "stop_s", 0.0)
            done, _ = await asyncio.wait({task}, timeout=limit)
            if not done:
                task.cancel()
                await asyncio.wait({task}, timeout=limit)
            if task.done() and not task.cancelled():
                task.exception()  # how a lost session ends was told by the request that lost it

    def log_lines(self, count: int) -> list[str]:
        """The last lines of the server's log."""
        return self._transport.lines.log_lines(count) if self._transport is not None else []

    async def _connect(self) -> None:
        self._stop = asyncio.Event()
        opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.get_running_loop().create_task(self._session(opened))
        limit = self._settings.start_timeout_s
        awaited: set[asyncio.Future[Any]] = {opened, self._task}
        done, _ = await asyncio.wait(awaited, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise Lost(f"did not open an MCP session in {limit:g} s", hung=True)
        if not opened.done():
            error = self._task.exception()
            raise Lost(self._epitaph() or f"could not be connected to: {_reason(error)}")
        self._client = opened.result()

    async def _session(self, opened: asyncio.Future[Client]) -> None:
        from mcp import Client

        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(await self._streams(stack), cache=None))
            if not opened.done():
                opened.set_result(client)
            await self._stop.wait()

    async def _streams(self, stack: contextlib.AsyncExitStack) -> Any:
        """The transport: over a process of ours, or streamable HTTP without proxies of the environment."""
        if self._command:
            from recallbench.systems.mcp_transport import ChildTransport

            assert isinstance(self._settings, McpSettings)
            self._transport = ChildTransport(self._command, self._settings, self.notes)
            return self._transport
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        assert isinstance(self._settings, McpHttpSettings)
        # Each call has its own deadline; the stream on which the server speaks first may be silent for ever.
        http = httpx2.AsyncClient(headers=dict(self._settings.headers), timeout=None, trust_env=False)
        await stack.enter_async_context(http)
        return streamable_http_client(self._url, http_client=http)

    async def _tools(self) -> list[Tool]:
        assert self._client is not None
        tools: list[Tool] = []
        cursor = None
        while len(tools) < TOOLS:
            page = await self._client.list_tools(cursor=cursor)
            tools += [Tool.of(one.name, one.input_schema) for one in page.tools]
            cursor = page.next_cursor
            if not cursor:
                break
        return tools

    async def _call(self, tool: str, arguments: Mapping[str, Any], seconds: float) -> Any:
        """The value that a tool answers. Raises Fault for an error of the tool, Lost where no answer comes."""
        if self._client is None:
            raise Lost(self._epitaph() or "is not connected")
        result = await self._within(self._client.call_tool(tool, dict(arguments)), seconds, f"call {tool}")
        texts = [one.text for one in result.content if one.type == "text"]
        if result.is_error:
            raise Fault(f"answered {tool} with an error: {one_line(' '.join(texts)) or 'without a word'}")
        return value_of(result.structured_content, texts) if texts or result.structured_content is not None else []

    async def _within(self, work: Any, seconds: float, what: str) -> Any:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED
        from pydantic import ValidationError

        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError:
            raise Lost(f"gave no answer in {seconds:g} s ({what})", hung=True) from None
        except ValidationError as error:
            raise Fault(f"answered something that is no MCP ({what}): {error.error_count()} bad fields") from None
        except MCPError as error:
            dead = await self._dead()
            if dead or (self._url and (error.code == CONNECTION_CLOSED or "Session terminated" in str(error))):
                raise Lost(dead or f"was lost ({what}): {one_line(error)}") from None
            raise Fault(f"answered with an error ({what}): {one_line(error)}") from None
        except Exception as error:  # noqa: BLE001 (the SDK's transports raise what their libraries raise)
            raise Lost((await self._dead()) or f"was lost ({what}): {_reason(error)}") from None

    async def _dead(self) -> str:
        """How the process ended, where it did; a session that ends is told before its process is."""
        if self._transport is not None and not self._transport.ended.done():
            await asyncio.wait({self._transport.ended}, timeout=0.05)
        if self._task is not None and self._task.done():
            return self._epitaph() or "ended the session"
        return self._epitaph()

    def _epitaph(self) -> str:
        if self._transport is not None and self._transport.ended.done():
            ended: str = self._transport.ended.result()
            return ended
        return ""


def _reason(error: BaseException | None) -> str:
    """The innermost reason of a failure of the SDK, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return one_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
