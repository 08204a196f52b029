"""What the documented host does to a session's log, one operation a method, in the shapes that it writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from recallstack.errors import InputError
from recallstack.systems.session.log import (
    ASSISTANT,
    CANCELED,
    CLAIMED,
    PRE_STEP,
    REWOUND,
    SPLICED,
    TOOL,
    TURN_END,
    USER,
    SessionEvent,
    SessionLog,
)

Message = Mapping[str, Any]


def message(text: str, plugin: str = "") -> Message:
    """A message as the host writes it; the user's own, or one that a plugin put in."""
    source = {"kind": "plugin", "plugin": plugin} if plugin else {"kind": "user"}
    return {"role": "user", "content": [{"type": "text", "text": text}], "source": source}


class Host:
    """The host of one session. Each operation raises InputError where the host could not do it.

    inbox: messages that wait, oldest first. claimed: messages taken for the step that begins.
    durable_claims: a claim also appends the removal of what it took (`removedCount`, no outcome), as newer hosts do.
    """

    def __init__(self, log: SessionLog, durable_claims: bool = False) -> None:
        self.log = log
        self.inbox: list[Message] = []
        self.claimed: list[Message] = []
        self._durable_claims = durable_claims

    def splice(self, *messages: str | Message) -> None:
        """Put messages at the end of the inbox, in one splice."""
        new = [message(one) if isinstance(one, str) else one for one in messages]
        self.inbox.extend(new)
        self.log.receive(SPLICED, {"inserted": new})

    def cancel(self, place: int = -1) -> Message:
        """Withdraw a waiting message, the newest by default; the message."""
        gone = self._take(place, "withdraw")
        self.log.receive(SPLICED, {"inserted": [], "removedCount": 1, "outcome": CANCELED})
        return gone

    def replace(self, new: str | Message, place: int = -1) -> Message:
        """Edit a waiting message: one splice that removes it and inserts the new one; the old message."""
        gone = self._take(place, "edit")
        put = message(new) if isinstance(new, str) else new
        self.inbox.insert(len(self.inbox) if place == -1 else place, put)
        self.log.receive(SPLICED, {"inserted": [put], "removedCount": 1, "outcome": CANCELED})
        return gone

    def claim(self) -> Message:
        """Take the message that has waited longest for the step that begins, and tell the listeners; the message."""
        taken = self._take(0, "claim")
        self.claimed.append(taken)
        if self._durable_claims:
            self.log.receive(SPLICED, {"inserted": [], "removedCount": 1})
        self.log.receive(CLAIMED, {"message": taken, "turn": self.log.turn})
        return taken

    def pre_step(self, kind: Literal["enter", "reject"] = "enter") -> None:
        """Tell the listeners whether the step begins, with what was claimed for it; a reject drops what was claimed."""
        self.log.receive(PRE_STEP, {"decision": {"kind": kind, "messages": list(self.claimed)}})
        if kind == "reject":
            self.claimed.clear()

    def append_claimed(self) -> list[SessionEvent]:
        """Append what was claimed as user messages, which happens only after the prompt was assembled."""
        events = [self._append(USER, one) for one in self.claimed]
        self.claimed.clear()
        return events

    def assistant(self, text: str) -> SessionEvent:
        """Append an answer of the model."""
        return self._append(ASSISTANT, {"message": {"role": "assistant", "content": [{"type": "text", "text": text}]}})

    def tool(self, text: str, name: str = "tool") -> SessionEvent:
        """Append the result of a tool."""
        return self._append(TOOL, {"name": name, "message": {"role": "tool", "content": text}})

    def inject(self, text: str, plugin: str = "plugin") -> SessionEvent:
        """Append a user message that a plugin put in."""
        return self._append(USER, message(text, plugin))

    def rewind(self, seq: int) -> None:
        """Take this event and all after it off the surface."""
        self.log.receive(REWOUND, {"from": seq})

    def end_turn(self) -> SessionEvent:
        """End the turn; what was claimed and not appended is gone."""
        self.claimed.clear()
        return self._append(TURN_END, {"turn": self.log.turn})

    def _append(self, kind: str, data: Mapping[str, Any]) -> SessionEvent:
        event = self.log.receive(kind, data)
        assert event is not None  # none of these is a notification
        return event

    def _take(self, place: int, what: str) -> Message:
        if not -len(self.inbox) <= place < len(self.inbox):
            raise InputError(f"session {self.log.id!r}: nothing waits in the inbox at {place} to {what}")
        return self.inbox.pop(place)
