"""A gate's result as Markdown for a pull-request comment: the numbers first, the details folded."""

from __future__ import annotations

import math
import re

from recallbench.gate import lines
from recallbench.gate.judge import GateResult
from recallbench.gate.outcome import Verdict
from recallbench.text.escape import one_line
from recallbench.text.tables import table

MARK = "<!-- recallbench gate -->"
"""Begins every comment, so that a job can find its own and replace it."""
LIMIT = 60_000
"""GitHub takes 65,536 characters."""
_MENTION = re.compile(r"(?<!\w)@")
_SIGN = {Verdict.PASS: "✅", Verdict.FAIL: "❌", Verdict.INCONCLUSIVE: "⚠️", Verdict.INVALID: "🚫"}


def code(name: str) -> str:
    """A name as code: no mention, no link, no markup of its own."""
    return f"`{one_line(name.replace('`', 'ˋ'))}`" if name else ""


def plain(text: str) -> str:
    """A sentence without markup of its own; ids in it may hold any character."""
    for mark, safe in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("`", "&#96;")):
        text = text.replace(mark, safe)
    return _MENTION.sub("&#64;", re.sub(r"([*_\[\]])", r"\\\1", text))


def comment(result: GateResult) -> str:
    """The whole comment, cut to what GitHub takes."""
    several = len(result.pairs) > 1
    rules, left = lines.shown(result.outcomes)
    rows = [[_cell(cell) for cell in lines.rule_row(one, several)] for one in rules]
    parts = [MARK, f"### {_SIGN[result.verdict]} recallbench: {plain(lines.headline(result))}"]
    if rows:
        parts.append(table(lines.HEADER, rows, "lrrrrl"))
    if left:
        parts.append(f"{left} more rules are in the JSON file.")
    parts += ["\n".join(f"- {plain(one)}" for one in list(lines.reasons(result))[: lines.ROWS])]
    for found in result.flips:
        if found.worse or found.better:
            title = " ".join([lines.flip_line(found, several), *lines.flip_notes(found)])
            inner = table(lines.FLIP_HEADER, lines.flip_rows(found, 20, code), "lrrlll") if found.worse else ""
            more = f"\n\n{len(found.worse) - 20} more got worse." if len(found.worse) > 20 else ""
            parts.append(_folded(title, inner + more) if inner else plain(title))
    parts += [_categories(result, several), _statistics(result, several), _unjudged(result)]
    told = [f"- {plain(one)}" for one in lines.notes(result)]
    parts.append(_folded(f"{len(told)} notes", "\n".join(told)) if told else "")
    return _cut([part for part in parts if part])


def _cell(text: str) -> str:
    """A cell of numbers stays as it is; its brackets are an interval."""
    return plain(text) if any(mark in text for mark in "<>@`*_") else text


def _folded(title: str, inner: str) -> str:
    return f"<details><summary>{plain(title)}</summary>\n\n{inner}\n\n</details>"


def _categories(result: GateResult, several: bool) -> str:
    if not result.categories:
        return ""
    rows = [
        [
            plain(f"{one.system}: {one.category}" if several else one.category),
            str(one.interval.n),
            lines.spread(one.interval),
            "small" if one.small else "",
        ]
        for one in result.categories[:60]
    ]
    primary = str(result.evaluation.measures[0])
    return _folded(f"{primary} by category", table(("category", "questions", "change", ""), rows, "lrrl"))


def _statistics(result: GateResult, several: bool) -> str:
    rows = []
    for one in result.outcomes:
        if one.change is None or one.change.comparison is None:
            continue
        found = one.change.comparison
        low, high = found.bootstrap
        rows.append(
            [
                plain(f"{one.system}: {one.name}" if several else one.name),
                f"{one.change.interval.n} ({one.change.interval.clusters or 'no'} clusters)",
                f"[{found.interval.low:+.3f}, {found.interval.high:+.3f}]",
                f"[{low:+.3f}, {high:+.3f}]" if math.isfinite(low) else "",
                f"{found.p:.4f}",
                f"{found.effect:+.2f}",
                f"{found.detectable:.3f}" if math.isfinite(found.detectable) else "",
            ]
        )
    if not rows:
        return ""
    header = ("measure", "questions", "t interval", "bootstrap", "p (randomization)", "d_z", "detectable")
    text = (
        "The verdict is read from the interval in the table above, the widest of several (docs/gate.md); these stand "
        "beside it. d_z: mean change over the standard deviation of the changes. detectable: smallest true change that "
        "these questions find with 80 % power."
    )
    return _folded("Statistics", f"{table(header, rows[:30], 'lrrrrrr')}\n\n{text}")


def _unjudged(result: GateResult) -> str:
    if not result.unjudged:
        return ""
    rows = [
        [code(one.question), code(one.memory), f"{one.before or '–'} → {one.after or '–'}"]
        for one in result.unjudged[:20]
    ]
    return _folded(
        f"{len(result.unjudged)} returned memories that nobody judged decide",
        table(("question", "memory", "rank"), rows, "lll"),
    )


def _cut(parts: list[str]) -> str:
    """Whole parts as long as they fit."""
    kept, length = [], 0
    for part in parts:
        length += len(part.encode("utf-16-le")) // 2 + 2
        if length > LIMIT:
            kept.append("More is in the JSON file.")
            break
        kept.append(part)
    return "\n\n".join(kept) + "\n"
