"""Settings of notes search; the defaults are the documented ones (seed 002)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from recallstack.errors import InputError
from recallstack.systems.notes.chunker import ChunkRule
from recallstack.systems.notes.globs import DEFAULT_EXCLUDE, check_globs
from recallstack.systems.notes.switches import NO_SWITCHES, Switches


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesConfig:
    """Where the notes are, and how they are searched.

    database: file of the index; made if it is not there. roots: folders that are scanned for `.md`.
    exclude: globs, relative to a root, of what is left out.
    rule: how files are cut; None keeps the rule of the index. Another rule than the index's is recorded and waits
    for `Notes.accept_spec_change`.
    session_map: session key -> session id, or a JSON file that says so and is read again for each recall; None: no
    map, everyone is the owner. owners: keys of the owner.
    candidates: rows in each of the two lists. rrf_k: k of reciprocal rank fusion.
    query_instruction: prefixed to queries for the embedder, never to documents or keywords.
    recall_items, recall_chars: bounds of auto-recall, in items and code points.
    sync_interval_s: seconds between two scans of `Notes.sync_if_due`.
    """

    database: Path
    roots: tuple[Path, ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    rule: ChunkRule | None = None
    session_map: Path | Mapping[str, str] | None = None
    owners: frozenset[str] = frozenset()
    candidates: int = 40
    rrf_k: float = 10
    query_instruction: str = ""
    recall_items: int = 4
    recall_chars: int = 1600
    sync_interval_s: float = 300.0
    switches: Switches = NO_SWITCHES

    def __post_init__(self) -> None:
        check_globs(self.exclude)
        for name in ("candidates", "recall_items", "recall_chars"):
            if getattr(self, name) < 1:
                raise InputError(f"notes: {name} is {getattr(self, name)}; it must be at least 1")
        for name in ("rrf_k", "sync_interval_s"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InputError(f"notes: {name} is {getattr(self, name)}; it must be a number above 0")
