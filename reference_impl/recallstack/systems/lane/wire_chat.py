"""OpenAI chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from msgspec import Meta, Struct

from recallstack.systems.lane.body import convert
from recallstack.systems.lane.build import Builder, arguments_text, canonical
from recallstack.systems.lane.request import Call, Media, Request, Text, Tool

WIRE = "openai-chat"


class _Text(Struct, tag="text"):
    text: str


class _Refusal(Struct, tag="refusal"):
    refusal: str


class _Address(Struct):
    url: str


class _Image(Struct, tag="image_url"):
    image_url: _Address


class _Sound(Struct):
    data: str


class _Audio(Struct, tag="input_audio"):
    input_audio: _Sound


class _FileSource(Struct):
    file_id: str = ""
    file_data: str = ""


class _File(Struct, tag="file"):
    file: _FileSource


_Content = str | list[_Text | _Refusal | _Image | _Audio | _File] | None
_Texts = str | list[_Text]


class _System(Struct, tag_field="role", tag="system"):
    content: _Texts


class _Developer(Struct, tag_field="role", tag="developer"):
    content: _Texts


class _User(Struct, tag_field="role", tag="user"):
    content: _Content


class _Function(Struct):
    name: str
    arguments: str = ""


class _Custom(Struct):
    name: str
    input: str = ""


class _FunctionCall(Struct, tag_field="type", tag="function"):
    id: str
    function: _Function


class _CustomCall(Struct, tag_field="type", tag="custom"):
    id: str
    custom: _Custom


class _Assistant(Struct, tag_field="role", tag="assistant"):
    content: _Content = None
    refusal: str | None = None
    tool_calls: list[_FunctionCall | _CustomCall] | None = None


class _Result(Struct, tag_field="role", tag="tool"):
    tool_call_id: str
    content: _Texts


class _Declared(Struct):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _FunctionTool(Struct, tag="function"):
    function: _Declared


class _CustomTool(Struct, tag="custom"):
    custom: _Declared


class _Body(Struct):
    messages: Annotated[list[_System | _Developer | _User | _Assistant | _Result], Meta(min_length=1)]
    tools: list[_FunctionTool | _CustomTool] | None = None
    functions: list[_Declared] | None = None


def parse(fields: dict[str, Any]) -> Request:
    """The value of a decoded body, without a limit. Raises InputError that names the field."""
    body = convert(fields, _Body, WIRE)
    build = Builder()
    for message in body.messages:
        match message:
            case _System() | _Developer():
                build.system(_texts(message.content))
            case _User():
                build.user(_parts(message.content))
            case _Assistant():
                refusal = [Text(message.refusal)] if message.refusal else []
                calls = [_call(call, build) for call in message.tool_calls or ()]
                build.assistant([*_parts(message.content), *refusal, *calls])
            case _Result():
                build.result("\n".join(_texts(message.content)), message.tool_call_id)
    older = [_FunctionTool(one) for one in body.functions or ()]
    return build.request(_tools([*(body.tools or ()), *older]))


def _call(call: _FunctionCall | _CustomCall, build: Builder) -> Call:
    if isinstance(call, _CustomCall):
        return build.call(call.custom.name, call.custom.input, call.id)
    return build.call(call.function.name, arguments_text(call.function.arguments), call.id)


def _texts(content: _Texts) -> list[str]:
    return [content] if isinstance(content, str) else [part.text for part in content]


def _parts(content: _Content) -> list[Text | Media]:
    if content is None or isinstance(content, str):
        return [Text(content or "")]
    parts: list[Text | Media] = []
    for part in content:
        match part:
            case _Text(text) | _Refusal(text):
                parts.append(Text(text))
            case _Image(address):
                parts.append(Media(address.url))
            case _Audio(sound):
                parts.append(Media(sound.data))
            case _File(file):
                parts.append(Media(file.file_id or file.file_data))
    return parts


def _tools(tools: Iterable[_FunctionTool | _CustomTool]) -> Iterator[Tool]:
    for tool in tools:
        one = tool.function if isinstance(tool, _FunctionTool) else tool.custom
        yield Tool(one.name, one.description or "", "" if one.parameters is None else canonical(one.parameters))
