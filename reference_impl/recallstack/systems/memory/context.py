"""What the agent gets around a user's message: orchestration and memories, marked so that it can be removed."""

from __future__ import annotations

import re

CONTEXT = "Memory Context"
ORCHESTRATION = "Orchestration"
_TAG = re.compile(rf"\[(/?\s*(?:{CONTEXT}|{ORCHESTRATION}))\]", re.IGNORECASE)


def _block(name: str) -> str:
    """A block ends at its closing tag; one without, at the next blank line, at the latest with the text."""
    inside = rf"(?:(?!\[{name}\]).)*?"
    return rf"\[{name}\](?:{inside}\[/{name}\]|{inside}(?=\n[^\S\n]*\n)|{inside}\Z)"


_BLOCKS = re.compile("|".join(map(_block, (CONTEXT, ORCHESTRATION))), re.IGNORECASE | re.DOTALL)


def orchestrated(message: str, memories: str = "", orchestration: str = "") -> str:
    """The message as the agent gets it. Tags inside of what is added cannot end it."""
    parts = [
        f"[{name}]\n{_TAG.sub(_full_width, text)}\n[/{name}]"
        for name, text in ((ORCHESTRATION, orchestration), (CONTEXT, memories))
        if text
    ]
    return "\n\n".join([*parts, message])


def without_context(text: str) -> str:
    """The text without orchestration and memories."""
    return _BLOCKS.sub("", text).strip()


def _full_width(tag: re.Match[str]) -> str:
    return f"\uff3b{tag[1]}\uff3d"
