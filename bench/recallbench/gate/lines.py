"""The sentences and table rows of a gate's result, as the terminal and the pull-request comment share them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from recallbench.gate.flips import Flips
from recallbench.gate.judge import GateResult
from recallbench.gate.outcome import Change, Outcome, Verdict
from recallbench.statistics.sample_size import MOST, Settle
from recallbench.statistics.verdict_interval import VerdictInterval
from recallbench.text.escape import one_line

ROWS = 12
"""Rules shown in a table; where there are more, those that did not pass come first."""
HEADER = ("rule", "was", "now", "change", "limit", "verdict")
FLIP_HEADER = ("question", "was", "now", "memory", "rank", "lost at")

Quote = Callable[[str], str]


def headline(result: GateResult, bold: Quote = str) -> str:
    """The verdict, what was compared, on what."""
    labelled = result.evaluation.labelled
    systems = [pair.system for pair in result.pairs]
    named = ", ".join(systems) if len(systems) <= 3 else f"{len(systems)} systems"
    split = f", {result.evaluation.split} split" if result.evaluation.split else ""
    clusters = {question.cluster for question in labelled.questions}
    grouped = f" in {len(clusters)} clusters" if None not in clusters else ""
    where = f"{labelled.info.name} {labelled.info.version}{split}, {len(labelled.questions)} questions{grouped}"
    return f"{bold(str(result.verdict))}: {one_line(f'{named} against {result.against} ({where})')}"


def shown(outcomes: Sequence[Outcome], most: int = ROWS) -> tuple[list[Outcome], int]:
    """(the outcomes that a table shows, in order; how many are left out): what did not pass goes first."""
    rules = [one for one in outcomes if one.kind != "trust"]
    if len(rules) <= most:
        return rules, 0
    chosen = sorted(rules, key=lambda one: one.verdict is Verdict.PASS)[:most]
    kept = {id(one) for one in chosen}
    return [one for one in rules if id(one) in kept], len(rules) - most


def rule_row(one: Outcome, several: bool) -> list[str]:
    """One outcome as the cells of HEADER. several: whether systems must be told apart."""
    name = one.title
    if one.kind in ("floor", "hard"):
        name += " (no new)" if one.limit is None else f" ({one.kind})"
    if several and one.system:
        name = f"{one.system}: {name}"
    verdict = str(one.verdict)
    if one.change is not None:
        if one.verdict is Verdict.PASS and one.change.significantly_worse:
            verdict = "PASS (worse)"
        change = one.change
        return [
            name,
            f"{change.before:.3f}",
            f"{change.after:.3f}",
            spread(change.interval),
            f"-{change.margin:g}",
            verdict,
        ]
    value = "" if one.value is None else f"{one.value:.0f} worse" if one.limit is None else f"{one.value:.3f}"
    return [name, "", value, "", "" if one.limit is None else f"{one.limit:g}", verdict]


def spread(interval: VerdictInterval) -> str:
    """A mean with its interval."""
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return f"{interval.mean:+.3f} [?]"
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


def reasons(result: GateResult) -> Iterator[str]:
    """Why each rule that did not pass did not, and what would settle it; then what weakens those that did."""
    several = len(result.pairs) > 1
    return filter(None, (reason(one, result, several) for one in result.outcomes))


def reason(one: Outcome, result: GateResult, several: bool) -> str:
    """One line on an outcome; empty where there is nothing to say. several: whether systems must be told apart."""
    name = f"{one.system}: {one.title}" if (several or one.kind == "trust") and one.system else one.title
    said = one.message
    if not said and one.change is not None:
        if one.verdict is not Verdict.PASS:
            said = _why(one, one.change, result)
        elif one.change.significantly_worse:
            said = f"significantly worse, within the margin of {one.change.margin:g}"
    return one_line(f"{name}: {said}") if said else ""


def _why(one: Outcome, change: Change, result: GateResult) -> str:
    level = f"{result.policy.level * 100:g} %"
    if one.verdict is Verdict.FAIL:
        if change.joint.high >= -change.margin:
            return f"worse, within the margin of {change.margin:g}, and the policy says that this fails"
        return f"the drop is greater than the margin of {change.margin:g}, at {level} over all rules together"
    lead = f"cannot tell at {level} whether the drop is within {change.margin:g}"
    if change.interval.high < -change.margin:
        lead = f"beyond the margin of {change.margin:g} by itself, but not at {level} over all rules together"
    return f"{lead}; {settled(change.settle, change.margin)}"


def settled(found: Settle | None, margin: float) -> str:
    """What would settle an inconclusive margin."""
    if found is None:
        return "label more questions: these are too few to say how many"
    parts = (
        ("if nothing changed", found.same, found.clusters_same),
        (f"if the true drop is {2 * margin:g}", found.twice, found.clusters_twice),
    )
    if all(count >= MOST for _, count, _ in parts):
        return f"more than {MOST:,} questions would settle it: choose a wider margin"
    said = [
        f"about {count:,} questions{f' ({clusters:,} clusters)' if clusters else ''} {when}"
        for when, count, clusters in parts
    ]
    return f"what settles it: {', '.join(said)}; or a wider margin"


def notes(result: GateResult) -> Iterator[str]:
    """On the baseline, on rough intervals, and the warnings of the trust checks."""
    return map(one_line, _notes(result))


def _notes(result: GateResult) -> Iterator[str]:
    yield from result.notes
    told = dict.fromkeys(note for one in result.outcomes if not one.group for note in one.notes)
    yield from told
    yield from dict.fromkeys(
        f"{one.title}: {note}" for one in result.outcomes if one.group for note in one.notes if note not in told
    )
    for check in result.warnings:
        yield f"{check.system + ': ' if check.system else ''}{check.message} ({check.name})"


def flip_line(found: Flips, several: bool) -> str:
    """How many questions changed."""
    who = f"{found.system}: " if several else ""
    counts = f"{len(found.worse)} questions worse, {len(found.better)} better, {found.same} the same."
    return one_line(f"{who}{found.measure}: {counts}")


def flip_notes(found: Flips) -> Iterator[str]:
    """Where the worse questions are, and where their memories were lost."""
    if found.where:
        yield one_line(f"Worse in: {', '.join(f'{name} {worse} of {of}' for name, worse, of in found.where)}.")
    if found.lost_at:
        yield one_line(f"Relevant memories: {', '.join(f'{stage} {count}' for stage, count in found.lost_at)}.")


def flip_rows(found: Flips, most: int, quote: Quote = str) -> list[list[str]]:
    """The questions that got worse most, as the cells of FLIP_HEADER; one memory of each, and how many more."""
    rows = []
    for one in found.worse[:most]:
        moved = one.moved[0] if one.moved else None
        more = f" (+{len(one.moved) - 1})" if len(one.moved) > 1 else ""
        rows.append(
            [
                quote(one.question),
                f"{one.before:.3f}",
                f"{one.after:.3f}",
                quote(moved.memory) + more if moved else "",
                f"{moved.before} → {moved.after or '–'}" if moved else "",
                moved.stage if moved else "",
            ]
        )
    return rows
