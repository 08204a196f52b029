"""The context lane under scenarios: requests of a client, on the wire of OpenAI chat, and what they do to a session."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from recallbench.scenarios.base import Vocabulary
from recallbench.scenarios.model import Given, Switch
from recallstack.errors import InputError
from recallstack.systems.lane.clamp import WINDOW, clamp, output_cap
from recallstack.systems.lane.classify import AGENT, REVIEW_POLICY
from recallstack.systems.lane.framing import OPEN_TAG, PREAMBLE
from recallstack.systems.lane.pipeline import Outcome, Pipeline
from recallstack.systems.lane.switches import Switches
from recallstack.systems.lane.wires import Wire, input_tokens

SWITCHES = frozenset(one.name for one in dataclasses.fields(Switches))
WIRE: Wire = "openai-chat"
_NAMES = {"$POLICY": REVIEW_POLICY, "$PREAMBLE": PREAMBLE, "$TAG": OPEN_TAG}
"""What a scenario writes for the version-pinned constants."""

VOCABULARY = Vocabulary(
    calls={
        "request": frozenset({"session", "client", "system", "messages", "tools", "max_tokens"}),
        "settle": frozenset({"tokens"}),
        "compress": frozenset({"session", "first", "last", "summary"}),
    },
    probes={
        "session": frozenset({"session"}),
        "sessions": frozenset(),
        "clamp": frozenset({"requested", "estimate"}),
        "usage": frozenset({"wire", "usage"}),
    },
    config=frozenset({"window"}),
    capabilities=frozenset({"lane"}),
)


class Session:
    """A pipeline between a client and its provider."""

    def __init__(self, given: Given, switches: Mapping[str, Switch]) -> None:
        try:
            self._switches = msgspec.convert(dict(switches), Switches)
        except msgspec.ValidationError as error:
            raise InputError(f"lane switches: {error}") from None
        self._window = int(given.config.get("window", WINDOW))
        self._pipeline = Pipeline(self._window, self._switches)
        self._last: Outcome | None = None

    async def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """The lane has no events: everything comes as a request."""

    async def fault(self, name: str, value: Any) -> None:
        """The lane has no faults: it makes no call of its own."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        key = arguments.get("session", "main")
        if name == "settle":
            if self._last is None:
                raise InputError("settle: no request was made before")
            self._pipeline.settle(self._last, arguments.get("tokens"))
            return None
        if name == "compress":
            first, last = arguments.get("first", "m1"), arguments.get("last", "m1")
            self._pipeline.compress(key, first, last, arguments.get("summary", "what was"))
            return None
        body = _body(arguments)
        self._last = self._pipeline.handle(WIRE, body, key, _client(arguments))
        return _shown(self._last, body)

    async def probe(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if name == "sessions":
            return {"keys": list(self._pipeline.sessions)}
        if name == "clamp":
            requested, estimate = arguments.get("requested", 0), arguments.get("estimate", 0)
            cap = output_cap(estimate, self._window, self._switches)
            try:
                most = clamp(requested, estimate, self._window, self._switches)
            except InputError as error:
                return {"cap": cap, "max_tokens": 0, "refused": str(error)}
            return {"cap": cap, "max_tokens": most, "refused": ""}
        if name == "usage":
            body = json.dumps({"usage": arguments.get("usage", {})}).encode()
            return {"tokens": input_tokens(arguments.get("wire", WIRE), body, self._switches)}
        state = self._pipeline.session(arguments.get("session", "main"))
        return {
            "client": state.agent or "",
            "refs": len(state.refs),
            "blocks": len(state.blocks),
            "folds": state.fold.folds,
            "pending": state.pending is not None,
            "baseline": 0 if state.baseline is None else state.baseline.tokens,
        }

    async def close(self) -> None:
        """Nothing is held."""


def _client(arguments: Mapping[str, Any]) -> str | None:
    """The stamp on the request; `$CLIENT` is the client whose reviews are known."""
    client: str | None = arguments.get("client")
    return AGENT if client == "$CLIENT" else client


def _text(value: Any) -> str:
    """A text with the pinned constants in it. `{text: …, repeat: n}` is a long one."""
    if isinstance(value, Mapping):
        return _text(value.get("text", "")) * int(value.get("repeat", 1))
    text = str(value)
    for name, constant in _NAMES.items():
        text = text.replace(name, constant)
    return text


def _messages(rows: Sequence[Any]) -> list[dict[str, str]]:
    """`{user: text}` or `{assistant: text}`; `count: n` makes n of them, numbered."""
    out = []
    for row in rows:
        entry = dict(row)
        count = entry.pop("count", None)
        if len(entry) != 1 or next(iter(entry)) not in ("user", "assistant"):
            raise InputError(f"a message is {{user: text}} or {{assistant: text}}, not {row!r}")
        [(role, value)] = entry.items()
        texts = [_text(value)] if count is None else [f"{_text(value)} {number}" for number in range(1, count + 1)]
        out += [{"role": role, "content": text} for text in texts]
    return out


def _body(arguments: Mapping[str, Any]) -> bytes:
    system = [{"role": "system", "content": _text(arguments["system"])}] if "system" in arguments else []
    body: dict[str, Any] = {"model": "any", "messages": [*system, *_messages(arguments.get("messages", ()))]}
    if "max_tokens" in arguments:
        body["max_tokens"] = arguments["max_tokens"]
    if arguments.get("tools"):
        tools = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in arguments["tools"]]
        body["tools"] = tools
    return json.dumps(body, indent=1).encode()


def _shown(outcome: Outcome, body: bytes) -> dict[str, Any]:
    upstream = {} if outcome.body is None else json.loads(outcome.body)
    return {
        "lane": outcome.lane,
        "key": outcome.key,
        "same_bytes": outcome.body == body,
        "forked": outcome.forked,
        "rebased": outcome.rebased,
        "compress": outcome.compress,
        "refs": list(outcome.refs),
        "nudge": outcome.nudge,
        "estimate": outcome.estimate or 0,
        "max_tokens": upstream.get("max_tokens", 0),
        "message": outcome.message,
    }
