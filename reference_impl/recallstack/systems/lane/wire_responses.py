"""OpenAI responses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from recallstack.errors import InputError
from recallstack.systems.lane.body import convert
from recallstack.systems.lane.build import Builder, arguments_text, canonical
from recallstack.systems.lane.request import Media, Request, Text, Tool

WIRE = "openai-responses"
_UPSTREAM = ("previous_response_id", "conversation", "prompt")


class _InputText(Struct, tag="input_text"):
    text: str


class _OutputText(Struct, tag="output_text"):
    text: str


class _Refusal(Struct, tag="refusal"):
    refusal: str


class _Image(Struct, tag="input_image"):
    image_url: str | None = None
    file_id: str | None = None


class _File(Struct, tag="input_file"):
    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None


_Part = _InputText | _OutputText | _Refusal | _Image | _File


class _Message(Struct, tag="message"):
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[_Part]


class _Call(Struct, tag="function_call"):
    call_id: str
    name: str
    arguments: str = ""


class _Result(Struct, tag="function_call_output"):
    call_id: str
    output: str | list[_Part]


class _CustomCall(Struct, tag="custom_tool_call"):
    call_id: str
    name: str
    input: str = ""


class _CustomResult(Struct, tag="custom_tool_call_output"):
    call_id: str
    output: str | list[_Part]


class _Reasoning(Struct, tag="reasoning"):
    pass


_Item = _Message | _Call | _Result | _CustomCall | _CustomResult | _Reasoning


class _Tool(Struct):
    type: str
    name: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Body(Struct):
    input: str | Annotated[list[_Item], Meta(min_length=1)]
    instructions: str | None = None
    tools: list[_Tool] | None = None


def parse(fields: dict[str, Any]) -> Request:
    """The value of a decoded body, without a limit. Raises InputError that names the field."""
    for name in _UPSTREAM:
        if fields.get(name) is not None:
            raise InputError(f"{WIRE}: {name} keeps part of the request upstream; send the whole input instead")
    body = convert(_typed(fields), _Body, WIRE)
    build = Builder()
    build.system([body.instructions or ""])
    if isinstance(body.input, str):
        build.user([Text(body.input)])
        return build.request(_tools(body.tools or ()))
    for item in body.input:
        match item:
            case _Message(role, content):
                parts = _parts(content)
                if role == "user":
                    build.user(parts)
                elif role == "assistant":
                    build.assistant(parts)
                else:
                    build.system([_text(parts)])
            case _Call(call_id, name, arguments):
                build.assistant([build.call(name, arguments_text(arguments), call_id)])
            case _CustomCall(call_id, name, written):
                build.assistant([build.call(name, written, call_id)])
            case _Result(call_id, output) | _CustomResult(call_id, output):
                build.result(_text(_parts(output)), call_id)
            case _Reasoning():
                pass
    return build.request(_tools(body.tools or ()))


def _typed(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with `type` put into the messages that leave it out, as the wire allows."""
    items = fields.get("input")
    if not isinstance(items, list):
        return fields
    typed = [{"type": "message", **one} if isinstance(one, dict) and "role" in one else one for one in items]
    return {**fields, "input": typed}


def _parts(content: str | list[_Part]) -> list[Text | Media]:
    if isinstance(content, str):
        return [Text(content)]
    parts: list[Text | Media] = []
    for part in content:
        match part:
            case _InputText(text) | _OutputText(text) | _Refusal(text):
                parts.append(Text(text))
            case _Image(url, file_id):
                parts.append(Media(url or file_id or ""))
            case _File(file_id, data, url):
                parts.append(Media(file_id or data or url or ""))
    return parts


def _text(parts: list[Text | Media]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text) and part.text)


def _tools(tools: Iterable[_Tool]) -> Iterator[Tool]:
    for one in tools:
        parameters = "" if one.parameters is None else canonical(one.parameters)
        yield Tool(one.name or one.type, one.description or "", parameters)
