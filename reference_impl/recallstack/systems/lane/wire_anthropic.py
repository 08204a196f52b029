"""Anthropic messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from recallstack.systems.lane.body import convert
from recallstack.systems.lane.build import Builder, canonical
from recallstack.systems.lane.request import Call, Media, Request, Text, Tool

WIRE = "anthropic"


class _Text(Struct, tag="text"):
    text: str


class _Source(Struct):
    data: str | None = None
    url: str | None = None
    file_id: str | None = None


class _Image(Struct, tag="image"):
    source: _Source


class _Document(Struct, tag="document"):
    source: _Source


class _Use(Struct, tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]


class _Result(Struct, tag="tool_result"):
    tool_use_id: str
    content: str | list[_Text | _Image | _Document] | None = None


class _Thinking(Struct, tag="thinking"):
    pass


class _Redacted(Struct, tag="redacted_thinking"):
    pass


_Block = _Text | _Image | _Document | _Use | _Result | _Thinking | _Redacted


class _Message(Struct):
    role: Literal["user", "assistant"]
    content: str | list[_Block]


class _Tool(Struct):
    name: str
    description: str | None = None
    input_schema: dict[str, Any] | None = None


class _Body(Struct):
    messages: Annotated[list[_Message], Meta(min_length=1)]
    max_tokens: int
    system: str | list[_Text] | None = None
    tools: list[_Tool] | None = None


def parse(fields: dict[str, Any]) -> Request:
    """The value of a decoded body, without a limit. Raises InputError that names the field."""
    body = convert(fields, _Body, WIRE)
    build = Builder()
    system = body.system or ""
    build.system([system] if isinstance(system, str) else [one.text for one in system])
    for message in body.messages:
        content = message.content
        blocks: list[_Block] = [_Text(content)] if isinstance(content, str) else content
        if message.role == "assistant":
            build.assistant(list(_said(blocks, build)))
        else:
            _asked(blocks, build)
    return build.request(_tools(body.tools or ()))


def _said(blocks: Iterable[_Block], build: Builder) -> Iterator[Text | Media | Call]:
    for block in blocks:
        if isinstance(block, _Use):
            yield build.call(block.name, canonical(block.input), block.id)
        else:
            yield from _part(block)


def _asked(blocks: list[_Block], build: Builder) -> None:
    """Results become messages of their own; what stands between them is the user's."""
    run: list[Text | Media] = []
    for block in blocks:
        if isinstance(block, _Result):
            if run:
                build.user(run)
                run = []
            content = block.content or ""
            texts = [content] if isinstance(content, str) else [one.text for one in content if isinstance(one, _Text)]
            build.result("\n".join(texts), block.tool_use_id)
        else:
            run += _part(block)
    if run or not any(isinstance(block, _Result) for block in blocks):
        build.user(run)


def _part(block: _Block) -> Iterator[Text | Media]:
    match block:
        case _Text(text):
            yield Text(text)
        case _Image(source) | _Document(source):
            yield Media(source.data or source.url or source.file_id or "")
        case _:
            pass


def _tools(tools: Iterable[_Tool]) -> Iterator[Tool]:
    for one in tools:
        schema = "" if one.input_schema is None else canonical(one.input_schema)
        yield Tool(one.name, one.description or "", schema)
