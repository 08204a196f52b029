"""Gemini generateContent. Field names in camelCase or snake_case, as the wire allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from recallstack.errors import InputError
from recallstack.systems.lane.body import convert
from recallstack.systems.lane.build import Builder, canonical
from recallstack.systems.lane.request import Call, Media, Request, Text, Tool

WIRE = "gemini"
_GIVEN = frozenset({"args", "response", "parameters", "parametersJsonSchema"})
_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})


class _Data(Struct):
    data: str


class _Address(Struct, rename="camel"):
    file_uri: str


class _Call(Struct):
    name: str
    args: dict[str, Any] | None = None
    id: str | None = None


class _Response(Struct):
    name: str
    response: dict[str, Any]
    id: str | None = None


class _Part(Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    inline_data: _Data | None = None
    file_data: _Address | None = None
    function_call: _Call | None = None
    function_response: _Response | None = None


class _Content(Struct):
    parts: list[_Part]
    role: Literal["user", "model", "function", "system"] | None = None


class _Function(Struct, rename="camel"):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    parameters_json_schema: dict[str, Any] | None = None


class _Body(Struct, rename="camel"):
    contents: Annotated[list[_Content], Meta(min_length=1)]
    system_instruction: _Content | None = None
    tools: list[dict[str, Any]] | None = None


def parse(fields: dict[str, Any]) -> Request:
    """The value of a decoded body, without a limit. Raises InputError that names the field."""
    body = convert(_camel(fields), _Body, WIRE)
    if fields.get("cachedContent", fields.get("cached_content")) is not None:
        raise InputError(f"{WIRE}: cachedContent keeps part of the request upstream; send the whole contents instead")
    build = Builder()
    if body.system_instruction is not None:
        build.system(part.text or "" for part in body.system_instruction.parts)
    for place, content in enumerate(body.contents):
        if content.role == "model":
            build.assistant(list(_said(content.parts, build, place)))
        else:
            _asked(content.parts, build, place)
    return build.request(_tools(body.tools or ()))


def _said(parts: Iterable[_Part], build: Builder, place: int) -> Iterator[Text | Media | Call]:
    for part in parts:
        call = part.function_call
        if call is not None:
            yield build.call(call.name, canonical(call.args or {}), call.id)
        else:
            yield from _part(part, place)


def _asked(parts: list[_Part], build: Builder, place: int) -> None:
    """Responses become messages of their own; what stands between them is the user's."""
    run: list[Text | Media] = []
    for part in parts:
        answered = part.function_response
        if answered is not None:
            if run:
                build.user(run)
                run = []
            build.result(_result_text(answered.response), answered.id, answered.name)
        else:
            run += _part(part, place)
    if run or not any(part.function_response for part in parts):
        build.user(run)


def _part(part: _Part, place: int) -> Iterator[Text | Media]:
    if part.thought:
        return
    if part.text is not None:
        yield Text(part.text)
    elif part.inline_data is not None:
        yield Media(part.inline_data.data)
    elif part.file_data is not None:
        yield Media(part.file_data.file_uri)
    else:
        raise InputError(
            f"{WIRE}: contents[{place}].parts: a part holds nothing that is read here; "
            "send text, inlineData, fileData, functionCall or functionResponse"
        )


def _result_text(response: dict[str, Any]) -> str:
    """The text of a response under the documented keys `output` and `error`, or else the response as JSON."""
    if len(response) == 1:
        key, value = next(iter(response.items()))
        if key in ("output", "error", "result") and isinstance(value, str):
            return value
    return canonical(response)


def _tools(tools: Iterable[dict[str, Any]]) -> Iterator[Tool]:
    """Declared functions, and built-in tools by their name."""
    for tool in tools:
        for kind, value in tool.items():
            if kind != "functionDeclarations":
                yield Tool(kind)
                continue
            for one in convert(value or [], list[_Function], f"{WIRE}: tools"):
                schema = _lower(one.parameters) if one.parameters is not None else one.parameters_json_schema
                yield Tool(one.name, one.description or "", "" if schema is None else canonical(schema))


def _lower(schema: Any) -> Any:
    """A schema with its type names as JSON schema writes them."""
    if isinstance(schema, dict):
        return {
            key: value.lower() if key == "type" and isinstance(value, str) and value in _TYPES else _lower(value)
            for key, value in schema.items()
        }
    return [_lower(one) for one in schema] if isinstance(schema, list) else schema


def _camel(value: Any) -> Any:
    """Field names in camelCase; what users and tools put in is left as it is."""
    if isinstance(value, list):
        return [_camel(one) for one in value]
    if not isinstance(value, dict):
        return value
    out: dict[str, Any] = {}
    for key, inner in value.items():
        head, *rest = key.split("_")
        name = head + "".join(word[:1].upper() + word[1:] for word in rest)
        out[name] = inner if name in _GIVEN else _camel(inner)
    return out
