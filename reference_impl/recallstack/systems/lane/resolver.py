"""Which session a request belongs to: its own key, or a sub-session for a shape that does not continue it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from recallstack.systems.lane.request import Request, message_ids
from recallstack.systems.lane.session import Session
from recallstack.systems.lane.switches import NO_SWITCHES, Switches


def persona(request: Request) -> str:
    """A hash of the system text, 12 hexadecimal digits."""
    return hashlib.sha256(request.system.encode()).hexdigest()[:12]


def resolve(sessions: Mapping[str, Session], key: str, request: Request, switches: Switches = NO_SWITCHES) -> str:
    """The key of the session that a stamped request belongs to.

    A discontinuous shape, another system text and no message in common, is forked to `<key>|sub:<persona>`,
    a review too: keeping reviews away from here is the pipeline's task.
    """
    session = sessions.get(key)
    if session is None or session.persona is None or switches.resolver_never_forks:
        return key
    found = persona(request)
    if found == session.persona or not frozenset(session.refs).isdisjoint(message_ids(request.messages)):
        return key
    return f"{key}|sub:{found}"
