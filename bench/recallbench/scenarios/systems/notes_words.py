"""What a scenario of notes search may say: settings, arguments of calls and probes, with their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from recallstack.errors import InputError
from recallstack.systems.notes import ChunkRule

Words = TypeVar("Words", bound=msgspec.Struct)


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`given.config`, and what `reopen` changes. What is not set has the documented default.

    session_map: session key -> session id; an empty one is a map, none at all is no map. embedder: the name of the
    model behind `vectors`; `none` searches by keywords only. longest, headings, items: the chunking rule.
    """

    session_map: dict[str, str] | None = None
    owners: tuple[str, ...] = ()
    embedder: str = ""
    query_instruction: str = ""
    longest: int | None = None
    headings: bool | None = None
    items: bool | None = None
    exclude: tuple[str, ...] | None = None
    candidates: int | None = None
    rrf_k: float | None = None
    recall_items: int | None = None
    recall_chars: int | None = None
    sync_interval_ms: int | None = None

    @property
    def rule(self) -> ChunkRule | None:
        """The chunking rule; None, which keeps the rule of the index, where no setting speaks of it."""
        parts: dict[str, Any] = self._set("longest", "headings", "items")
        return ChunkRule(**parts) if parts else None

    @property
    def of_notes(self) -> dict[str, Any]:
        """The settings that `NotesConfig` has under the same name, as far as they are set."""
        out = self._set("exclude", "candidates", "rrf_k", "recall_items", "recall_chars")
        if self.sync_interval_ms is not None:
            out["sync_interval_s"] = self.sync_interval_ms / 1000
        return out

    def _set(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


class Write(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """repeat: how often the text stands in the file, so that a long one need not be written out."""

    file: str
    text: str
    repeat: int = 1


class Delete(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file: str


class Rename(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file: str
    to: str


class Vectors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The embeddings of another model."""

    vectors: dict[str, tuple[float, ...]]


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call or probe without arguments."""


class Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the transcript."""

    text: str


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    query: str
    session: str | None = None
    limit: int = 10


class Assemble(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """query: by default the newest message of the user."""

    query: str | None = None
    session: str | None = None


def read(kind: type[Words], values: Mapping[str, Any], where: str) -> Words:
    """Values as a struct. Raises InputError for a missing one or a wrong type. where: what is read, for the message."""
    try:
        return msgspec.convert(dict(values), kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {str(error).replace(' - at `$.', ' - at `')}") from None


def names(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The words of a struct."""
    return frozenset(kind.__struct_fields__)
