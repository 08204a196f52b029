"""Pre-retrieval before a step: whether to ask, what to ask, what of the answer is injected.

The engine keeps no state: it reads the session log and returns the events that the host must append to it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from recallstack.errors import InputError
from recallstack.systems.preretrieval.context import CONTEXT_CHARS, QUERY_CHARS, fold, rule_query
from recallstack.systems.preretrieval.contract import (
    TOP_K_LIMIT,
    Hit,
    RetrieverError,
    SearchRequest,
    SearchResponse,
    check_response,
    encode,
)
from recallstack.systems.preretrieval.log import FAILED, IDS_SECTION, PLUGIN, Event, LogEvent
from recallstack.systems.preretrieval.render import Rendered, render
from recallstack.systems.preretrieval.retriever import Retriever
from recallstack.systems.preretrieval.state import State, rebuild, write_ids
from recallstack.systems.preretrieval.switches import Switches


@dataclass(frozen=True, slots=True, kw_only=True)
class PreRetrievalConfig:
    """Settings; the defaults are the documented ones (seed 004).

    query_mode: `context` sends the bounded conversation, `rule` the first `query_chars` of the task.
    inject_mode: `once` asks in turn 1 only, `per-turn` in every turn, for documents not injected before.
    min_score: lowest score that stays. timeout_s: seconds. All `_chars` are code points.
    sources, scope: passed on as they are.
    """

    query_mode: Literal["context", "rule"] = "context"
    inject_mode: Literal["once", "per-turn"] = "once"
    top_k: int = 3
    max_chars: int = 4000
    min_score: float = 0.2
    query_chars: int = QUERY_CHARS
    context_max_chars: int = CONTEXT_CHARS
    timeout_s: float = 3.0
    sources: tuple[str, ...] | None = None
    scope: Mapping[str, Any] | None = None
    switches: Switches = field(default_factory=Switches)

    def __post_init__(self) -> None:
        if self.query_mode not in ("context", "rule"):
            raise InputError(f"pre-retrieval: query_mode is {self.query_mode!r}; use context or rule")
        if self.inject_mode not in ("once", "per-turn"):
            raise InputError(f"pre-retrieval: inject_mode is {self.inject_mode!r}; use once or per-turn")
        if not 1 <= self.top_k <= TOP_K_LIMIT:
            raise InputError(f"pre-retrieval: top_k is {self.top_k}; it must be from 1 to {TOP_K_LIMIT}")
        for name in ("max_chars", "query_chars", "context_max_chars"):
            if getattr(self, name) < 1:
                raise InputError(f"pre-retrieval: {name} is {getattr(self, name)}; it must be at least 1")
        if not math.isfinite(self.min_score):
            raise InputError(f"pre-retrieval: min_score is {self.min_score}; it must be a finite number")
        if not (math.isfinite(self.timeout_s) and self.timeout_s > 0):
            raise InputError(f"pre-retrieval: timeout_s is {self.timeout_s}; it must be a number above 0")
        try:  # now, because a request that cannot be sent would be met in the middle of a task
            encode(SearchRequest(query="x", top_k=self.top_k, sources=self.sources, scope=self._scope()))
        except (InputError, TypeError, ValueError, RecursionError) as error:
            raise InputError(f"pre-retrieval: sources or scope cannot be sent as JSON: {error}") from None

    def _scope(self) -> dict[str, Any] | None:
        return None if self.scope is None else dict(self.scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What happened before a step, and what the host appends to its log (`events`, in order).

    kind: `skipped` (nothing was asked), `nothing` (no hit stayed), `injected`, `failed`. reason: why, in one
    line, for people. request: what was asked. text, ids, truncated: what was injected.
    """

    kind: Literal["skipped", "nothing", "injected", "failed"]
    turn: int
    reason: str = ""
    request: SearchRequest | None = None
    text: str = ""
    ids: tuple[str, ...] = ()
    truncated: bool = False
    events: tuple[Event, ...] = ()


