"""MCP over a child process of ours: the official SDK speaks, our own supervision starts and ends the process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from recallbench.systems.process import Child, Lines
from recallbench.systems.settings import McpSettings

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_ID = re.compile(rb'"id"\s*:\s*(\d+|"[^"\\]{1,60}")')
GRACE_S = 0.5
"""Seconds that a message which was accepted gets to be written before the input is closed."""


class ChildTransport:
    """The streams of a `mcp.Client`, for a command. on_end: told why the server answers no more."""

    def __init__(self, command: Sequence[str], settings: McpSettings, notes: Counter[str]) -> None:
        self._command, self._settings, self._notes = command, settings, notes
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.gently = True
        self.lines = Lines(settings.max_bytes, self._on_line, self._on_long, self._on_end)
        self._child: Child | None = None
        self._pump: asyncio.Task[None] | None = None

    async def __aenter__(self) -> TransportStreams:
        import anyio
        from mcp.shared.message import SessionMessage

        folder = Path(self._settings.folder) if self._settings.folder else None
        # Before the process is there, so that nothing it says is lost; what it says is bounded by `max_bytes` a line.
        self._in, read = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        write, self._out = anyio.create_memory_object_stream[SessionMessage](0)
        self._streams = (self._in, read, write, self._out)
        try:
            self._child = await Child.start(self._command, self.lines, folder=folder, env=self._settings.env)
        except BaseException:
            self._close_streams()
            raise
        self._pump = asyncio.get_running_loop().create_task(self._write())
        return read, write

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._child is not None
        assert self._pump is not None
        self._streams[2].close()
        await asyncio.wait({self._pump}, timeout=GRACE_S if self.gently else 0)
        self._pump.cancel()
        await asyncio.wait({self._pump})
        await self._child.stop(self._settings.stop_s, self.gently)
        self._close_streams()

    def _close_streams(self) -> None:
        for stream in self._streams:
            stream.close()

    async def _write(self) -> None:
        assert self._child is not None
        async for message in self._out:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await self._child.write(text.encode() + b"\n")

    def _on_line(self, line: bytes) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._notes[
                "a line on its standard output that is no MCP message was dropped; logs go to standard error"
            ] += 1
            return
        self._give(SessionMessage(message))

    def _on_long(self, head: bytes) -> None:
        """An answer that is too long becomes an error of its request."""
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        found = _ID.search(head[:400])
        what = f"a line of more than {self._settings.max_bytes} bytes (max_bytes); it was not read"
        if found is None:
            self._notes[what] += 1
            return
        error: dict[str, Any] = {"code": -32600, "message": what}
        reply = {"jsonrpc": "2.0", "id": json.loads(found[1]), "error": error}
        self._give(SessionMessage(jsonrpc_message_adapter.validate_python(reply, by_name=False)))

    def _give(self, message: Any) -> None:
        import anyio

        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._in.send_nowait(message)

    def _on_end(self, how: str) -> None:
        if not self.ended.done():
            self.ended.set_result(how)
        self._in.close()
