"""The wiring: from a body to what goes upstream, and what that does to the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import msgspec

from recallstack.errors import InputError
from recallstack.systems.lane.clamp import WINDOW, clamp, output_cap
from recallstack.systems.lane.classify import classify, identity_evidence
from recallstack.systems.lane.estimate import estimate_input
from recallstack.systems.lane.rebase import needs_rebase, rebase
from recallstack.systems.lane.request import Request, message_ids
from recallstack.systems.lane.resolver import persona, resolve
from recallstack.systems.lane.session import Baseline, Compress, Session, fold_pending, refs_of, with_refs
from recallstack.systems.lane.switches import NO_SWITCHES, Switches
from recallstack.systems.lane.wires import Wire, parse, set_limit

Folded = Literal["none", "done", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a request.

    lane: `side` (passed through, touched nothing), `main`, `refused` (nothing goes upstream; `message` says why).
    body: what goes upstream, None when refused. key: of the session that it belongs to; of a side request, the
    session beside which it runs. forked: that session is a sub-session, made or found for this request.
    rebased: its state was wiped. compress: what became of a pending `compress`.
    refs: of the request's messages. nudge: the host should remind the model to compress.
    estimate: input tokens. max_tokens: most output tokens after the clamp, None where none were requested.
    ids: of the messages, for `Pipeline.settle`. A side request has none of these.
    """

    lane: Literal["side", "main", "refused"]
    key: str
    body: bytes | None = None
    message: str = ""
    forked: bool = False
    rebased: bool = False
    compress: Folded = "none"
    refs: tuple[str, ...] = ()
    nudge: bool = False
    estimate: int | None = None
    max_tokens: int | None = None
    ids: tuple[str, ...] = ()


class Pipeline:
    """Sessions in memory, by key, and the steps between a client and its provider.

    window: tokens that input and output share. How refs, blocks and nudges are shown to the model is the
    host's; the outcome names them.
    """

    def __init__(self, window: int = WINDOW, switches: Switches = NO_SWITCHES) -> None:
        if window < 1:
            raise InputError(f"lane: window is {window}; it must be at least 1 token")
        self.window = window
        self.switches = switches
        self._sessions: dict[str, Session] = {}

    @property
    def sessions(self) -> Mapping[str, Session]:
        """Every session by key, forked ones too. A view that cannot be written to."""
        return MappingProxyType(self._sessions)

    def session(self, key: str) -> Session:
        """A session. Raises InputError where no request has made it."""
        if key not in self._sessions:
            raise InputError(f"lane: there is no session {key!r}; it starts with its first request")
        return self._sessions[key]

    def put(self, session: Session) -> None:
        """Store a session that was kept elsewhere, in place of any with its key."""
        self._sessions[session.key] = session

    def handle(self, wire: Wire, body: bytes, key: str, stamp: str | None = None) -> Outcome:
        """Handle one request. key: of its session. stamp: the client named on the request, None without one.

        Raises InputError for a body that cannot be read, and changes nothing then.
        """
        stamp = stamp or None
        request = parse(wire, body)
        session = self._sessions.get(key)
        bound = session.agent if session is not None else None
        found = classify(request, stamp, bound, self.switches)
        target = key
        # An unstamped request keeps its key; so does a review with identity evidence.
        if identity_evidence(stamp, bound, self.switches) and not found.identity:
            target = resolve(self._sessions, key, request, self.switches)
        if found.lane:
            return self._side(wire, body, target, request)
        return replace(self._main(wire, body, target, request, stamp), forked=target != key)

    def settle(self, outcome: Outcome, input_tokens: int | None) -> None:
        """Settle the usage of a request that was answered. None (an error, no usage) settles nothing.

        A side request settles nothing either. Raises InputError for a negative number.
        """
        if input_tokens is None:
            return
        if input_tokens < 0:
            raise InputError(f"lane: input tokens are {input_tokens}; they cannot be negative")
        if outcome.lane != "main" and not (outcome.lane == "side" and self.switches.side_settles):
            return
        session = self._sessions.get(outcome.key)
        if session is not None:
            self.put(msgspec.structs.replace(session, baseline=Baseline(input_tokens, outcome.ids)))

    def compress(self, key: str, first: str, last: str, summary: str) -> None:
        """The model asked to fold the messages from ref `first` to `last`; the next main request does it.

        A later call takes the place of one that is still pending. Raises InputError for an unknown session.
        """
        self.put(msgspec.structs.replace(self.session(key), pending=Compress(first, last, summary)))

    def _side(self, wire: Wire, body: bytes, key: str, request: Request) -> Outcome:
        """The passthrough. All but the return is there for the mutants."""
        switches, session = self.switches, self._sessions.get(key)
        nudge = switches.side_nudged and session is not None and self._nudge(session)
        if switches.passthrough_reencoded:
            body = msgspec.json.encode(msgspec.json.decode(body))
        if switches.side_refs and session is not None:
            self.put(with_refs(session, message_ids(request.messages)))
        if switches.side_clamped and session is not None and session.baseline is not None:
            cap = output_cap(session.baseline.tokens, self.window)
            body = set_limit(wire, body, lambda value: min(value, max(1, cap)))
        return Outcome(lane="side", key=key, body=body, nudge=nudge)

    def _main(self, wire: Wire, body: bytes, key: str, request: Request, stamp: str | None) -> Outcome:
        ids = message_ids(request.messages)
        session = self._bind(self._sessions.get(key) or Session(key=key), request, stamp)
        pending = session.pending
        rebased = needs_rebase(session, request, ids, self.switches)
        folded = False
        if rebased:
            session = rebase(session, self.switches)
        else:  # before the new messages get refs: the call speaks of those that the model saw
            session, folded = fold_pending(session)
        session = with_refs(session, ids)
        self.put(session)
        done = Outcome(
            lane="main",
            key=key,
            body=body,
            rebased=rebased,
            compress="done" if folded else "none" if pending is session.pending else "failed",
            refs=refs_of(session, ids),
            nudge=self._nudge(session),
            estimate=estimate_input(request, ids, session.baseline, self.switches),
            ids=ids,
        )
        return self._clamped(wire, body, request, done)

    def _bind(self, session: Session, request: Request, stamp: str | None) -> Session:
        if stamp is None:
            return msgspec.structs.replace(session, agent=None) if self.switches.binding_not_sticky else session
        return msgspec.structs.replace(session, agent=stamp, persona=persona(request))

    def _clamped(self, wire: Wire, body: bytes, request: Request, done: Outcome) -> Outcome:
        estimate = done.estimate or 0

        def limited(requested: int) -> int:
            return clamp(requested, estimate, self.window, self.switches)

        try:
            most = limited(request.max_tokens or 1)
        except InputError as error:
            return replace(done, lane="refused", body=None, message=str(error), nudge=False)
        if request.max_tokens is None:
            return done
        return replace(done, body=set_limit(wire, body, limited), max_tokens=most)

    def _nudge(self, session: Session) -> bool:
        """Whether the last settled usage fills half the window (choice)."""
        return session.baseline is not None and 2 * session.baseline.tokens >= self.window
