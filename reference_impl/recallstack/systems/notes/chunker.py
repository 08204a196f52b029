"""Chunks of a Markdown file, and the rule that they are cut by (recall semantics, section 6)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields

from recallstack.errors import InputError

LONGEST = 1200
"""Characters of one chunk; a longer entry is cut by length (a choice: the documents give no number)."""
VERSION = 1
"""Of the code below. Raise it when the same settings would cut a file elsewhere."""
_HEADING = re.compile(r"#{1,6}(\s|$)")
_ITEM = re.compile(r"\s*([-*+]|\d{1,9}[.)])\s")
_LINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class ChunkRule:
    """Where a file is cut. Blank lines always end an entry.

    longest: characters of one chunk. headings: a heading is an entry of its own. items: a list item begins an
    entry. version: of the algorithm.
    """

    longest: int = LONGEST
    headings: bool = True
    items: bool = True
    version: int = VERSION

    def __post_init__(self) -> None:
        if self.longest < 1:
            raise InputError(f"longest chunk is {self.longest}; it must be at least 1 character")

    @property
    def signature(self) -> str:
        """The rule as canonical JSON: equal signatures cut alike, and the rule can be made from it again."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @staticmethod
    def knows(signature: str) -> bool:
        """Whether this version of the code can cut by a signature."""
        try:
            values = json.loads(signature)
        except ValueError:
            return False
        if not isinstance(values, dict):
            return False
        return set(values) == {field.name for field in fields(ChunkRule)} and values["version"] == VERSION

    @classmethod
    def of(cls, signature: str) -> ChunkRule:
        """The rule of a signature. Raises InputError for one that this version of the code cannot cut by."""
        if not cls.knows(signature):
            raise InputError(
                f"the notes were cut by a chunking rule that this version does not know ({signature}); "
                "accept the change of the rule, or delete the index: it is made again from the files"
            )
        return cls(**json.loads(signature))


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a file. line: 1-based first line of its entry. part: 1-based, above 1 in a long entry only."""

    line: int
    part: int
    text: str

    def id(self, file: str) -> str:
        """`file#line`, or `file#line.part` from the second part on."""
        return chunk_id(file, self.line, self.part)


def chunk_id(file: str, line: int, part: int) -> str:
    """The id of a chunk, also the one that labels name: `file#line`, `file#line.part` from part 2 on."""
    return f"{file}#{line}" if part == 1 else f"{file}#{line}.{part}"


def entries(content: str, rule: ChunkRule) -> Iterator[tuple[int, str]]:
    """(1-based first line, text) of each entry.

    A blank line ends an entry; a heading is an entry of its own; a list item begins one, and lines below it
    that are neither blank, a heading nor an item belong to it. Lines end at LF, CRLF or CR, as editors count
    them.
    """
    first, held = 0, list[str]()
    for number, line in enumerate(_LINE.split(content), 1):
        heading = rule.headings and bool(_HEADING.match(line))
        item = rule.items and bool(_ITEM.match(line))
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


def chunks(content: str, rule: ChunkRule) -> Iterator[Chunk]:
    """The chunks of a file in order: its entries, the long ones cut by length, without blanks at either end."""
    for line, entry in entries(content, rule):
        for part, start in enumerate(range(0, len(entry), rule.longest), 1):
            yield Chunk(line, part, entry[start : start + rule.longest].strip())
