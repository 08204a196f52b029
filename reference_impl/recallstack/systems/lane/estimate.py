"""How many input tokens a request has: what was billed last, and characters for what came since."""

from __future__ import annotations

from collections.abc import Sequence

from recallstack.systems.lane.request import Request, characters, request_characters
from recallstack.systems.lane.session import Baseline
from recallstack.systems.lane.switches import NO_SWITCHES, Switches


def character_tokens(count: int) -> int:
    """Tokens of that many characters: a quarter, rounded up."""
    return -(-count // 4)


def estimate_input(
    request: Request, ids: Sequence[str], baseline: Baseline | None, switches: Switches = NO_SWITCHES
) -> int:
    """Input tokens: the last settled usage plus characters/4 of later messages.

    Usage only counts where the request starts with all messages that it was billed for. Otherwise (nothing
    settled, another history, a rebase) it is characters/4 throughout, which can be far too low.
    ids: of the request's messages.
    """
    if baseline is None:
        return character_tokens(request_characters(request))
    settled = len(baseline.ids)
    if tuple(ids[:settled]) != baseline.ids and not switches.baseline_unanchored:
        return character_tokens(request_characters(request))
    if switches.later_messages_ignored:
        return baseline.tokens
    return baseline.tokens + character_tokens(characters(request.messages[settled:]))
