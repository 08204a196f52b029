"""An MCP server with a save and a search tool, made with the official SDK. Arguments: mode, [port]."""

from __future__ import annotations

import os
import sys
from typing import Any

from mcp.server import MCPServer

mode = sys.argv[1]
server = MCPServer("memories", version="3.1")
rows: list[str] = []
CALLS = {"search": 0}


def answer(query: str) -> str:
    """The text of the memory that the last word of the query is in."""
    word = query.rstrip("?").split()[-1]
    return next((text for text in rows if word in text.split()), "")


@server.tool()
def remember(text: str) -> dict[str, Any]:
    """Save a memory."""
    if mode == "save-error":
        raise ValueError("no room")
    rows.append(text)
    return {"memory_id": f"mem-{len(rows)}"} if mode == "ids" else {"saved": True}


@server.tool()
def forget_all() -> str:
    rows.clear()
    return "done"


@server.tool()
def search_memories(query: str, limit: int = 10) -> Any:
    """Find memories."""
    if "charlie" in query:
        if mode == "tool-error":
            raise ValueError("the index is locked")
        if mode == "dies":
            print("out of memory", file=sys.stderr, flush=True)
            os._exit(9)
        if mode == "hangs":
            import signal

            signal.pause()
        if mode == "too-many":
            return [{"text": "x", "id": f"mem-{i}"} for i in range(limit + 1)]
        if mode == "no-list":
            return {"count": 3}
        if mode == "big":
            return [{"text": "x" * 5_000_000}]
    found = answer(query)
    if mode == "ids":
        return [{"id": f"mem-{rows.index(found) + 1}", "score": 0.5}]
    if mode == "prose":
        return f"I found this:\n- {found}"
    return {"memories": [{"content": found, "similarity": 0.5}]}


if len(sys.argv) > 2 and sys.argv[2].isdecimal():
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
else:
    server.run("stdio")
