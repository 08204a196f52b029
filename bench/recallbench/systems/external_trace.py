"""The trace that an external system may send: where labelled memories stood, and which stage lost them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from recallbench.datasets.model import Question
from recallbench.systems.base import TraceRow


def _wanted(question: Question) -> list[str]:
    return [memory for memory, grade in question.relevant.items() if grade > 0]


def trace_rows(place: int, question: Question, trace: Mapping[str, Sequence[str]]) -> Iterator[TraceRow]:
    """Where each relevant memory stood after each stage, in the order in which the system names its stages."""
    for stage, ids in trace.items():
        ranks = {name: rank for rank, name in enumerate(ids, 1)}
        for memory in _wanted(question):
            if memory in ranks:
                yield TraceRow(place, stage, ranks[memory], memory)


def losses_of(question: Question, trace: Mapping[str, Sequence[str]], final: Sequence[str]) -> dict[str, str]:
    """Relevant memory -> `kept`, `never a candidate`, or `lost after STAGE`, the last stage that had it.

    Empty where nothing was traced. What a stage of a foreign system means, only its author knows: it is named.
    """
    if not trace:
        return {}
    out = {}
    for memory in _wanted(question):
        last = [stage for stage, ids in trace.items() if memory in ids]
        if memory in final:
            out[memory] = "kept"
        else:
            out[memory] = f"lost after {last[-1]}" if last else "never a candidate"
    return out
