"""Text of others, made harmless: control characters shown, Markdown escaped, spreadsheet formulas neutralised."""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Controls, bidirectional marks and overrides, separators, half characters (Unicode TR 36, section 3.2).

Joiners stay: emoji and several scripts need them.
"""
_MARKUP = re.compile(r"[\\`*_{}\[\]<>~&$]|(?<=\w):(?=//)|(?<=www)\.", re.IGNORECASE)
_MENTION = re.compile(r"(?<!\w)@(?=\w)")
_FORMULA = re.compile(r"^[\s\x00-\x20\u00a0\u200b\ufeff]*[=+\-@＝＋－＠]|^[\t\r\n]")
"""Cells that a spreadsheet may run (OWASP, CSV Injection), full-width forms too."""


def visible(text: str) -> str:
    """The text with every character that cannot be seen, or turns others round, written as `[U+202E]`."""
    return _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)


def one_line(text: str) -> str:
    """The text in one line, so that no line begins with words of others: in a CI log `::error::` is a command."""
    return " ".join(visible(text).split())


def clipped(text: str, most: int) -> str:
    """At most so many characters, with `…` where more were."""
    return text if len(text) <= most else text[: most - 1] + "…"


def markdown(text: str) -> str:
    """The text inside a line of Markdown, a table's too: nothing in it is markup, HTML, a link or a mention.

    Pipes are left to `recallbench.text.tables.table`.
    """
    safe = _MENTION.sub("@\u2060", one_line(text))
    return _MARKUP.sub(lambda found: "&lt;" if found[0] == "<" else f"\\{found[0]}", safe)


def cell(text: str) -> str:
    """The text as a cell of a CSV file that no spreadsheet takes for a formula: an apostrophe before it."""
    shown = visible(text)
    return f"'{shown}" if _FORMULA.match(text) else shown
