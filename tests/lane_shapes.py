"""Conversations written on the four wires by hand, for the tests of the lane. Written against the wires'
public references, not against the parsers."""

from __future__ import annotations

import json
from typing import Any

from recallstack.systems.lane.classify import REVIEW_POLICY

WIRES = ("openai-chat", "openai-responses", "anthropic", "gemini")
User = tuple[str, str]
Turn = tuple[Any, ...]
"""("user", text), ("assistant", text, [(name, arguments), …]), ("results", [text, …]): answers, in call order."""


def body_of(
    wire: str,
    system: str,
    turns: list[Turn],
    tools: list[tuple[str, str, dict[str, Any]]] = (),
    limit: int | None = 100,
) -> bytes:
    """One conversation as the body of a request. tools: name, description, JSON schema."""
    made = {"openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic, "gemini": _gemini}
    return json.dumps(made[wire](system, turns, tools, limit)).encode()


def review_body(wire: str, text: str, system: str = REVIEW_POLICY, limit: int | None = 100) -> bytes:
    return body_of(wire, system, [("user", text)], limit=limit)


def _keys(turns):
    """Each turn with the keys of its calls, or of the calls that it answers."""
    number, last = 0, []
    for turn in turns:
        if turn[0] == "assistant":
            last = [(f"call_{number + place}", name) for place, (name, _) in enumerate(turn[2])]
            number += len(last)
        yield turn, last


def _chat(system, turns, tools, limit):
    messages = [{"role": "system", "content": system}] if system else []
    for turn, keys in _keys(turns):
        if turn[0] == "user":
            messages.append({"role": "user", "content": turn[1]})
        elif turn[0] == "assistant":
            calls = [
                {"id": key, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
                for (key, _), (name, arguments) in zip(keys, turn[2], strict=True)
            ]
            messages.append(
                {"role": "assistant", "content": turn[1] or None} | ({"tool_calls": calls} if calls else {})
            )
        else:
            for (key, _), text in zip(keys, turn[1], strict=True):
                messages.append({"role": "tool", "tool_call_id": key, "content": text})
    body = {"model": "some-model", "messages": messages}
    if tools:
        body["tools"] = [
            {"type": "function", "function": {"name": n, "description": d, "parameters": p}} for n, d, p in tools
        ]
    return body if limit is None else body | {"max_tokens": limit}


def _responses(system, turns, tools, limit):
    items = []
    for turn, keys in _keys(turns):
        if turn[0] == "user":
            items.append({"role": "user", "content": [{"type": "input_text", "text": turn[1]}]})
        elif turn[0] == "assistant":
            items.append({"type": "reasoning", "id": "r", "summary": []})
            if turn[1]:
                content = [{"type": "output_text", "text": turn[1], "annotations": []}]
                items.append({"type": "message", "role": "assistant", "content": content})
            for (key, _), (name, arguments) in zip(keys, turn[2], strict=True):
                items.append(
                    {"type": "function_call", "call_id": key, "name": name, "arguments": json.dumps(arguments)}
                )
        else:
            for (key, _), text in zip(keys, turn[1], strict=True):
                items.append({"type": "function_call_output", "call_id": key, "output": text})
    body = {"model": "some-model", "input": items}
    if system:
        body["instructions"] = system
    if tools:
        body["tools"] = [{"type": "function", "name": n, "description": d, "parameters": p} for n, d, p in tools]
    return body if limit is None else body | {"max_output_tokens": limit}


def _anthropic(system, turns, tools, limit):
    messages = []
    for turn, keys in _keys(turns):
        if turn[0] == "user":
            # As the wire asks: what the user says after results stands in the same message.
            block = {"type": "text", "text": turn[1]}
            last = messages[-1] if messages else {}
            if last.get("role") == "user" and last["content"][0]["type"] == "tool_result":
                last["content"].append(block)
            else:
                messages.append({"role": "user", "content": [block]})
        elif turn[0] == "assistant":
            blocks = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
            blocks += [{"type": "text", "text": turn[1]}] if turn[1] else []
            blocks += [
                {"type": "tool_use", "id": key, "name": name, "input": arguments}
                for (key, _), (name, arguments) in zip(keys, turn[2], strict=True)
            ]
            messages.append({"role": "assistant", "content": blocks})
        else:
            blocks = [
                {"type": "tool_result", "tool_use_id": key, "content": [{"type": "text", "text": text}]}
                for (key, _), text in zip(keys, turn[1], strict=True)
            ]
            messages.append({"role": "user", "content": blocks})
    body = {"model": "some-model", "messages": messages, "max_tokens": limit}
    if system:
        body["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
    if tools:
        body["tools"] = [{"name": n, "description": d, "input_schema": p} for n, d, p in tools]
    return body


def _gemini(system, turns, tools, limit):
    contents = []
    for turn, keys in _keys(turns):
        if turn[0] == "user":
            contents.append({"role": "user", "parts": [{"text": turn[1]}]})
        elif turn[0] == "assistant":
            parts = [{"text": "hm", "thought": True}]
            parts += [{"text": turn[1]}] if turn[1] else []
            parts += [{"functionCall": {"name": name, "args": arguments}} for name, arguments in turn[2]]
            contents.append({"role": "model", "parts": parts})
        else:
            parts = [
                {"functionResponse": {"name": name, "response": {"output": text}}}
                for (_, name), text in zip(keys, turn[1], strict=True)
            ]
            contents.append({"role": "user", "parts": parts})
    body = {"contents": contents}
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    if tools:
        declared = [{"name": n, "description": d, "parameters": _upper(p)} for n, d, p in tools]
        body["tools"] = [{"functionDeclarations": declared}]
    return body if limit is None else body | {"generationConfig": {"temperature": 0.5, "maxOutputTokens": limit}}


def _upper(schema):
    if not isinstance(schema, dict):
        return schema
    return {k: v.upper() if k == "type" and isinstance(v, str) else _upper(v) for k, v in schema.items()}
