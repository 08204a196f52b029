"""The session log of the documented host: events with sequence numbers, and which of them are on the surface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recallstack.errors import InputError
from recallstack.systems.preretrieval.log import message_text, source_of

SPLICED = "agent/inbox/spliced"
"""What was put into or taken from the inbox: data `{inserted: [message], removedCount?, outcome?}`."""
USER, ASSISTANT, TOOL = "user/message", "assistant/message", "tool/result"
TURN_END = "turn/end"
CLAIMED = "agent/inbox/claimed"
"""A message was taken from the inbox for the step that begins: data `{message}`."""
PRE_STEP = "agent/pre-step"
"""Whether a step begins: data `{decision: enter | reject}` or `{decision: {kind, messages?}}`, `messages?`."""
REWOUND = "session/rewound"
"""Events left the surface: data `{seqs: [seq]}`, or `{from: seq}` for all from there on (our own name for it)."""
CANCELED = "canceled"

SURFACE = frozenset({USER, ASSISTANT, TOOL})
"""Events that are on the surface when they are appended. Splices never are."""
NOTIFICATIONS = frozenset({CLAIMED, PRE_STEP})
"""They reach listeners and are never appended."""


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """One event. seq: 0-based, without gaps. time_ms: milliseconds of the session's clock."""

    seq: int
    type: str
    data: Mapping[str, Any]
    time_ms: float


Listener = Callable[["SessionLog", str, Mapping[str, Any]], None]
"""Called with the log, the type and the data of each notification."""


class SessionLog:
    """The log of one session.

    events: oldest first; only ever grows. visible: sequence numbers on the surface, which a rewind takes away.
    """

    def __init__(self, session_id: str = "session", now_ms: Callable[[], float] = lambda: 0.0) -> None:
        self.id = session_id
        self.events: list[SessionEvent] = []
        self.visible: set[int] = set()
        self._now_ms = now_ms
        self._listeners: list[Listener] = []

    @property
    def turn(self) -> int:
        """The turn that runs or is about to start, 1-based: one more than the turns that ended."""
        return 1 + sum(event.type == TURN_END for event in self.events)

    @property
    def now_ms(self) -> float:
        """Milliseconds of the session's clock."""
        return self._now_ms()

    def listen(self, listener: Listener) -> None:
        """Call `listener` for every notification from now on."""
        self._listeners.append(listener)

    def receive(self, kind: str, data: Mapping[str, Any]) -> SessionEvent | None:
        """What the host says: a notification reaches listeners, a rewind changes the surface, the rest is appended.

        Raises InputError for an event that has not the documented shape, or a rewind of what is not in the log.
        """
        check(kind, data)
        if kind in NOTIFICATIONS:
            for listener in self._listeners:
                listener(self, kind, data)
            return None
        if kind == REWOUND:
            self.rewind(data["seqs"] if "seqs" in data else {data["from"], *range(data["from"], len(self.events))})
            return None
        event = SessionEvent(len(self.events), kind, data, self._now_ms())
        self.events.append(event)
        if kind in SURFACE:
            self.visible.add(event.seq)
        return event

    def rewind(self, seqs: Iterable[int]) -> None:
        """Take events off the surface; they stay in the log. Raises InputError for a number that is not in the log."""
        gone = set(seqs)
        unknown = sorted(one for one in gone if not 0 <= one < len(self.events))
        if unknown:
            raise InputError(
                f"session {self.id!r}: rewind of event {unknown[0]}; the log has the {len(self.events)} from 0 on"
            )
        self.visible -= gone


def check(kind: str, data: Mapping[str, Any]) -> None:
    """Raises InputError where an event has not the documented shape."""
    if kind == SPLICED:
        new, removed = data.get("inserted", []), data.get("removedCount", 0)
        if not isinstance(new, (list, tuple)) or not all(map(_is_message, new)):
            raise InputError(f"{kind}: data.inserted must be a list of messages, such as {_EXAMPLE}")
        if type(removed) is not int or removed < 0:
            raise InputError(f"{kind}: data.removedCount is {removed!r}; it must be a whole number from 0 on")
    elif kind in SURFACE and not _is_message(data):
        raise InputError(f"{kind}: data must be a message, such as {_EXAMPLE}")
    elif kind == CLAIMED and not _is_message(data.get("message")):
        raise InputError(f"{kind}: data.message must be a message, such as {_EXAMPLE}")
    elif kind == PRE_STEP and not (decision(data) and all(map(_is_message, messages_of(data)))):
        raise InputError(f"{kind}: data.decision must be enter or reject, or {{kind: enter, messages: [message]}}")
    elif kind == REWOUND and not _rewinds(data):
        raise InputError(f"{kind}: give data.seqs, a list of sequence numbers, or data.from, the first of them")


_EXAMPLE = "{role: user, text: hello}"


def _is_message(value: object) -> bool:
    """Whether `message_text` can read it: a text, or a list of blocks, or a message inside."""
    if not isinstance(value, Mapping):
        return False
    inner = value.get("message", "")
    content = value.get("text", value.get("content", ""))
    return isinstance(content, (str, list, tuple)) and (isinstance(inner, str) or _is_message(inner))


def messages_of(data: Mapping[str, Any]) -> list[Any]:
    """The messages that a notification carries, oldest first: `message`, `messages`, `decision.messages`."""
    said = data.get("decision")
    inner = said.get("messages") if isinstance(said, Mapping) else None
    return [*([data["message"]] if "message" in data else ()), *(data.get("messages") or ()), *(inner or ())]


def _rewinds(data: Mapping[str, Any]) -> bool:
    seqs = data.get("seqs", [data.get("from")])
    return isinstance(seqs, (list, tuple)) and all(type(one) is int for one in seqs)


def decision(data: Mapping[str, Any]) -> str:
    """The decision of a pre-step; empty where there is none."""
    value = data.get("decision")
    kind = value.get("kind") if isinstance(value, Mapping) else value
    return kind if isinstance(kind, str) else ""


def from_user(message: Mapping[str, Any]) -> bool:
    """Whether the user wrote a message: no other role, and no source but the user (a plugin's injection has one)."""
    return bool(message.get("role", "user") == "user" and source_of(message).get("kind", "user") == "user")


def user_text(message: Mapping[str, Any], plugins_too: bool = False) -> str:
    """The text of a message of the user; empty for anyone else's, unless `plugins_too`."""
    return message_text(message) if plugins_too or from_user(message) else ""


def inserted(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The messages that a splice put in, oldest first."""
    return tuple(data.get("inserted") or ())


def withdraws(data: Mapping[str, Any]) -> tuple[bool, bool]:
    """(outcome is canceled, removedCount is above 0) of a splice."""
    return data.get("outcome") == CANCELED, (data.get("removedCount") or 0) > 0
