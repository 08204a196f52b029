"""How figures are written: the same in HTML, Markdown and images."""

from __future__ import annotations

import math
from typing import Protocol


class Interval(Protocol):
    """What is needed of an interval to write it (`recallbench.statistics.intervals.Interval` is meant)."""

    @property
    def mean(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def n(self) -> int: ...


MINUS, NONE = "−", "–"


def number(value: float | None, digits: int = 3, signed: bool = False) -> str:
    """`0.123`, `+0.123`, `−0.123`; large figures without decimals; `–` where it is unknown."""
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if abs(value) >= 100:
        digits = 0
    elif abs(value) >= 10:
        digits = min(digits, 1)
    text = f"{abs(value):,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        return f"+{text}" if signed else text
    return f"{MINUS if value < 0 else '+' if signed else ''}{text}"


def bounds(interval: Interval, signed: bool = False) -> str:
    """`[low, high]`, or nothing where there is no interval."""
    if interval.n == 0 or not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return ""
    return f"[{number(interval.low, signed=signed)}, {number(interval.high, signed=signed)}]"


def spread(interval: Interval, signed: bool = False) -> str:
    """`mean [low, high]`."""
    if interval.n == 0:
        return NONE
    return f"{number(interval.mean, signed=signed)} {bounds(interval, signed)}".strip()


def fine(value: float) -> str:
    """A difference that may be very small: `0.012`, `<0.001`."""
    return "<0.001" if 0 < value < 0.0005 else number(value)


def probability(p: float) -> str:
    """A p-value: `0.012`, `<0.001`."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def equation(p: float) -> str:
    """A p-value in a sentence: `p = 0.012`, `p < 0.001`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def percent(share: float) -> str:
    """A share as a whole percentage."""
    return f"{100 * share:.0f} %"


def mark(interval: Interval) -> str:
    """`▲` or `▼` where the interval of a difference is wholly on one side of 0."""
    if interval.n == 0 or not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return ""
    return "▲" if interval.low > 0 else "▼" if interval.high < 0 else ""
