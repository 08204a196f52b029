"""The documented memory plugin under scenarios: session log, query vector, injection, search."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
import numpy as np

from recallbench.scenarios.base import Vocabulary
from recallbench.scenarios.faults import FAULTS
from recallbench.scenarios.model import Given, Switch
from recallstack.errors import InputError
from recallstack.ranking.candidates import Candidates
from recallstack.ranking.channels import Retrieved, retrieve
from recallstack.ranking.channels.vector import VectorIndex, search
from recallstack.ranking.injection import Scope
from recallstack.ranking.pipeline import Answer, Query, answer
from recallstack.ranking.recipes import INJECTION_SWITCHES, InjectRecipe, SearchRecipe, from_dict
from recallstack.ranking.rows import Corpus, Memory
from recallstack.ranking.specs import ChannelSpec, VectorSpec
from recallstack.systems.session.block import BlockConfig
from recallstack.systems.session.clock import RealClock
from recallstack.systems.session.log import CLAIMED, NOTIFICATIONS, REWOUND, SPLICED, SURFACE, TURN_END, SessionLog
from recallstack.systems.session.prefetch import QueryVectors
from recallstack.systems.session.query import LiveQueries
from recallstack.systems.session.sources import LiveSource
from recallstack.systems.session.switches import Switches
from recallstack.systems.session.turn import InjectionSession

_SEARCH = frozenset({"recipe", "mode", "k", "weighted", "channels", "pool"})
_INJECT = frozenset({"max_items", "importance_threshold", "scope", "selective_rerank", "drop_superseded", "floor"})
_OWN = frozenset({"bm25", "timeout_ms", "block_chars", "entry_chars"})
_SESSION = frozenset(one.name for one in dataclasses.fields(Switches))
_RECIPE = frozenset({"like_override", "blend_as_rrf", "keyword_mode_fused", "scope_off", "one_item_more"})
_KERNEL = frozenset(
    {"multiplier_squared", "unembedded_raw_scale", "filter_after_cut", "gate_open", "rule_order_reversed"}
)
SWITCHES = _SESSION | _RECIPE | _KERNEL | frozenset(INJECTION_SWITCHES)
FAR_MS = 3_600_000
"""Latency of an embedder that hangs."""

VOCABULARY = Vocabulary(
    events=SURFACE | NOTIFICATIONS | {SPLICED, TURN_END, REWOUND},
    calls={
        "prefetch": frozenset({"query"}),
        "wait": frozenset({"query", "timeout_ms"}),
        "claim-elsewhere": frozenset({"session", "text"}),
    },
    probes={
        "search": frozenset({"query", "top_k"}),
        "inject": frozenset({"query"}),
        "pools": frozenset({"query"}),
        "assemble": frozenset({"step"}),
        "query": frozenset(),
        "vectors": frozenset({"query"}),
    },
    faults={"embed": frozenset({"none", "error", "empty", "timeout"}), "embed_ms": None},
    config=_SEARCH | _INJECT | _OWN | {"agent", "workspace"},
    capabilities=frozenset({"search", "inject", "session", "prefetch", "vectors", "clock"}),
)


class Embedder:
    """The embeddings that a scenario gives, with a latency, and faults."""

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self.fault, self.latency_ms = "none", 0.0
        self._vectors = {text.strip(): list(vector) for text, vector in vectors.items()}
        lengths = {len(one) for one in self._vectors.values()}
        if len(lengths) > 1:
            raise InputError(f"given.vectors have {sorted(lengths)} dimensions; all must have the same")
        self.dimensions = lengths.pop() if lengths else 1

    def of(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """float64 `[n, d]`: all zero for a text that was given no vector."""
        zero = [0.0] * self.dimensions
        rows = [self._vectors.get(text.strip(), zero) for text in texts]
        return np.asarray(rows, np.float64).reshape(len(texts), self.dimensions)

    async def __call__(self, query: str) -> Sequence[float] | None:
        fault = self.fault  # of the moment of the request, whatever happens while it is under way
        await asyncio.sleep((FAR_MS if fault == "timeout" else self.latency_ms) / 1000)
        if fault == "error":
            raise ConnectionError
        return None if fault == "empty" else self._vectors.get(query.strip())


def corpus_of(rows: Sequence[Mapping[str, Any]]) -> Corpus:
    """The given memories. Raises InputError with the place of a row that is none."""
    memories = []
    for number, row in enumerate(rows):
        try:
            memories.append(msgspec.convert(dict(row), Memory))
        except msgspec.ValidationError as error:
            raise InputError(f"given.memories[{number}]: {error}") from None
    return Corpus.of("main", memories)


class Session:
    """One session of the plugin over the given memories."""

    def __init__(self, given: Given, switches: Mapping[str, Switch]) -> None:
        config = dict(given.config)
        self._faults = ExitStack()
        self._corpus = corpus_of(given.memories)
        self._embedder = Embedder(given.vectors)
        self._index = VectorIndex(self._embedder.of(self._corpus.texts))
        try:
            self._recipe, self._inject = recipes(config, switches)
            own = Switches(**{name: bool(value) for name, value in switches.items() if name in _SESSION})
            chars = {
                key: config[name]
                for key, name in (("max_chars", "block_chars"), ("entry_chars", "entry_chars"))
                if name in config
            }
            for name in switches.keys() & FAULTS.keys():
                self._faults.enter_context(FAULTS[name]())
            self._vectors = QueryVectors(self._embedder, RealClock(), own)
            self._session = InjectionSession(
                self._inject,
                LiveSource(self._corpus, self._inject, self._embedder.of(self._corpus.texts)),
                self._vectors,
                log=SessionLog(now_ms=lambda: self._vectors.clock.now_ms),
                live=LiveQueries(own),
                scope=Scope(config.get("agent"), config.get("workspace")),
                block=BlockConfig(**chars),
                switches=own,
                **({"timeout_ms": config["timeout_ms"]} if "timeout_ms" in config else {}),
            )
        except BaseException:
            self._faults.close()
            raise

    async def event(self, kind: str, data: Mapping[str, Any]) -> None:
        self._session.log.receive(kind, data)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        query = arguments.get("query", "")
        if name == "prefetch":
            self._vectors.start(query)
            return None
        if name == "claim-elsewhere":
            other = SessionLog(arguments.get("session", "other"), lambda: self._vectors.clock.now_ms)
            other.listen(self._session.live.notice)
            other.receive(CLAIMED, {"message": {"role": "user", "text": arguments.get("text", "")}})
            return None
        vector = await self._vectors.wait(query, arguments.get("timeout_ms", 2_000))
        return {"vector": [] if vector is None else vector.tolist()}

    async def fault(self, name: str, value: Any) -> None:
        if name == "embed":
            self._embedder.fault = value
        else:
            self._embedder.latency_ms = float(value)

    async def probe(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if name == "search":
            return self._search(arguments.get("query", ""), arguments.get("top_k", 5))
        if name == "query":
            return {"live": len(self._session.live), "text": self._session.query()}
        if name == "vectors":
            vectors, query = self._vectors, arguments.get("query", "")
            return {
                "requests": vectors.requests,
                "failures": vectors.failures,
                "in_flight": vectors.in_flight,
                "timers": vectors.clock.pending_timers,
                "kept": len(vectors),
                "cached": vectors.cached(query) is not None,
                "blocked": vectors.blocked(query),
            }
        if name in ("inject", "pools"):
            query = arguments.get("query", "")
            [vector] = self._embedder.of([query])
            got, _ = self._session.inject(query, vector if vector.any() else None)
            if name == "pools":
                return {stage: self._rows(rows)["ids"] for stage, rows in got.stages.items()}
            return self._rows(got.final)
        one = await self._session.assemble(arguments.get("step", 1))
        return {
            "query": one.query,
            "vector": one.vector,
            "waited_ms": one.waited_ms,
            "ids": list(one.ids),
            "semantic": [name for name, yes in zip(one.ids, one.semantic, strict=True) if yes],
            "text": one.block.text,
            "characters": len(one.block.text),
            "whole": not any("\ud800" <= char < "\ue000" for char in one.block.text),
            "prompt": in_prompt(one.block.text),
        }

    def _search(self, query: str, top_k: int) -> dict[str, Any]:
        return self._rows(self.searched(query, top_k).final)

    def searched(self, query: str, top_k: int) -> Answer:
        """The search tool's answer to one query, with the lists of every stage."""
        return answer(self._corpus, [Query(query)], self._recipe, top_k, self._retrieve)

    def _rows(self, rows: Candidates) -> dict[str, Any]:
        [found] = rows.to_lists()
        return {"ids": [str(self._corpus.ids[row]) for row, _ in found], "scores": [score for _, score in found]}

    def _retrieve(self, corpus: Corpus, queries: Sequence[str], spec: ChannelSpec, depth: int) -> Retrieved:
        if isinstance(spec, VectorSpec):
            return search(self._index, queries, self._embedder.of(queries), spec, depth)
        return retrieve(corpus, queries, spec, depth)

    async def close(self) -> None:
        self._faults.close()
        await self._session.close()


