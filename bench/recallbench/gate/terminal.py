"""A gate's result on one screen of a terminal."""

from __future__ import annotations

from recallbench.gate import lines
from recallbench.gate.judge import GateResult
from recallbench.gate.outcome import Verdict
from recallbench.text.tables import table

FLIPS = 5
FLIPS_MORE = 3
UNJUDGED = 5
NOTES = 6


def terminal(result: GateResult) -> str:
    """The verdict first, then the rules, why, what got worse and where it was lost."""
    several = len(result.pairs) > 1
    rules, left = lines.shown(result.outcomes)
    parts = [lines.headline(result)]
    if rules:
        parts.append(table(lines.HEADER, [lines.rule_row(one, several) for one in rules], "lrrrrl"))
    if left:
        parts.append(f"{left} more rules passed." if _rest_passed(result, left) else f"{left} more rules; see --json.")
    why = list(lines.reasons(result))
    if why:
        parts.append("\n".join(f"- {one}" for one in why[: lines.ROWS]))
    parts += _flips(result, several)
    if result.unjudged:
        parts.append(_unjudged(result))
    told = list(lines.notes(result))
    if told:
        more = [f"note: {len(told) - NOTES} more; see --json"] if len(told) > NOTES else []
        parts.append("\n".join([*(f"note: {one}" for one in told[:NOTES]), *more]))
    return "\n\n".join(parts) + "\n"


def _rest_passed(result: GateResult, left: int) -> bool:
    rules = [one for one in result.outcomes if one.kind != "trust"]
    return sum(one.verdict is not Verdict.PASS for one in rules) <= len(rules) - left


def _flips(result: GateResult, several: bool) -> list[str]:
    out = []
    found = [one for one in result.flips if one.worse or one.better]
    if not found:
        return ["No question changed."] if result.flips and result.verdict is Verdict.PASS else []
    for place, one in enumerate(found[:3]):
        out.append(f"{lines.flip_line(one, several)}\n{' '.join(lines.flip_notes(one))}".strip())
        if one.worse:
            out.append(table(lines.FLIP_HEADER, lines.flip_rows(one, FLIPS if place == 0 else FLIPS_MORE), "lrrlll"))
    if len(found) > 3:
        out.append(f"{len(found) - 3} more measures or systems changed; see --json.")
    return out


def _unjudged(result: GateResult) -> str:
    rows = [
        [one.question, one.memory, f"{one.before or '–'} → {one.after or '–'}"] for one in result.unjudged[:UNJUDGED]
    ]
    head = (
        f"Judge these first ({len(result.unjudged)} in all; --pool FILE writes them for `recallbench datasets judge`), "
        'or say unjudged = "not-relevant" in [gate] if the labels are complete:'
    )
    return f"{head}\n\n{table(('question', 'memory', 'rank'), rows, 'lll')}"
