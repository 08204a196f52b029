"""Auto-recall: a section of the system prompt, made anew for each request and never part of the transcript."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recallstack.ranking.text import cut
from recallstack.systems.notes.recall import Hit
from recallstack.systems.notes.scanner import shown
from recallstack.systems.notes.switches import NO_SWITCHES, Switches

SECTION_NAME, SECTION_ORDER = "memory-search", 130
"""Documented (seed 002)."""
HEAD = "Notes of the user, found by memory search for this request:"
ELLIPSIS = "…"
"""What a cut text ends with; it counts against the budget."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the system prompt; sections stand by `order`."""

    name: str
    order: int
    text: str


@dataclass(frozen=True, slots=True)
class Message:
    """An entry of the transcript."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a request is made of. messages: the transcript."""

    sections: tuple[Section, ...] = ()
    messages: tuple[Message, ...] = ()


def make_section(hits: Sequence[Hit], chars: int, switches: Switches = NO_SWITCHES) -> Section | None:
    """Hits as a section of at most `chars` code points in all; None if nothing fits.

    The hit that crosses the bound is cut at a whole character and ends in an ellipsis; those behind it are left out.
    """
    text = HEAD
    for hit in hits:
        lead = f"\n[{shown(hit.file)}:{hit.line}] "
        if switches.budget_ignored or len(text) + len(lead) + len(hit.text) <= chars:
            text += lead + hit.text
            continue
        start = cut(hit.text, chars - len(text) - len(lead) - len(ELLIPSIS))
        return _section(text + lead + start + ELLIPSIS if start else text)
    return _section(text)


def _section(text: str) -> Section | None:
    return None if text == HEAD else Section(SECTION_NAME, SECTION_ORDER, text)


def with_section(prompt: Prompt, section: Section | None, switches: Switches = NO_SWITCHES) -> Prompt:
    """The prompt with this section in its place, and without an older one. The messages are left as they are."""
    kept = [one for one in prompt.sections if one.name != SECTION_NAME]
    if section is None:
        return replace(prompt, sections=tuple(kept))
    if switches.recall_enters_transcript:
        prompt = replace(prompt, messages=(*prompt.messages, Message("system", section.text)))
    return replace(prompt, sections=tuple(sorted([*kept, section], key=lambda one: one.order)))
