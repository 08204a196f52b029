"""Building a request value: call numbers, adjacent assistant messages, canonical JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from recallstack.systems.lane.request import Call, Media, Message, Part, Request, Result, Text, Tool


class Builder:
    """Collects what a wire holds, oldest first, and gives the value that all wires share."""

    def __init__(self) -> None:
        self._system: list[str] = []
        self._messages: list[Message] = []
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._open: list[int] = []

    def system(self, texts: Iterable[str]) -> None:
        """Add system texts; empty ones are dropped."""
        self._system += [text for text in texts if text]

    def user(self, parts: Sequence[Text | Media]) -> None:
        """Add a message of the user."""
        self._messages.append(Message("user", _filled(parts)))

    def assistant(self, parts: Sequence[Text | Media | Call]) -> None:
        """Add to the assistant's message; a turn that holds nothing adds none."""
        filled = _filled(parts)
        if not filled:
            return
        last = self._messages[-1] if self._messages else None
        if last is not None and last.role == "assistant":
            self._messages[-1] = Message("assistant", last.parts + filled)
        else:
            self._messages.append(Message("assistant", filled))

    def call(self, name: str, arguments: str, key: str | None = None) -> Call:
        """A numbered call, for `assistant`. key: what the wire calls it; a later call may use a key again."""
        self._names.append(name)
        number = len(self._names)
        self._open.append(number)
        if key is not None:
            self._numbers[key] = number
        return Call(number, name, arguments)

    def result(self, text: str, key: str | None = None, name: str = "") -> None:
        """Add a tool's answer to the call with that key, or else to the oldest open call of that name."""
        number = 0 if key is None else self._numbers.get(key, 0)
        if key is None:
            number = next((one for one in self._open if self._names[one - 1] == name), 0)
        if number in self._open:
            self._open.remove(number)
        self._messages.append(Message("tool", (Result(number, text),)))

    def request(self, tools: Iterable[Tool]) -> Request:
        """The value, without a limit of output."""
        return Request(system="\n".join(self._system), messages=tuple(self._messages), tools=tuple(tools))


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def arguments_text(written: str) -> str:
    """Arguments that a wire holds as text, as canonical JSON where they are JSON (nothing is `{}`)."""
    if not written.strip():
        return "{}"
    try:
        text = canonical(json.loads(written))
        text.encode()  # half a character (an escaped lone surrogate) is a ValueError too
        return text
    except (ValueError, RecursionError):
        return written


def _filled(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(part for part in parts if not (isinstance(part, Text) and not part.text))
