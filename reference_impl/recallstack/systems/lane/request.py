"""A request as one value, whatever wire it came on; who its messages are, and how long they are."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Role = Literal["user", "assistant", "tool"]

MEDIA_CHARACTERS = 6400
"""What an image, a sound or a file counts as, in characters (choice: 1,600 tokens)."""


class Text(Struct, frozen=True, tag="text"):
    """Text, never empty."""

    text: str


class Call(Struct, frozen=True, tag="call"):
    """A tool call. number: its place among the calls of the request, 1-based (wires name calls differently).

    arguments: JSON with sorted keys, or what the model wrote where that is no JSON.
    """

    number: int
    name: str
    arguments: str


class Result(Struct, frozen=True, tag="result"):
    """What a tool answered. number: of the call, 0 where the request does not hold it."""

    number: int
    text: str


class Media(Struct, frozen=True, tag="media"):
    """An image, a sound or a file. source: its address, its identifier upstream, or its data in base64."""

    source: str


Part = Text | Call | Result | Media


class Message(Struct, frozen=True):
    """One message. Tool results are messages of their own; adjacent assistant messages are one."""

    role: Role
    parts: tuple[Part, ...]


class Tool(Struct, frozen=True):
    """A tool that the model may call. parameters: its JSON schema with sorted keys, or nothing."""

    name: str
    description: str = ""
    parameters: str = ""


class Request(Struct, frozen=True, kw_only=True):
    """A request. system: all system texts, a line each. messages: the others, oldest first.

    max_tokens: most output tokens that were requested, None where the request does not say.
    Reasoning, sampling settings and the name of the model are no part of the value.
    """

    system: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    max_tokens: int | None = None


def message_ids(messages: Iterable[Message]) -> tuple[str, ...]:
    """An id for each message: a hash of role and content; `#n` is added to the n-th of equal ones (n ≥ 2).

    Call numbers are left out: a message keeps its id when older ones are dropped.
    """
    seen: Counter[str] = Counter()
    ids = []
    for message in messages:
        content = [message.role, *(_content(part) for part in message.parts)]
        digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
        seen[digest] += 1
        ids.append(digest if seen[digest] == 1 else f"{digest}#{seen[digest]}")
    return tuple(ids)


def characters(messages: Iterable[Message]) -> int:
    """Code points of the messages' texts, calls (name and arguments) and results."""
    return sum(_length(part) for message in messages for part in message.parts)


def request_characters(request: Request) -> int:
    """Code points of the whole request: system text, tools and messages."""
    tools = sum(len(tool.name) + len(tool.description) + len(tool.parameters) for tool in request.tools)
    return len(request.system) + tools + characters(request.messages)


def _content(part: Part) -> list[str]:
    match part:
        case Text(text):
            return ["text", text]
        case Call(_, name, arguments):
            return ["call", name, arguments]
        case Result(_, text):
            return ["result", text]
        case Media(source):
            return ["media", source]


def _length(part: Part) -> int:
    return MEDIA_CHARACTERS if isinstance(part, Media) else sum(len(text) for text in _content(part)[1:])
