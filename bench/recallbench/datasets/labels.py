"""Questions and their labels as they are written, before labels are resolved (see `resolve`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta

from recallbench.datasets.jsonl import nearest
from recallbench.datasets.model import Grade, Question
from recallstack.errors import InputError
from recallstack.systems.preretrieval.contract import ContextEntry, Role

ANSWERS: int = 2
"""Grade of a label that gives none: the memory answers the question."""


class Label(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A label by exactly one of id, snippet (words of one memory) and file (all memories read from it)."""

    id: str | None = None
    snippet: Annotated[str, Meta(min_length=1)] | None = None
    file: Annotated[str, Meta(min_length=1)] | None = None
    grade: Grade | None = None


class Either(Label, frozen=True, kw_only=True):
    """A cell of a table, in `snippet`: the memory of that id, else the one that holds the words. Not for JSON."""


class ContextRow(ContextEntry, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An entry of a question's history as written: its role may be any word."""

    role: str  # type: ignore[assignment]


class QuestionRow(Question, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A question as written: labels may be ids, snippets or files; roles of the history are not yet checked."""

    context: tuple[ContextRow, ...] = ()
    relevant: Mapping[str, Grade] | tuple[str | Label, ...] = msgspec.field(default_factory=dict)  # type: ignore[assignment]
    not_relevant: tuple[str | Label, ...] = ()  # type: ignore[assignment]
    forbidden: tuple[str | Label, ...] = ()  # type: ignore[assignment]


def history(written: Sequence[ContextRow], start: str) -> tuple[ContextEntry, ...]:
    """The entries with their roles checked. `start` begins the InputError."""
    roles = get_args(Role)
    for place, entry in enumerate(written):
        if entry.role not in roles:
            raise InputError(f"{start}: context[{place}].role is {entry.role!r}; {nearest(entry.role, roles)}")
    return tuple(ContextEntry(role=entry.role, text=entry.text, name=entry.name) for entry in written)  # type: ignore[arg-type]


def written(row: Question) -> Iterator[tuple[str, Label]]:
    """(field, label) of each label of a question, be it resolved or as written; grades as written."""
    relevant: Any = row.relevant
    if isinstance(relevant, Mapping):
        for name, grade in relevant.items():
            yield "relevant", Label(id=name, grade=grade)
    else:
        for one in relevant:
            yield "relevant", Label(id=one) if isinstance(one, str) else one
    for field in ("not_relevant", "forbidden"):
        for one in getattr(row, field):
            yield field, Label(id=one) if isinstance(one, str) else one
