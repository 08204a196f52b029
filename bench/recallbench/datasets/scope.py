"""What the session of a question may see."""

from __future__ import annotations

from recallbench.datasets.model import Question
from recallstack.ranking.injection import EVERY_LEVEL, Scope
from recallstack.systems.notes.sensitivity import SessionMap, visible

OWNERS = frozenset({"owner"})
"""The session key of the owner in a labelled set."""


def scope_of(question: Question, mapped: bool) -> Scope:
    """Who asks. mapped: the set tells channels apart; a question without one then sees nothing (section 6)."""
    session = question.session
    levels = EVERY_LEVEL
    if mapped:
        key = session.channel
        levels = visible(None if key is None else SessionMap({key: key}, OWNERS).channel(key))
    return Scope(session.agent_scope, session.workspace_scope, levels)
