"""Memory rows and the corpus that they form (recall semantics, section 1)."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from recallstack.errors import InputError

MemoryType = Literal["summary", "preference", "project", "decision", "history"]
Sensitivity = Literal["public", "personal", "secret"]
EntityLink = Literal["attribute", "relation"]
Text = Annotated[str, Meta(min_length=1)]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a memory was read: a file and its first line (1-based)."""

    file: str
    line: int | None = None


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One memory row. Searchable text is `title + " " + content`."""

    id: Text
    corpus: Text = "main"
    title: str = ""
    content: str = ""
    type: MemoryType = "project"
    importance: Annotated[float, Meta(ge=1, le=5)] = 3
    quality: Annotated[float, Meta(ge=0, le=1)] = 1
    archived: bool = False
    forgotten: bool = False
    created_at: dt.datetime | None = None
    updated_at: dt.datetime | None = None
    agent_scope: str | None = None
    workspace_scope: str | None = None
    sensitivity: Sensitivity = "public"
    tags: tuple[str, ...] = ()
    supersedes: str | None = None
    entities: Mapping[str, EntityLink] = msgspec.field(default_factory=dict)
    source: Source | None = None

    @property
    def text(self) -> str:
        return f"{self.title} {self.content}"


def _seconds(moment: dt.datetime | None) -> float:
    """Seconds since the epoch; no zone is read as UTC; no time is older than every time."""
    if moment is None:
        return -np.inf
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()


@dataclass(frozen=True, eq=False)
class Corpus:
    """The memories of one corpus, in order; a position in `memories` is what every array calls a row.

    Raises InputError for a repeated id.
    """

    name: str
    memories: tuple[Memory, ...]
    index: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        index = {memory.id: position for position, memory in enumerate(self.memories)}
        if len(index) != len(self.memories):
            seen: set[str] = set()
            twice = next(m.id for m in self.memories if m.id in seen or seen.add(m.id))  # type: ignore[func-returns-value]
            raise InputError(f"corpus {self.name!r}: memory id {twice!r} occurs twice; ids must be unique")
        object.__setattr__(self, "index", index)

    @classmethod
    def of(cls, name: str, memories: Iterable[Memory]) -> Corpus:
        return cls(name, tuple(memories))

    def __len__(self) -> int:
        return len(self.memories)

    @cached_property
    def ids(self) -> NDArray[np.object_]:
        """object `[n]`: the id of each position."""
        return np.array([m.id for m in self.memories], dtype=object)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(m.text for m in self.memories)

    @cached_property
    def updated(self) -> NDArray[np.float64]:
        """float64 `[n]`: `updated_at` in seconds, -inf where unknown."""
        return np.array([_seconds(m.updated_at) for m in self.memories], dtype=np.float64)

    @cached_property
    def importance(self) -> NDArray[np.float64]:
        return np.array([m.importance for m in self.memories], dtype=np.float64)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over every field of every memory, in order."""
        digest = hashlib.sha256()
        encoder = msgspec.json.Encoder(order="deterministic")
        for memory in self.memories:
            digest.update(encoder.encode(memory))
            digest.update(b"\n")
        return digest.hexdigest()
