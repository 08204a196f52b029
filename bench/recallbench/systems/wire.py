"""The words of protocol 1: what is sent, and the strict reading of what comes back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from recallbench.datasets.model import Question
from recallbench.systems.faults import Fault, one_line
from recallstack.ranking.rows import Memory

PROTOCOL = 1
SCORELESS = math.nan
"""The score of a hit that has none."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Who answers. capabilities: such as search, inject, session. capacity: most rows; None is no limit."""

    name: str
    version: str = ""
    capabilities: frozenset[str] = frozenset({"search"})
    capacity: int | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One returned row. At least one of id, source_ids and text is there; score is NaN where none was given."""

    id: str | None = None
    score: float = SCORELESS
    source_ids: tuple[str, ...] = ()
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: hits, best first, and optionally the ids after each stage."""

    hits: tuple[Hit, ...]
    trace: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def memory_values(memory: Memory) -> dict[str, Any]:
    """A memory as it is sent: the fields of `memories.jsonl` that are set; its corpus is named by `reset`."""
    out: dict[str, Any] = msgspec.to_builtins(memory)
    out.pop("corpus", None)
    return out


def question_values(question: Question, session: bool) -> dict[str, Any]:
    """What a system may know of a question: no label, no category. session: whether it is told who asks."""
    out: dict[str, Any] = {"id": question.id, "text": question.text}
    if question.now is not None:
        out["now"] = question.now.isoformat().replace("+00:00", "Z")
    if session:
        out["session"] = msgspec.to_builtins(question.session)
    return out


def read_hello(reply: Mapping[str, Any]) -> Hello:
    """The answer to `hello`. Raises Fault for another protocol or a field of another kind."""
    spoken = reply.get("protocol", PROTOCOL)
    if spoken != PROTOCOL or isinstance(spoken, bool):
        raise Fault(f"answered hello with protocol {one_line(spoken, 20)}; this harness speaks protocol {PROTOCOL}")
    name = reply.get("name")
    if not isinstance(name, str) or not name.strip():
        raise Fault(f"answered hello without a name (a text), got {kind(name)}")
    version = reply.get("version", "")
    if not isinstance(version, str):
        raise Fault(f"answered hello with a version that is no text, got {kind(version)}")
    able = reply.get("capabilities")
    if not isinstance(able, list) or not all(isinstance(one, str) for one in able):
        raise Fault('answered hello without capabilities (a list of texts, such as ["search"])')
    if not {"search", "inject"} & set(able):
        raise Fault("answered hello with neither search nor inject among its capabilities: nothing can be asked")
    capacity = reply.get("capacity")
    if capacity is not None and (not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 1):
        raise Fault(f"answered hello with capacity {one_line(capacity, 20)}; it must be a whole number of at least 1")
    return Hello(one_line(name, 60), one_line(version, 40), frozenset(able), capacity)


def read_ids(reply: Mapping[str, Any], sent: Sequence[str]) -> dict[str, list[str]]:
    """Their id -> our ids, from `ids` (our id -> theirs, or a list of theirs) of an answer to index.

    Raises Fault for another shape or an id of ours that was not sent.
    """
    given = reply.get("ids")
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise Fault(f"answered index with ids that are no object of our id -> theirs, got {kind(given)}")
    known, out = set(sent), dict[str, list[str]]()
    for ours, theirs in given.items():
        if ours not in known:
            raise Fault(f"answered index with an id map that names {one_line(ours, 60)!r}, which was not sent")
        for one in theirs if isinstance(theirs, list) else [theirs]:
            out.setdefault(_id(one, f"ids[{one_line(ours, 60)!r}]"), []).append(ours)
    return out


def read_reply(reply: Mapping[str, Any], top_k: int) -> Reply:
    """The answer to search or inject. Raises Fault for hits that cannot be used, or more than were asked for."""
    rows = reply.get("hits")
    if not isinstance(rows, list):
        raise Fault(f"answered without hits (a list), got {kind(rows)}")
    return Reply(read_hits(rows, top_k), _trace(reply.get("trace")))


def read_hits(rows: Sequence[Any], top_k: int) -> tuple[Hit, ...]:
    """Hits, checked one by one. Raises Fault that names the place of the first bad one."""
    if len(rows) > top_k:
        raise Fault(f"answered {len(rows)} hits for top_k {top_k}")
    return tuple(_hit(row, f"hits[{place}]") for place, row in enumerate(rows))


def _hit(row: Any, where: str) -> Hit:
    if not isinstance(row, dict):
        raise Fault(f"answered {where} that is no object, got {kind(row)}")
    name = None if row.get("id") is None else _id(row["id"], f"{where}.id")
    sources = row.get("source_ids")
    if sources is not None and not isinstance(sources, list):
        raise Fault(f"answered {where}.source_ids that are no list, got {kind(sources)}")
    own = tuple(_id(one, f"{where}.source_ids[{place}]") for place, one in enumerate(sources or ()))
    text = row.get("text")
    if text is not None and not isinstance(text, str):
        raise Fault(f"answered {where}.text that is no text, got {kind(text)}")
    if name is None and not own and not (text or "").strip():
        raise Fault(f"answered {where} without id, source_ids or text: it cannot be matched to a memory")
    return Hit(name, score_of(row.get("score"), where), own, text)


def score_of(score: Any, where: str) -> float:
    """A finite score, NaN where there is none. Raises Fault for anything else."""
    if score is None:
        return SCORELESS
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        raise Fault(f"answered {where}.score that is no number, got {kind(score)}")
    try:
        number = float(score)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Fault(f"answered {where}.score {number}; it must be a finite number")
    return number


def _id(value: Any, where: str) -> str:
    """An id as text; a whole number (a row id of a database) is taken as it is written."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise Fault(f"answered {where} that is no id (a text or a whole number), got {kind(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Fault(f"answered {where} with half a character (a lone surrogate)") from None
    return value


def _trace(given: Any) -> dict[str, tuple[str, ...]]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(one, list) for one in given.values()):
        raise Fault("answered a trace that is no object of stage -> list of ids")
    return {
        one_line(stage, 40): tuple(_id(one, f"trace[{one_line(stage, 40)!r}]") for one in ids)
        for stage, ids in given.items()
    }


def kind(value: Any) -> str:
    """What came instead, without its content (it may be private)."""
    names = {type(None): "nothing", bool: "true or false", str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")
