"""What a step asks the memory with: the newest user text that is truly part of the turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recallstack.systems.session.log import (
    CLAIMED,
    SPLICED,
    TURN_END,
    USER,
    SessionEvent,
    SessionLog,
    decision,
    inserted,
    messages_of,
    user_text,
    withdraws,
)
from recallstack.systems.session.switches import NO_SWITCHES, Switches

LIVE_KEPT = 8
"""Live step queries that are kept, one a session (seed 000: a bounded number)."""


def last_user_query(events: Sequence[SessionEvent], visible: Collection[int], switches: Switches = NO_SWITCHES) -> str:
    """The newest user text that is pending or on the surface; empty if there is none (seed 000, point 1).

    A message appears as a splice before it is claimed, and only after the prompt was assembled as a user message.
    Walking back, a splice answers until something says that it is over: a withdrawal (its own splice included: an
    edit answers once it is claimed), any user message, visible or not, or the end of a turn.
    """
    pending = not switches.query_from_visible_messages
    oldest = ""
    for event in reversed(events):
        if event.type == SPLICED:
            if _withdrawn(event.data, switches):
                pending = False
            texts = _texts(event.data, switches) if pending else []
            if texts and not switches.oldest_splice:
                return texts[-1]
            oldest = texts[0] if texts else oldest
        elif event.type == USER:
            shown = event.seq in visible
            if shown or not switches.any_user_message_ignored:
                pending = False
            text = user_text(event.data, switches.plugin_text_counts)
            if text and (shown or switches.visible_ignored):
                return oldest or text
        elif event.type == TURN_END and not switches.turn_end_ignored:
            pending = False
    return oldest


def _withdrawn(data: Mapping[str, Any], switches: Switches) -> bool:
    canceled, removed = withdraws(data)
    if switches.cancel_ignored:
        return False
    return canceled or (removed and not switches.removed_count_ignored)


def _texts(data: Mapping[str, Any], switches: Switches) -> list[str]:
    texts = [user_text(message, switches.plugin_text_counts) for message in inserted(data)]
    return [text for text in texts if text]


@dataclass(frozen=True, slots=True)
class LiveQuery:
    """The text of a message that was just claimed. events, visible: the fingerprint of the log at that moment."""

    text: str
    events: int
    visible: int
    at_ms: float


class LiveQueries:
    """The live step query of each session: what was claimed for the step that begins, until the log moves on.

    It knows what the log does not say: a message that was queued in the last turn, or whose claim is written to
    the log as a removal, is pending for no walk back, and yet it is the one that this step answers.
    """

    def __init__(self, switches: Switches = NO_SWITCHES) -> None:
        self._switches = switches
        self._held: dict[str, LiveQuery] = {}

    def __len__(self) -> int:
        return len(self._held)

    def notice(self, log: SessionLog, kind: str, data: Mapping[str, Any]) -> None:
        """A notification (give this to `SessionLog.listen`). Only an explicit new message of the user is recorded."""
        if kind != CLAIMED and decision(data) != "enter":
            if not self._switches.live_query_survives_reject:
                self._held.pop(log.id, None)
            return
        anyone = self._switches.live_query_from_any_notification
        texts = [user_text(message, anyone) for message in messages_of(data)]
        new = next((text for text in reversed(texts) if text), "")
        if not new and anyone and log.id in self._held:
            new = self._held[log.id].text
        if new:
            self._record(log, new)

    def query(self, log: SessionLog) -> str:
        """The live query of a session while it is valid, else empty; once void it is forgotten."""
        held = self._held.get(log.id)
        if held is None:
            return ""
        same_events = held.events == len(log.events) or self._switches.live_query_ignores_events
        same_visible = held.visible == len(log.visible) or self._switches.live_query_ignores_visible
        if same_events and same_visible:
            return held.text
        del self._held[log.id]
        return ""

    def _record(self, log: SessionLog, text: str) -> None:
        self._held.pop(log.id, None)
        self._held[log.id] = LiveQuery(text, len(log.events), len(log.visible), log.now_ms)
        if len(self._held) > LIVE_KEPT and not self._switches.live_query_unbounded:
            del self._held[min(self._held, key=lambda one: self._held[one].at_ms)]  # equals: the first recorded


def step_query(log: SessionLog, live: LiveQueries, switches: Switches = NO_SWITCHES) -> str:
    """What the step that is being assembled asks with: the live query while it is valid, else the log's.

    The legacy stack has no live query.
    """
    if switches.query_from_visible_messages:
        return last_user_query(log.events, log.visible, switches)
    return live.query(log) or last_user_query(log.events, log.visible, switches)