class PreRetrieval:
    """Pre-retrieval of one session, over any retriever."""

    def __init__(self, config: PreRetrievalConfig, retriever: Retriever) -> None:
        self.config = config
        self._retriever = retriever
        self._first_seen: int | None = None

    async def before_step(self, log: Sequence[LogEvent], pending: Sequence[str], step: int) -> Outcome:
        """Run before step `step` (1-based) of the turn that `log` is in.

        log: every event of the session, oldest first. pending: texts of the user's messages that the turn was
        started with and that are not in the log yet, oldest first. A knowledge base that fails never raises
        here: the outcome is `failed`, nothing is injected, and the mark is among the events.
        """
        switches = self.config.switches
        state = self._state(log)
        if step > 1 and not switches.every_step_retrieves:
            return Outcome(kind="skipped", turn=state.turn, reason="only step 1 of a turn retrieves")
        why_not = self._why_not(state) if step == 1 else ""
        if why_not:
            return Outcome(kind="skipped", turn=state.turn, reason=why_not)
        request = self.request(log, pending)
        if request is None:
            return Outcome(kind="skipped", turn=state.turn, reason="there is no text to ask with")
        try:
            response = await self._ask(request)
        except RetrieverError as error:
            if error.kind == "status" and switches.http_500_raises:
                raise
            if error.kind == "malformed" and switches.malformed_raises:
                raise
            return self._failed(state, request, error)
        return self._inject(state, request, response)

    def request(self, log: Sequence[LogEvent], pending: Sequence[str]) -> SearchRequest | None:
        """What would be asked now; None without any text to ask with."""
        config = self.config
        query = rule_query(pending, config.query_chars) if config.query_mode == "rule" else None
        context = None
        if config.query_mode == "context":
            context = fold(log, pending, config.context_max_chars, config.switches)
        if not query and not context:
            return None
        return SearchRequest(
            query=query, context=context, top_k=config.top_k, sources=config.sources, scope=config._scope()
        )

    def select(self, hits: Sequence[Hit], injected: Sequence[str] = ()) -> list[Hit]:
        """The hits that stay: `min_score`, then no document again, then the first `top_k`.

        injected: documents that the session had before; only mode per-turn can come here with any.
        """
        switches, top_k = self.config.switches, self.config.top_k
        seen = set() if switches.per_turn_repeats_ids or self.config.inject_mode == "once" else set(injected)
        kept: list[Hit] = []
        for hit in hits[:top_k] if switches.cut_before_filter else hits:
            if not self._good(hit.score) or hit.doc_id in seen:
                continue
            if not switches.repeats_kept:
                seen.add(hit.doc_id)
            kept.append(hit)
        return kept[:top_k]

    def _good(self, score: float) -> bool:
        switches, least = self.config.switches, self.config.min_score
        if switches.min_score_ignored:
            return True
        return score > least if switches.min_score_exclusive else score >= least

    def _state(self, log: Sequence[LogEvent]) -> State:
        if self._first_seen is None:
            self._first_seen = len(log)
        return rebuild(log[self._first_seen :] if self.config.switches.resume_forgets else log)

    def _why_not(self, state: State) -> str:
        """Why step 1 of this turn does not ask, or nothing."""
        if self.config.inject_mode == "per-turn":
            if state.turn in state.failed_turns:
                return "retrieval failed in this turn"
            return "this turn has its injection" if state.turn in state.injected_turns else ""
        if state.failed_turns:
            return "retrieval failed in this session"
        if self.config.switches.once_ignored:
            return ""
        if state.turn > 1:
            return "mode once asks in turn 1 only"
        return "this session has its injection" if state.injected_turns else ""

    async def _ask(self, request: SearchRequest) -> SearchResponse:
        deadline = None if self.config.switches.timeout_blocks else self.config.timeout_s
        try:
            async with asyncio.timeout(deadline):
                return check_response(await self._retriever.retrieve(request), request.top_k)
        except TimeoutError:
            raise RetrieverError("timeout", f"no answer within {self.config.timeout_s:g} s") from None
        except OSError as error:
            raise RetrieverError("unreachable", f"not reached: {type(error).__name__}") from error

    def _failed(self, state: State, request: SearchRequest, error: RetrieverError) -> Outcome:
        once = self.config.inject_mode == "once"
        switches = self.config.switches
        unmarked = switches.failure_not_marked_once if once else switches.failure_not_marked_turn
        mark = Event(FAILED, {"turn": state.turn, "kind": error.kind})
        return Outcome(
            kind="failed",
            turn=state.turn,
            reason=str(error),
            request=request,
            events=() if unmarked else (mark,),
        )

    def _inject(self, state: State, request: SearchRequest, response: SearchResponse) -> Outcome:
        hits = self.select(response.hits, state.injected)
        shown = render(hits, None if self.config.switches.max_chars_ignored else self.config.max_chars)
        if not shown.ids:
            return Outcome(kind="nothing", turn=state.turn, reason="no new hit stayed", request=request)
        return Outcome(
            kind="injected",
            turn=state.turn,
            request=request,
            text=shown.text,
            ids=shown.ids,
            truncated=shown.truncated,
            events=(_message(shown, state.turn),),
        )


def _message(shown: Rendered, turn: int) -> Event:
    """The injected message: the shape that the public plugin writes, with the turn and whether it was cut."""
    source = {
        "kind": "plugin",
        "plugin": PLUGIN,
        "form": "snapshot",
        "turn": turn,
        "truncated": shown.truncated,
        "sections": [
            {"name": PLUGIN, "text": shown.text},
            {"name": IDS_SECTION, "text": write_ids(shown.ids)},
        ],
    }
    return Event("user/message", {"content": [{"type": "text", "text": shown.text}], "source": source})
