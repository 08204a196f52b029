"""Markdown tables whose columns line up in a terminal, Chinese included."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from recallbench.text.escape import one_line


def width(text: str) -> int:
    """Terminal cells of a text: wide and full-width characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str = "") -> str:
    """A Markdown table. align: one letter a column, `l` or `r`; the first column is `l`, others `r` by default.

    Pipes and line ends inside a cell are made harmless.
    """
    align = align or "l" + "r" * (len(header) - 1)
    clean = [[_cell(cell) for cell in row] for row in (header, *rows)]
    widths = [max(3, *(width(row[c]) for row in clean)) for c in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            (" " * (w - width(cell)) + cell) if a == "r" else cell + " " * (w - width(cell))
            for cell, w, a in zip(cells, widths, align, strict=True)
        ]
        return f"| {' | '.join(padded)} |"

    rule = "|".join(f"{'-' * (w + 1)}:" if a == "r" else "-" * (w + 2) for w, a in zip(widths, align, strict=True))
    return "\n".join([line(clean[0]), f"|{rule}|", *(line(row) for row in clean[1:])])


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")
