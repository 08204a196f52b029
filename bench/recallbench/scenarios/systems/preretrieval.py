"""Pre-retrieval under scenarios: one session's log, a knowledge base that can fail, real timeouts on virtual time."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from recallbench.scenarios.base import Vocabulary
from recallbench.scenarios.model import Given, Switch
from recallstack.errors import InputError
from recallstack.systems.preretrieval.billing import billed_tokens
from recallstack.systems.preretrieval.contract import Hit, RetrieverError, SearchRequest, SearchResponse
from recallstack.systems.preretrieval.engine import PreRetrieval, PreRetrievalConfig
from recallstack.systems.preretrieval.log import Event
from recallstack.systems.preretrieval.retriever import InProcessRetriever
from recallstack.systems.preretrieval.switches import Switches

SWITCHES = frozenset(one.name for one in dataclasses.fields(Switches))
_SETTINGS = frozenset(one.name for one in dataclasses.fields(PreRetrievalConfig)) - {"switches"}
_STEP = frozenset({"step", "pending"})
HANGS_S = 3_600.0
"""How long a knowledge base that hangs takes: far beyond every deadline."""

VOCABULARY = Vocabulary(
    events=frozenset({"turn/start", "turn/end", "user/message", "assistant/message", "tool/result"}),
    calls={"resume": frozenset(), "answer": frozenset({"hits"})},
    probes={
        "before-step": _STEP,
        "request": frozenset({"pending"}),
        "billed": frozenset({"tokens", "first_round", "last_round"}),
        "base": frozenset(),
    },
    faults={"base": frozenset({"none", "unreachable", "timeout", "http-500", "malformed"})},
    config=_SETTINGS,
    capabilities=frozenset({"pre-retrieval", "clock"}),
)
_MALFORMED = b'{"hits": [{"doc_id": 7}]}'


class Session:
    """One session. `resume` begins a new process over the same log."""

    def __init__(self, given: Given, switches: Mapping[str, Switch]) -> None:
        try:
            config = msgspec.convert(given.config, PreRetrievalConfig)
            self._switches = msgspec.convert(dict(switches), Switches)
        except msgspec.ValidationError as error:
            raise InputError(f"pre-retrieval settings: {error}") from None
        self._config = dataclasses.replace(config, switches=self._switches)
        self._hits = _hits(given.hits)
        self._fault = "none"
        self._asked = 0
        self._log: list[Event] = []
        self._engine = self._new()

    def _new(self) -> PreRetrieval:
        return PreRetrieval(self._config, InProcessRetriever(self._answer))

    async def _answer(self, request: SearchRequest) -> SearchResponse | bytes:
        self._asked += 1
        if self._fault == "timeout":
            await asyncio.sleep(HANGS_S)
        if self._fault == "unreachable":
            raise ConnectionRefusedError
        if self._fault == "http-500":
            raise RetrieverError("status", "the knowledge base answered HTTP 500")
        if self._fault == "malformed":
            return _MALFORMED
        return SearchResponse(hits=self._hits)

    async def event(self, kind: str, data: Mapping[str, Any]) -> None:
        self._log.append(Event(kind, data))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        if name == "resume":
            self._engine = self._new()
        else:
            self._hits = _hits(arguments.get("hits", ()))
        return None

    async def fault(self, name: str, value: Any) -> None:
        self._fault = value

    async def probe(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if name == "billed":
            one = {key: arguments.get(key, 0) for key in ("tokens", "first_round", "last_round")}
            return {"tokens": int(billed_tokens(**one, switches=self._switches))}
        if name == "base":
            return {"asked": self._asked, "failures": [e.data["kind"] for e in self._log if "failed" in e.type]}
        pending = list(arguments.get("pending", ()))
        if name == "request":
            return _request(self._engine.request(self._log, pending))
        begun = asyncio.get_running_loop().time()
        outcome = await self._engine.before_step(self._log, pending, arguments.get("step", 1))
        self._log.extend(Event(one.type, one.data) for one in outcome.events)
        return {
            "kind": outcome.kind,
            "ids": list(outcome.ids),
            "text": outcome.text,
            "truncated": outcome.truncated,
            "waited_ms": round((asyncio.get_running_loop().time() - begun) * 1000),
            "request": _request(outcome.request),
        }

    async def close(self) -> None:
        """Nothing is held: a request ends with the step that asked."""


def _request(request: SearchRequest | None) -> dict[str, Any]:
    context = request.context or () if request else ()
    return {
        "query": (request.query or "") if request else "",
        "roles": [one.role for one in context],
        "texts": [one.text for one in context],
        "lengths": [len(one.text) for one in context],
        "characters": sum(len(one.text) for one in context),
    }


def _hits(rows: Any) -> tuple[Hit, ...]:
    """Hits as a scenario writes them: everything but doc_id has a default; `repeat` makes a long snippet."""
    out = []
    for row in rows:
        one = {"title": "", "path": "", "snippet": "", "score": 1.0, "source": "kb", **row}
        one["snippet"] *= one.pop("repeat", 1)
        try:
            out.append(msgspec.convert(one, Hit))
        except msgspec.ValidationError as error:
            raise InputError(f"given.hits: {error}") from None
    return tuple(out)
