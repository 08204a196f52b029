"""Expectations: operators on what the probes of a scenario brought back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recallbench.scenarios.model import Expectation

MISSING = object()
"""What a path leads to when nothing is there."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation that does not hold: where it stands, what it says, what came."""

    where: str
    expected: str
    came: str


def look_up(saved: Mapping[str, Any], path: str) -> Any:
    """The value at a path such as `hits.ids` or `hits.scores.0`; MISSING if there is none."""
    value: Any = saved
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, Sequence) and not isinstance(value, str) and part.isdecimal():
            if int(part) >= len(value):
                return MISSING
            value = value[int(part)]
        else:
            return MISSING
    return value


def failures(expectations: Sequence[Expectation], saved: Mapping[str, Any]) -> list[Failure]:
    """The expectations that do not hold, in order."""
    out = []
    for one in expectations:
        value = look_up(saved, one.path)
        arguments = one.arguments
        if one.operator in PATHS:
            arguments = (look_up(saved, str(arguments[0])),)
        if value is MISSING or MISSING in arguments:
            out.append(Failure(one.where, one.text, f"nothing at {one.path}"))
        elif not OPERATORS[one.operator].holds(value, *arguments):
            other = f", {one.arguments[0]} is {arguments[0]!r}" if one.operator in PATHS else ""
            out.append(Failure(one.where, one.text, f"{one.path} is {value!r}{other}"))
    return out


@dataclass(frozen=True, slots=True)
class Operator:
    """holds: whether it is met; arguments: how many follow the path; help: one line."""

    holds: Callable[..., bool]
    arguments: int
    help: str


def _before(value: Any, first: Any, second: Any) -> bool:
    return first in value and (second not in value or value.index(first) < value.index(second))


def _size(value: Any) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else len(value)


def _close(value: Any, wanted: Any) -> bool:
    numbers = isinstance(value, int | float) and isinstance(wanted, int | float)
    return abs(value - wanted) <= 1e-9 if numbers else bool(value == wanted)


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return (
            isinstance(wanted, Sequence)
            and len(value) == len(wanted)
            and all(_equal(a, b) for a, b in zip(value, wanted, strict=True))
        )
    return type(value) is type(wanted) and value == wanted if isinstance(wanted, bool) else _close(value, wanted)


PATHS = frozenset({"same", "differ"})
"""Operators whose argument is a second path."""

OPERATORS: Mapping[str, Operator] = {
    "equal": Operator(_equal, 1, "the value is this one (numbers within 1e-9)"),
    "not_equal": Operator(lambda value, other: not _equal(value, other), 1, "the value is another one"),
    "same": Operator(_equal, 1, "the values at two paths are equal"),
    "differ": Operator(lambda value, other: not _equal(value, other), 1, "the values at two paths differ"),
    "before": Operator(_before, 2, "the first is in the list, and the second is not above it"),
    "first": Operator(lambda value, one: bool(value) and value[0] == one, 1, "the list begins with this"),
    "contains": Operator(lambda value, one: one in value, 1, "the list holds this, or the text this piece"),
    "absent": Operator(lambda value, one: one not in value, 1, "the list does not hold this, or the text this piece"),
    "length": Operator(lambda value, n: len(value) == n, 1, "as many elements or characters"),
    "at_most": Operator(lambda value, n: _size(value) <= n, 1, "the number, or the length, is at most this"),
    "at_least": Operator(lambda value, n: _size(value) >= n, 1, "the number, or the length, is at least this"),
    "within": Operator(
        lambda value, allowed: all(one in allowed for one in value), 1, "nothing in the list that is not in this one"
    ),
    "unique": Operator(lambda value: len(set(value)) == len(value), 0, "no element twice"),
    "empty": Operator(lambda value: not value, 0, "nothing in it"),
    "not_empty": Operator(bool, 0, "something in it"),
}
"""All operators. `{first: [hits.ids, k1]}` reads: at `hits.ids`, `first` holds for `k1`."""
