"""The output clamp: no request may ask for more output than the window has room for."""

from __future__ import annotations

from recallstack.errors import InputError
from recallstack.systems.lane.switches import NO_SWITCHES, Switches

WINDOW = 1_048_576
"""Tokens that input and output share (seed 001)."""
MARGIN_PERCENT = 105
"""The estimate counts 5 % more than it says. In whole percent, so that the arithmetic is exact."""


def output_cap(input_estimate: int, window: int = WINDOW, switches: Switches = NO_SWITCHES) -> int:
    """`floor(window - 1.05 * input_estimate)`, below 1 where there is no room. Both are tokens."""
    hundredths = 100 * window - (100 if switches.margin_ignored else MARGIN_PERCENT) * input_estimate
    return -(-hundredths // 100) if switches.cap_rounded_up else hundredths // 100


def clamp(requested: int, input_estimate: int, window: int = WINDOW, switches: Switches = NO_SWITCHES) -> int:
    """`min(requested, cap)`, in tokens. Raises InputError where the cap is below 1: nothing may be sent."""
    cap = output_cap(input_estimate, window, switches)
    if cap < 1:
        if switches.no_room_forwarded:
            return 1
        raise InputError(
            f"no room for output: the input is about {input_estimate} tokens, and with 5 % margin the window of "
            f"{window} is full; compress the conversation or start a new one"
        )
    return cap if switches.requested_ignored else min(requested, cap)
