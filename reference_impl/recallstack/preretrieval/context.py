"""What is sent to the knowledge base: the bounded conversation (mode context) or the task's head (mode rule)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from recallstack.preretrieval.contract import ContextEntry, Role
from recallstack.preretrieval.log import LogEvent, from_plugin, message_text
from recallstack.preretrieval.switches import NO_SWITCHES, Switches

CONTEXT_CHARS, ENTRY_CHARS, TOOL_CHARS = 2000, 800, 200
"""Characters in all, of one entry, of one tool result (seed 004 and its public code)."""
QUERY_CHARS = 800
"""Characters of the task that mode rule sends (public code)."""
_ROLES: dict[str, Role] = {"user/message": "user", "assistant/message": "assistant", "tool/result": "tool"}
_JOINER = "\u200d"


def clean(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced, so that it can be encoded."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def cut(text: str, limit: int) -> str:
    """At most `limit` code points of a text, ending at a whole character.

    An accent, a variation selector, a skin tone, a joined emoji or a flag stays with what it belongs to.
    """
    text = clean(text)
    end = max(0, limit)
    if len(text) <= end:
        return text
    while end > 0 and _inside(text, end):
        end -= 1
    return text[:end]


def _inside(text: str, place: int) -> bool:
    """Whether a cut before `place` would split one visible character."""
    after, before = text[place], text[place - 1]
    if after == _JOINER or before == _JOINER or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    if _flag(after) and _flag(before):
        start = place
        while start > 0 and _flag(text[start - 1]):
            start -= 1
        return (place - start) % 2 == 1
    return unicodedata.category(after) in ("Mn", "Me", "Mc")


def _flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def rule_query(pending: Sequence[str], limit: int = QUERY_CHARS) -> str:
    """Mode rule: the first `limit` characters of the task, its pending messages a line each."""
    return cut("\n".join(pending).strip(), limit)


def fold(
    log: Sequence[LogEvent], pending: Sequence[str], limit: int = CONTEXT_CHARS, switches: Switches = NO_SWITCHES
) -> tuple[ContextEntry, ...]:
    """Mode context: the newest entries that fit in `limit` characters, oldest first, pending messages last.

    The newest entry is served first, pending messages before the log; the oldest that still has room is cut.
    Messages that plugins injected (our own among them) are no part of the conversation.
    """
    entries: list[ContextEntry] = []
    room = limit
    for role, text, name in _newest_first(log, pending, switches):
        ignored = switches.tool_entry_ignored if role == "tool" else switches.context_entry_ignored
        bound = len(text) if ignored else TOOL_CHARS if role == "tool" else ENTRY_CHARS
        text = cut(text, bound if switches.context_total_ignored else min(bound, room))
        if not text:
            break
        entries.append(ContextEntry(role, text, name))
        room -= len(text)
    return tuple(reversed(entries))


def _newest_first(
    log: Sequence[LogEvent], pending: Sequence[str], switches: Switches
) -> Iterator[tuple[Role, str, str | None]]:
    """Role, text and tool name of each message that holds text."""
    for text in reversed(pending):
        if text.strip():
            yield "user", clean(text.strip()), None
    for event in reversed(log):
        role = _ROLES.get(event.type)
        if role is None or (from_plugin(event) and not switches.own_injection_in_context):
            continue
        text = clean(message_text(event.data))
        if text:
            name = event.data.get("name") if role == "tool" else None
            yield role, text, name if isinstance(name, str) else None
