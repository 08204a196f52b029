"""Markdown notes as memories (recall semantics, section 6): cut at blank lines, list items and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from recallbench.datasets.jsonl import text
from recallstack.errors import InputError
from recallstack.rows import Memory, Sensitivity, Source

LONGEST = 1200
"""Characters of one chunk; a longer entry is cut by length (a choice: the documents give no number)."""
EXCLUDED = frozenset({".index", "node_modules"})
"""Folders that the documented default leaves out."""
_HEADING = re.compile(r"#{1,6}(\s|$)")
_ITEM = re.compile(r"\s*([-*+]|\d{1,9}[.)])\s")
_SENSITIVITY: dict[str, Sensitivity] = {"public.md": "public", "secret.md": "secret"}


def entries(content: str) -> Iterator[tuple[int, str]]:
    """(1-based first line, text) of each entry.

    A blank line ends an entry; a heading is an entry of its own; a list item begins one, and lines below it
    that are neither blank, a heading nor an item belong to it.
    """
    first, held = 0, list[str]()
    for number, line in enumerate(content.splitlines(), 1):
        heading, item = bool(_HEADING.match(line)), bool(_ITEM.match(line))
        if held and (heading or item or not line.strip()):
            yield first, "\n".join(held)
            held = []
        if not line.strip():
            continue
        if heading:
            yield number, line.strip()
            continue
        if not held:
            first = number
        held.append(line.rstrip())
    if held:
        yield first, "\n".join(held)


def read_notes(root: Path) -> list[Memory]:
    """One memory for each entry of every `.md` file below `root`, files in the order of their paths.

    Ids are `path#line`, `path#line.2` for the second part of an entry that was cut by length. The
    sensitivity follows the file name: `public.md`, `secret.md`, anything else is personal. Headings are
    memories too, as in the documented system. Raises InputError where no `.md` file holds an entry.
    """
    out = []
    for path in sorted(root.rglob("*.md"), key=lambda one: one.relative_to(root).as_posix()):
        relative = path.relative_to(root)
        if not path.is_file() or EXCLUDED.intersection(relative.parts):
            continue
        name = relative.as_posix()
        sensitivity = _SENSITIVITY.get(path.name, "personal")
        for line, entry in entries(text(path)):
            for part, start in enumerate(range(0, len(entry), LONGEST), 1):
                out.append(
                    Memory(
                        id=f"{name}#{line}" if part == 1 else f"{name}#{line}.{part}",
                        content=entry[start : start + LONGEST].strip(),
                        sensitivity=sensitivity,
                        source=Source(file=name, line=line),
                    )
                )
    if not out:
        raise InputError(f"{root}: no .md file with text; put the notes there, or give memories.jsonl")
    return out
