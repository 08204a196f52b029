"""The four wire shapes: a body as one request value, its limit lowered, its usage read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from recallstack.errors import InputError
from recallstack.systems.lane import wire_anthropic, wire_chat, wire_gemini, wire_responses
from recallstack.systems.lane.body import Path, convert, decode_object, limits, with_limit
from recallstack.systems.lane.request import Request
from recallstack.systems.lane.switches import NO_SWITCHES, Switches

Wire = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]
WIRES: tuple[Wire, ...] = get_args(Wire)

_PARSERS: dict[Wire, Callable[[dict[str, Any]], Request]] = {
    "openai-chat": wire_chat.parse,
    "openai-responses": wire_responses.parse,
    "anthropic": wire_anthropic.parse,
    "gemini": wire_gemini.parse,
}
_LIMITS: dict[Wire, tuple[Path, ...]] = {
    "openai-chat": (("max_completion_tokens",), ("max_tokens",)),
    "openai-responses": (("max_output_tokens",),),
    "anthropic": (("max_tokens",),),
    "gemini": tuple(
        (config, name)
        for config in ("generationConfig", "generation_config")
        for name in ("maxOutputTokens", "max_output_tokens")
    ),
}


def parse(wire: Wire, body: bytes) -> Request:
    """The request that a body holds; where it sets several limits, `max_tokens` is the highest.

    Raises InputError in one line: no JSON, a field that is missing, wrong or of a kind not read here, or part
    of the request kept upstream (the estimate and the refs need the whole of it).
    """
    if wire not in _PARSERS:
        raise InputError(f"wire is {wire!r}; use one of {', '.join(WIRES)}")
    fields = decode_object(body, wire)
    try:
        request = _PARSERS[wire](fields)
    except RecursionError:
        raise InputError(f"{wire}: the JSON is nested too deeply") from None
    asked = [value for _, value in limits(fields, _LIMITS[wire], wire)]
    return msgspec.structs.replace(request, max_tokens=max(asked, default=None))


def set_limit(wire: Wire, body: bytes, change: Callable[[int], int]) -> bytes:
    """The body with `change` applied to each limit that it sets; the same bytes where nothing changes."""
    for path, value in list(limits(decode_object(body, wire), _LIMITS[wire], wire)):
        changed = change(value)
        if changed != value:
            body = with_limit(body, path, changed)
    return body


class _ChatUsage(Struct):
    prompt_tokens: int


class _Chat(Struct):
    usage: _ChatUsage | None = None


class _ResponsesUsage(Struct):
    input_tokens: int


class _Responses(Struct):
    usage: _ResponsesUsage | None = None


class _AnthropicUsage(Struct):
    input_tokens: int
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Anthropic(Struct):
    usage: _AnthropicUsage | None = None


class _GeminiUsage(Struct, rename="camel"):
    prompt_token_count: int


class _Gemini(Struct, rename="camel"):
    usage_metadata: _GeminiUsage | None = None


def input_tokens(wire: Wire, body: bytes, switches: Switches = NO_SWITCHES) -> int | None:
    """Input tokens that a response was billed for, None where it holds no usage (an error, say).

    Anthropic counts tokens read from and written to its cache apart; the other wires count them in.
    Raises InputError for a body that is no JSON object or usage that is no number.
    """
    fields = decode_object(body, f"{wire} response")
    match wire:
        case "openai-chat":
            chat = convert(fields, _Chat, f"{wire} response").usage
            return None if chat is None else chat.prompt_tokens
        case "openai-responses":
            responses = convert(fields, _Responses, f"{wire} response").usage
            return None if responses is None else responses.input_tokens
        case "anthropic":
            usage = convert(fields, _Anthropic, f"{wire} response").usage
            if usage is None:
                return None
            cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
            return usage.input_tokens + (0 if switches.cached_tokens_ignored else cached)
        case "gemini":
            gemini = convert(fields, _Gemini, f"{wire} response").usage_metadata
            return None if gemini is None else gemini.prompt_token_count