def in_prompt(text: str) -> str:
    """The prompt after the host's template engine ran over it, or what it said: `{{name}}` names a value it has."""
    head, found, rest = text.partition("{{")
    if found:
        return f"error: no value for {rest.partition('}}')[0]!r}"
    return head


def recipes(config: Mapping[str, Any], switches: Mapping[str, Switch]) -> tuple[SearchRecipe, InjectRecipe]:
    """The search and the injection recipe of a scenario. Raises InputError for a setting out of range."""
    variant = config.get("bm25", "lucene")
    k = switches.get("k", config.get("k", 60))
    method = "rrf" if "blend_as_rrf" in switches else config.get("recipe", "rrf")
    pool = switches.get("pool", config.get("pool"))
    searched = {
        "name": "scenario",
        "channels": config.get("channels", ["keyword", "vector", "bm25"]),
        "bm25": {"variant": variant, "normalise": method != "rrf"},
        "fusion": {
            "method": method,
            "mode": "auto" if "keyword_mode_fused" in switches else config.get("mode", "auto"),
            "k": k,
            "weighted": config.get("weighted", False),
            "like_override": switches.get("like_override", False),
        },
        **({} if pool is None else {"pool": pool}),
    }
    injected = {
        "kind": "inject",
        "name": "scenario",
        "k": k,
        "bm25": {"variant": variant},
        **{name: config[name] for name in _INJECT if name in config},
        **{name: switches[name] for name in INJECTION_SWITCHES if name in switches},
        **({"scope": "off"} if "scope_off" in switches else {}),
        **({"max_items": config.get("max_items", 5) + 1} if "one_item_more" in switches else {}),
    }
    one, two = from_dict(searched, "given.config"), from_dict(injected, "given.config")
    assert isinstance(one, SearchRecipe)
    assert isinstance(two, InjectRecipe)
    return one, two
