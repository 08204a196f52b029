"""Compaction framing: which message is a summary that the client put in place of its history."""

from __future__ import annotations

from collections.abc import Iterable

from recallstack.systems.lane.request import Message, Text
from recallstack.systems.lane.switches import NO_SWITCHES, Switches

PREAMBLE = "The conversation up to here was compacted. Its summary follows; continue from there."
"""The line before a summary. Pinned to one version of the client, as the review policy is."""
OPEN_TAG = "<compacted-summary>"
"""The tag that opens a summary."""


def is_summary(message: Message, switches: Switches = NO_SWITCHES) -> bool:
    """Whether the message is the user's and its text starts with the preamble or the opening tag.

    A message that quotes either further on is no summary. Not even white space may come first.
    """
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    if message.role != "user" or not texts:
        return False
    if switches.tag_anywhere:
        return any(OPEN_TAG in text or PREAMBLE in text for text in texts)
    return isinstance(message.parts[0], Text) and texts[0].startswith((PREAMBLE, OPEN_TAG))


def has_new_summary(
    messages: Iterable[Message], ids: Iterable[str], known: Iterable[str], switches: Switches = NO_SWITCHES
) -> bool:
    """Whether one of the messages is a summary that the session has not seen. ids: of the messages, in order."""
    seen = frozenset(known)
    pairs = zip(messages, ids, strict=True)
    return any(one not in seen and is_summary(message, switches) for message, one in pairs)
