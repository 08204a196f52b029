"""The injected block: the chosen memories as a section of the prompt, within a budget of characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recallstack.errors import InputError
from recallstack.ranking.rows import Memory
from recallstack.ranking.text import clean, cut
from recallstack.systems.session.switches import NO_SWITCHES, Switches

MAX_CHARS, ENTRY_CHARS = 1500, 300
"""Characters of the block and of the content of one memory (the public plugin's)."""
HEAD = "Memories from earlier sessions:"
ELLIPSIS = "…"
"""What a cut text ends with; it counts against the budget."""

_HARMLESS = str.maketrans({"{": "\uff5b", "}": "\uff5d"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockConfig:
    """max_chars: of the whole block. entry_chars: of the content of one memory. Code points, both."""

    max_chars: int = MAX_CHARS
    entry_chars: int = ENTRY_CHARS
    head: str = HEAD

    def __post_init__(self) -> None:
        for name in ("max_chars", "entry_chars"):
            if getattr(self, name) < 1:
                raise InputError(f"injected block: {name} is {getattr(self, name)}; it must be at least 1")


@dataclass(frozen=True, slots=True)
class Block:
    """ids: the memories of which at least the start of the content is in `text`. truncated: something was cut."""

    text: str = ""
    ids: tuple[str, ...] = ()
    truncated: bool = False


def harmless(text: str) -> str:
    """The text with full-width braces in place of braces.

    Every template language that a host may run over the prompt opens with a brace: `{{` (Go, Jinja, Handlebars,
    the documented host), `{%`, `{#`, and `{` alone (str.format, where a lone `}` crashes as well). A backslash or
    an invisible joiner between two braces stops the first kind only, and who copies a command with an invisible
    character in it finds out late. A full-width brace is one character for one, so that no budget changes, it can
    be read, and it can be seen. What is replaced once stays as it is.
    """
    return text.translate(_HARMLESS)


def render(memories: Sequence[Memory], config: BlockConfig, switches: Switches = NO_SWITCHES) -> Block:
    """The memories as text, in their order, a line with type, title and content each; empty without a memory.

    A content over its bound is cut, then the block is cut at its budget; both at whole characters.
    """
    text = config.head
    starts: list[int] = []
    truncated = False
    for memory in memories:
        content, was_cut = _shorten(_plain(memory.content, switches), config.entry_chars, switches)
        title = _plain(" ".join(memory.title.split()), switches)
        text += f"\n- [{memory.type}] {title}" + (": " if title and content else "")
        starts.append(len(text) if content else len(text) - 1)  # without content the head is all there is to show
        text += content
        truncated |= was_cut
    text, was_cut = _shorten(text, config.max_chars, switches)
    shown = len(text) - len(ELLIPSIS) if was_cut else len(text)
    ids = tuple(memory.id for memory, start in zip(memories, starts, strict=True) if start < shown)
    return Block(text, ids, truncated or was_cut) if ids else Block(truncated=bool(memories))


def _plain(text: str, switches: Switches) -> str:
    if not switches.cut_by_utf16:
        text = clean(text)
    return text if switches.braces_raw else harmless(text)


def _shorten(text: str, limit: int, switches: Switches) -> tuple[str, bool]:
    """At most `limit` characters, and whether it was cut."""
    if switches.budget_ignored:
        return text, False
    if switches.cut_by_utf16:
        units = text.encode("utf-16-le", "surrogatepass")
        if len(units) <= 2 * limit:
            return text, False
        return units[: 2 * max(0, limit - len(ELLIPSIS))].decode("utf-16-le", "surrogatepass") + ELLIPSIS, True
    if len(text) <= limit:
        return text, False
    return cut(text, limit - len(ELLIPSIS)) + ELLIPSIS, True
