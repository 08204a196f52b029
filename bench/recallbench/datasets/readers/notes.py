"""Markdown notes as memories: cut and classed as notes search does it (recall semantics, section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recallbench.datasets.jsonl import text
from recallbench.datasets.skips import Skips
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory, Source
from recallstack.systems.notes.chunker import ChunkRule, chunks
from recallstack.systems.notes.globs import DEFAULT_EXCLUDE, excluded
from recallstack.systems.notes.sensitivity import level_of


def read_notes(root: Path) -> list[Memory]:
    """One memory for each chunk of every `.md` file below `root`, files in the order of their paths, hidden ones not.

    Ids are `path#line`, `path#line.2` for the second part of an entry that was cut by length. The
    sensitivity follows the file name: `public.md`, `secret.md`, anything else is personal. Headings are
    memories too, as in the documented system. Raises InputError where no `.md` file holds an entry.
    """
    out = [memory for _, memory in iterate(root, Skips())]
    if not out:
        raise InputError(f"{root}: no .md file with text; put the notes there, or give memories.jsonl")
    return out


def iterate(root: Path, skips: Skips) -> Iterator[tuple[str, Memory]]:
    """(`file:line`, memory), as `read_notes`; a file that cannot be read or is not UTF-8 is given to `skips`."""
    for path in sorted(root.rglob("*.md"), key=lambda one: one.relative_to(root).as_posix()):
        name = path.relative_to(root).as_posix()
        hidden = any(part.startswith(".") for part in name.split("/"))  # what an editor keeps for itself, and its bin
        if hidden or not path.is_file() or excluded(name, DEFAULT_EXCLUDE):
            continue
        try:
            content = text(path)
        except InputError as error:
            skips.bad(str(error))
            continue
        for chunk in chunks(content, ChunkRule()):
            source = Source(file=name, line=chunk.line)
            memory = Memory(id=chunk.id(name), content=chunk.text, sensitivity=level_of(name), source=source)
            yield f"{path}:{chunk.line}", memory
