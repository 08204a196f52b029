"""The session log as pre-retrieval reads it: typed events, and the text of a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

PLUGIN = "pre-retrieval"
"""The plugin's name in the source of the messages that it injects."""
IDS_SECTION = "pre-retrieval-ids"
"""The section of an injected message that lists the documents in it."""
FAILED = "pre-retrieval/failed"
"""The event that marks a failed retrieval: data `{turn, kind}`."""


class LogEvent(Protocol):
    """What is read of an event. Types read here: user/message, assistant/message, tool/result, turn/start,
    turn/end, and our own failure mark."""

    @property
    def type(self) -> str:
        """The event's type."""

    @property
    def data(self) -> Mapping[str, Any]:
        """What it carries."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event to be appended to the log."""

    type: str
    data: Mapping[str, Any]


def message_text(data: Mapping[str, Any]) -> str:
    """The text of a message: `text`, or `content` as text or as blocks (text blocks, a line each); else nothing.

    A message may stand under `message`, as assistant and tool messages of the public host do.
    """
    inner = data.get("message")
    if isinstance(inner, Mapping):
        return message_text(inner)
    if isinstance(inner, str):
        return inner.strip()
    content = data.get("text", data.get("content", ""))
    if isinstance(content, str):
        return content.strip()
    parts = content if isinstance(content, Sequence) else ()
    blocks = [block for block in parts if isinstance(block, Mapping) and block.get("type", "text") == "text"]
    return "\n".join(str(block.get("text", "")) for block in blocks).strip()


def source_of(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `source` of a message, empty where it has none (then it is the user's own)."""
    source = data.get("source")
    return source if isinstance(source, Mapping) else {}


def from_plugin(event: LogEvent) -> bool:
    """Whether a plugin, ours or another, wrote this user message."""
    return event.type == "user/message" and source_of(event.data).get("kind") == "plugin"


def own_injection(event: LogEvent) -> bool:
    """Whether the event is a message that pre-retrieval injected."""
    return from_plugin(event) and source_of(event.data).get("plugin") == PLUGIN
