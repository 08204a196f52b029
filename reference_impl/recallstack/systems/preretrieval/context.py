"""What is sent to the knowledge base: the bounded conversation (mode context) or the task's head (mode rule)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recallstack.ranking.text import clean, cut
from recallstack.systems.preretrieval.contract import ContextEntry, Role
from recallstack.systems.preretrieval.log import LogEvent, from_plugin, message_text
from recallstack.systems.preretrieval.switches import NO_SWITCHES, Switches

CONTEXT_CHARS, ENTRY_CHARS, TOOL_CHARS = 2000, 800, 200
"""Characters in all, of one entry, of one tool result (seed 004 and its public code)."""
QUERY_CHARS = 800
"""Characters of the task that mode rule sends (public code)."""
_ROLES: dict[str, Role] = {"user/message": "user", "assistant/message": "assistant", "tool/result": "tool"}


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
        whole = text if ignored else cut(text, TOOL_CHARS if role == "tool" else ENTRY_CHARS)
        kept = whole if switches.context_total_ignored else cut(whole, room)
        if kept:
            entries.append(ContextEntry(role, kept, name))
        if kept != whole:  # nothing older takes the place of what was cut
            break
        room -= len(kept)
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
            yield role, text, cut(name, TOOL_CHARS) if isinstance(name, str) else None
