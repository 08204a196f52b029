"""Rebase: the client has replaced its history by a summary of its own, so that our state describes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recallstack.systems.lane.classify import AGENT
from recallstack.systems.lane.framing import has_new_summary
from recallstack.systems.lane.request import Request
from recallstack.systems.lane.session import Fold, Session, covered
from recallstack.systems.lane.switches import NO_SWITCHES, Switches


def needs_rebase(session: Session, request: Request, ids: Sequence[str], switches: Switches = NO_SWITCHES) -> bool:
    """Whether the session is the client's, has active blocks, none of whose messages is left in the request,
    and a new message has compaction framing. ids: of the request's messages."""
    if switches.never_rebases or (session.agent != AGENT and not switches.any_agent_rebases):
        return False
    if not session.blocks and not switches.blocks_not_needed:
        return False
    if not covered(session).isdisjoint(ids) and not switches.retention_ignored:
        return False
    return switches.framing_ignored or has_new_summary(request.messages, ids, session.refs, switches)


def rebase(session: Session, switches: Switches = NO_SWITCHES) -> Session:
    """The session without refs, blocks, fold state and pending `compress` (which has failed).

    The baseline stays until other usage is settled; it no longer applies, since no request continues it.
    """
    return msgspec.structs.replace(
        session,
        refs=session.refs if switches.rebase_keeps_refs else (),
        blocks=session.blocks if switches.rebase_keeps_blocks else (),
        fold=session.fold if switches.rebase_keeps_fold else Fold(),
        pending=session.pending if switches.rebase_keeps_pending else None,
    )
