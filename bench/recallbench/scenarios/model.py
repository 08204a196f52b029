"""A scenario as a value: what is given, what happens, what must come back (design: scenarios)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

SystemName = Literal["mneme", "notes", "memory-v2", "pre-retrieval", "context-lane", "field"]
Kind = Literal["bug", "guard"]
CAPABILITIES = (
    "search",
    "inject",
    "session",
    "prefetch",
    "notes",
    "lifecycle",
    "extraction",
    "pre-retrieval",
    "lane",
    "vectors",
    "clock",
)
Text = Annotated[str, Meta(min_length=1)]
Switch = bool | int | float | str


class Title(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A title in both languages."""

    en: Text
    zh: Text


class Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What stands before the first step.

    memories: rows as in `memories.jsonl`. vectors: the embedding of each text. config: settings of the system.
    hits: what the knowledge base answers (pre-retrieval). lists: channel lists by name (field).
    files: Markdown files by path (notes).
    """

    memories: tuple[dict[str, Any], ...] = ()
    vectors: dict[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    config: dict[str, Any] = msgspec.field(default_factory=dict)
    hits: tuple[dict[str, Any], ...] = ()
    files: dict[str, str] = msgspec.field(default_factory=dict)


class Raw(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A scenario file as it stands; see `docs/scenarios.md` for every key."""

    id: Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    system: SystemName
    kind: Kind
    title: Title
    source: Text
    needs: tuple[str, ...]
    symptom: Text
    cause: Text
    steps: tuple[dict[str, Any], ...]
    given: Given = Given()
    legacy: dict[str, Switch] = msgspec.field(default_factory=dict)
    mutant: dict[str, Switch] = msgspec.field(default_factory=dict)
    expect: tuple[dict[str, Any], ...] = ()
    exact: tuple[dict[str, Any], ...] = ()
    symptoms: tuple[dict[str, Any], ...] = ()


ARGUMENTS: Mapping[str, Any] = {
    "query": str | None,
    "session": str | None,
    "top_k": Annotated[int, Meta(ge=1)],
    "limit": Annotated[int, Meta(ge=1)],
    "step": Annotated[int, Meta(ge=1)],
    "timeout_ms": Annotated[float, Meta(ge=0)],
}
"""Arguments of calls and probes that mean the same in every system, and what they must be."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. kind: event, call, advance, fault or probe; name: which; save: where its answer is kept."""

    kind: Literal["event", "call", "advance", "fault", "probe"]
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    save: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation: an operator on a saved value. where: file and line; text: as it was written."""

    operator: str
    path: str
    arguments: tuple[Any, ...]
    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario that was read and found sound.

    switches: what the faulty variant puts in: `legacy` of a bug, `mutant` of a guard.
    expect: invariants, for any implementation. exact: for the reference stack. symptoms: what legacy does.
    """

    id: str
    system: SystemName
    kind: Kind
    title: Title
    source: str
    needs: tuple[str, ...]
    symptom: str
    cause: str
    given: Given
    switches: Mapping[str, Switch]
    steps: tuple[Step, ...]
    expect: tuple[Expectation, ...]
    exact: tuple[Expectation, ...]
    symptoms: tuple[Expectation, ...]
    path: Path
    given_at: str = ""

    @property
    def faulty_variant(self) -> str:
        """The name of the variant with the fault in: legacy or mutant."""
        return "legacy" if self.kind == "bug" else "mutant"
