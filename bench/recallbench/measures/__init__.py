"""Measures: values in ir-measures' grammar, each with its direction, denominator and worst value."""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Sequence
from dataclasses import fields
from functools import cache

import numpy as np

from recallbench.measures.abstain import Abstain
from recallbench.measures.ap import AP
from recallbench.measures.base import Binary, Float, Measure
from recallbench.measures.cost import BilledTokens, Chars, Tokens
from recallbench.measures.judged import Judged
from recallbench.measures.leak import Leak
from recallbench.measures.ndcg import NDCG
from recallbench.measures.precision import P, Rprec
from recallbench.measures.ranked import RankedLabels
from recallbench.measures.recall import AllR, R
from recallbench.measures.rr import RR
from recallbench.measures.stale import Stale
from recallbench.measures.success import Success
from recallstack.errors import InputError

__all__ = ["Binary", "Measure", "compute_all", "parse_measure", "parse_measures"]

ENTRY_POINTS = "recallbench.measures"
"""Entry-point group: a package adds a subclass of Measure under its title."""

_BUILT_IN: dict[str, type[Measure]] = {
    one.title: one
    for one in (NDCG, AP, RR, R, P, Success, Rprec, Judged, AllR, Leak, Stale, Abstain, Chars, Tokens, BilledTokens)
}
_SHAPE = re.compile(r"(?P<title>[A-Za-z_]\w*)(?:\((?P<inside>[^()]*)\))?(?:@(?P<cutoff>-?\d+))?")


@cache
def parse_measure(text: str) -> Measure:
    """A measure from its name, for example `nDCG@10` or `Success(rel=2)@5`.

    Raises InputError for an unknown name or parameter, a value of the wrong type, a missing or bad cutoff.
    """
    found = _SHAPE.fullmatch(text.strip())
    if not found:
        raise InputError(f"measure {text!r}: not of the form Name(param=value)@cutoff, for example nDCG@5")
    kind = _kind(found["title"], text)
    arguments: dict[str, object] = {}
    known = {one.name: one for one in fields(kind) if one.name != "cutoff"}
    for part in filter(None, (part.strip() for part in (found["inside"] or "").split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in known:
            hint = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"measure {text!r}: unknown parameter {key!r}; {hint}")
        arguments[key] = _value(kind, key, value, text)
    if found["cutoff"] is not None:
        if not kind.takes_cutoff:
            raise InputError(f"measure {text!r}: {kind.title} takes no cutoff")
        arguments["cutoff"] = int(found["cutoff"])
    elif kind.needs_cutoff:
        raise InputError(f"measure {text!r}: {kind.title} needs a cutoff, for example {kind.title}@5")
    return kind(**arguments)  # type: ignore[arg-type]


def parse_measures(text: str) -> list[Measure]:
    """Measures separated by spaces or by commas outside parentheses."""
    return [parse_measure(part) for part in re.findall(r"[^\s,(]+(?:\([^)]*\))?[^\s,]*", text)]


def compute_all(measures: Sequence[Measure], ranked: RankedLabels) -> Float:
    """float64 `[M, Q]`: every measure of every question."""
    return np.array([measure.compute(ranked) for measure in measures]).reshape(len(measures), ranked.questions)


def _value(kind: type[Measure], key: str, value: str, text: str) -> object:
    if value[:1] in "'\"" and value[-1:] == value[:1] and len(value) > 1:
        return value[1:-1]
    if key == "rel" or int in typing.get_args(typing.get_type_hints(kind)[key]):
        try:
            return int(value)
        except ValueError:
            raise InputError(f"measure {text!r}: {key} must be a whole number, not {value!r}") from None
    return value


def _kind(title: str, text: str) -> type[Measure]:
    if title in _BUILT_IN:
        return _BUILT_IN[title]
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=title):
        try:
            loaded = entry.load()
        except Exception as error:  # noqa: BLE001 (a plugin's fault: named, and not ours)
            raise InputError(f"measure {text!r}: cannot load {entry.value}: {error}") from None
        if not (isinstance(loaded, type) and issubclass(loaded, Measure)):
            raise InputError(f"measure {text!r}: {entry.value} is not a subclass of recallbench.measures.Measure")
        return loaded
    near = difflib.get_close_matches(title, _BUILT_IN, 3, 0.5)
    hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(_BUILT_IN)}"
    raise InputError(f"measure {text!r}: unknown measure {title!r}; {hint}")
