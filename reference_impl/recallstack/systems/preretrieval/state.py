"""Injection state, rebuilt from the session log alone, so that a resumed session never injects twice."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recallstack.systems.preretrieval.log import FAILED, IDS_SECTION, LogEvent, own_injection, source_of


@dataclass(frozen=True, slots=True)
class State:
    """What the log says.

    turn: the turn that is running or about to start, 1-based. injected: ids of injected documents, oldest first.
    injected_turns, failed_turns: turns with an injection, turns with a failure mark.
    """

    turn: int
    injected: tuple[str, ...]
    injected_turns: frozenset[int]
    failed_turns: frozenset[int]


def rebuild(log: Sequence[LogEvent]) -> State:
    """The state after a log. A message that is no longer on the surface (compacted, rewound) counts too.

    Turns come from `turn/start` (data `{turn}`) and `turn/end`; a log may have either or both.
    """
    turn = 1
    ids: dict[str, None] = {}
    injected_turns: set[int] = set()
    failed_turns: set[int] = set()
    for event in log:
        if event.type == "turn/start":
            turn = _turn(event.data, turn)
        elif event.type == "turn/end":
            turn = _turn(event.data, turn) + 1
        elif event.type == FAILED:
            failed_turns.add(_turn(event.data, turn))
        elif own_injection(event):
            source = source_of(event.data)
            injected_turns.add(_turn(source, turn))
            ids.update(dict.fromkeys(_listed(source)))
    return State(turn, tuple(ids), frozenset(injected_turns), frozenset(failed_turns))


def write_ids(ids: Sequence[str]) -> str:
    """The text of the ids section: a JSON list, because an id may hold a comma."""
    return json.dumps(list(ids), ensure_ascii=False)


def read_ids(text: str) -> tuple[str, ...]:
    """The ids of a section: a JSON list, or the comma-separated form that the public plugin writes."""
    try:
        ids = json.loads(text)
    except ValueError:
        ids = None
    if isinstance(ids, list) and all(isinstance(one, str) for one in ids):
        return tuple(ids)
    return tuple(one for one in text.split(",") if one)


def _turn(data: Mapping[str, Any], otherwise: int) -> int:
    turn = data.get("turn")
    return turn if isinstance(turn, int) else otherwise


def _listed(source: Mapping[str, Any]) -> tuple[str, ...]:
    sections = source.get("sections")
    found: list[str] = []
    for section in sections if isinstance(sections, Sequence) else ():
        if isinstance(section, Mapping) and section.get("name") == IDS_SECTION:
            found.extend(read_ids(str(section.get("text", ""))))
    return tuple(found)
