"""A badge for a README: an endpoint of shields.io as JSON, and the same as SVG."""

from __future__ import annotations

import json
from html import escape

from recallbench.reports.section import Section
from recallbench.text.escape import clipped, visible
from recallbench.text.numbers import number
from recallbench.text.tables import width

COLOURS = {"green": "#2f7d4f", "yellow": "#8a6d1a", "red": "#b3261e", "blue": "#1f5fbf"}
"""White text on each has a contrast of at least 4.5 to 1."""
_OF_OUTCOME = {
    "better": "green",
    "kept": "green",
    "clear": "green",
    "traded": "yellow",
    "unproven": "yellow",
    "tied": "yellow",
    "invalid": "red",
}
_CELL = 6.6
"""Pixels that a terminal cell of a text takes at 11 pixels."""
MOST = 40


def badge_parts(section: Section) -> tuple[str, str, str]:
    """(label, message, colour): the primary measure, its value for the best system, how sure that is."""
    held = section.held
    label = f"{section.name} {held.primary}"
    colour = _OF_OUTCOME.get(section.verdict.outcome, "blue")
    if section.verdict.outcome == "invalid":
        return _short(label), "invalid run", colour
    value = number(held.means[held.pick, held.primary].mean)
    return _short(label), _short(f"{value} {held.pick}"), colour


def _short(text: str) -> str:
    return clipped(visible(text), MOST)


def badge_json(section: Section) -> str:
    """The body of an endpoint badge, schema version 1."""
    label, message, colour = badge_parts(section)
    value = {"schemaVersion": 1, "label": label, "message": message, "color": COLOURS[colour].removeprefix("#")}
    return json.dumps(value, ensure_ascii=False) + "\n"


def badge_svg(section: Section) -> str:
    """The badge as an SVG document that needs no font and no web."""
    label, message, colour = badge_parts(section)
    left, right = (round(_CELL * width(text) + 12) for text in (label, message))
    total, title = left + right, escape(f"{label}: {message}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<clipPath id="r"><rect width="{total}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#444c56"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{COLOURS[colour]}"/></g>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="{left / 2}" y="14">{escape(label)}</text>'
        f'<text x="{left + right / 2}" y="14">{escape(message)}</text></g></svg>\n'
    )
