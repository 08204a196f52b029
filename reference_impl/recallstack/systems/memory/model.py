"""What goes into the memory system and what comes out."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import get_args

from recallstack.errors import InputError
from recallstack.ranking.rows import MemoryType
from recallstack.ranking.text import clean

TYPES: tuple[MemoryType, ...] = get_args(MemoryType)


def storable(text: str) -> str:
    """The text as both databases can hold it: whole characters, and U+FFFD for NUL, which PostgreSQL refuses."""
    return clean(text).replace("\x00", "\ufffd")


def checked_id(value: str, what: str) -> str:
    """An id of a user, a session or a memory. Raises InputError for one that cannot be stored as it is."""
    if not value or storable(value) != value:
        raise InputError(f"{what} {value!r} is empty or holds what cannot be stored; give a plain text")
    return value


def digest_id(prefix: str, *parts: str) -> str:
    """An id from what it names, so that the same thing saved again is the same row."""
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return f"{prefix}-{digest.hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory to save. id: by default made from user and text: the same text again is the same memory.

    importance: 1 to 5. expires_at: milliseconds since 1970 from which `expire` archives it; None: never.
    Raises InputError for a value out of range.
    """

    content: str
    title: str = ""
    type: MemoryType = "project"
    importance: float = 3
    expires_at: int | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", storable(self.content))
        object.__setattr__(self, "title", storable(self.title))
        named = "a memory" if self.id is None else f"memory {checked_id(self.id, 'memory id')!r}"
        if not self.content.strip():
            raise InputError(f"{named} has no content; give a text")
        if self.type not in TYPES:
            raise InputError(f"{named}: type {self.type!r}; use one of {', '.join(TYPES)}")
        if not (math.isfinite(self.importance) and 1 <= self.importance <= 5):
            raise InputError(f"{named}: importance is {self.importance}; it must be 1 to 5")

    def id_for(self, user: str) -> str:
        """The id of this memory of a user."""
        return self.id if self.id is not None else digest_id("m", user, self.title, self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A memory as it is saved; times in milliseconds since 1970."""

    user: str
    id: str
    session: str
    type: MemoryType
    title: str
    content: str
    importance: float
    archived: bool
    forgotten: bool
    created_at: int
    updated_at: int
    expires_at: int | None
    revision: int
    seq: int

    @property
    def text(self) -> str:
        """What is searched and embedded."""
        return f"{self.title} {self.content}"

    @property
    def active(self) -> bool:
        return not (self.archived or self.forgotten)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A memory that waits for a promotion. status: pending, promoted or rejected. durable: outlives the process."""

    id: str
    user: str
    session: str
    type: MemoryType
    title: str
    content: str
    importance: float
    status: str
    memory_id: str | None = None
    expires_at: int | None = None
    durable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What is acknowledged. ids: of the rows that are saved. durable: they outlive the process.

    debt: how many of the user's rows still wait for their vector; 0: all can be recalled by vector from now on.
    remarks: what did not go as it should, one line each; names no text.
    """

    ids: tuple[str, ...] = ()
    durable: bool = True
    debt: int = 0
    remarks: tuple[str, ...] = ()
