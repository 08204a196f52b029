"""Two systems on the same questions: paired statistics by measure and category, and the questions that flipped."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recallbench.evaluation.aggregate import clusters_of
from recallbench.evaluation.evaluate import Evaluation
from recallbench.statistics.intervals import FEW_CLUSTERS
from recallbench.statistics.paired import Comparison, compare, holm
from recallbench.text.tables import table
from recallstack.errors import InputError

if TYPE_CHECKING:
    from recallbench.runs.load import StoredRun

SMALL_CELL = 20
"""Under so many questions a category's difference is rough, and is marked."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measure, over all questions (group empty) or those of a category.

    a, b: means over the questions that count for both. comparison: b against a, above 0 is better. holm: the p-value
    adjusted over the rows of its table.
    """

    group: str
    measure: str
    a: float
    b: float
    comparison: Comparison
    holm: float


@dataclass(frozen=True, slots=True)
class Flip:
    """A question whose primary measure differs. change: above 0 where b is better. lost: relevant memory -> the stage
    where b lost it."""

    question: str
    change: float
    a: float
    b: float
    categories: tuple[str, ...]
    lost: dict[str, str]


@dataclass(frozen=True, eq=False, slots=True)
class Pairing:
    """b against a. rows: one a measure; by: the primary measure by category; flips: worst for b first."""

    a: str
    b: str
    dataset: str
    primary: str
    questions: int
    rows: tuple[Row, ...]
    by: tuple[Row, ...]
    flips: tuple[Flip, ...]
    notes: tuple[str, ...]


def pair(evaluation: Evaluation, a: str, b: str, *, notes: Sequence[str] = (), seed: int = 0) -> Pairing:
    """Compare system b with system a of one evaluation. Raises InputError for a system that it does not have."""
    names = evaluation.systems
    for name in (a, b):
        if name not in names:
            raise InputError(f"no system {name!r} in this run; it has {', '.join(names)}")
    if a == b:
        raise InputError(f"{a!r} is compared with itself; name two systems")
    places = names.index(a), names.index(b)
    questions = evaluation.labelled.questions
    rows = [_row(evaluation, places, m, None, seed) for m in range(len(evaluation.measures))]
    categories = sorted({one for question in questions for one in question.categories})
    by = [_row(evaluation, places, 0, name, seed) for name in categories]
    few = {
        row.comparison.interval.clusters for row in rows if row and 0 < row.comparison.interval.clusters < FEW_CLUSTERS
    }
    told = [*notes, *([f"intervals over {min(few)} clusters (under {FEW_CLUSTERS}) are rough"] if few else [])]
    return Pairing(
        a,
        b,
        evaluation.labelled.info.name,
        str(evaluation.measures[0]),
        len(questions),
        _adjusted(rows),
        _adjusted(by),
        _flips(evaluation, places),
        tuple(told),
    )


def across(a: StoredRun, b: StoredRun, *, seed: int = 0) -> list[Pairing]:
    """Compare two runs system by system. Raises InputError where they are not of the same memories and questions.

    Each system that both have; where each has one, those two, whatever their names. Depth and measures must be equal.
    """
    one, two = a.evaluation, b.evaluation
    where = f"{a.folders[0]} and {b.folders[0]}"
    if a.name != b.name or a.manifest["dataset"]["memories"] != b.manifest["dataset"]["memories"]:
        raise InputError(f"{where} are of other memories; run both on the same set")
    if [q.id for q in one.labelled.questions] != [q.id for q in two.labelled.questions]:
        raise InputError(f"{where} have other questions; run both with the same --split and --category")
    if [str(m) for m in one.measures] != [str(m) for m in two.measures] or one.depth != two.depth:
        raise InputError(f"{where} have other measures or another depth; run both with the same")
    notes = []
    if a.manifest["dataset"]["labels"] != b.manifest["dataset"]["labels"]:
        notes.append("the labels changed between the two runs: a difference may come from them; run the older again")
    pairs = [(name, name) for name in one.systems if name in two.systems]
    if len(one.systems) == len(two.systems) == 1:
        pairs = [(one.systems[0], two.systems[0])]
    if not pairs:
        raise InputError(f"{where} have no system in common: {', '.join(one.systems)}; {', '.join(two.systems)}")
    out = []
    for left, right in pairs:
        names = (left, right) if left != right else (f"{left} (A)", f"{right} (B)")
        out.append(pair(_joined(one, two, left, right, names), *names, notes=notes, seed=seed))
    return out


def _joined(one: Evaluation, two: Evaluation, left: str, right: str, names: tuple[str, str]) -> Evaluation:
    """An evaluation of the two systems alone, one from each run."""
    s, t = one.systems.index(left), two.systems.index(right)
    return dataclasses.replace(
        two,
        runs=(dataclasses.replace(one.runs[s], system=names[0]), dataclasses.replace(two.runs[t], system=names[1])),
        values=np.stack([one.values[s], two.values[t]]),
        counts=np.stack([one.counts[s], two.counts[t]]),
    )


def _row(evaluation: Evaluation, places: tuple[int, int], m: int, category: str | None, seed: int) -> Row | None:
    """None where no question counts for both."""
    counted = evaluation.counts[places[0], m] & evaluation.counts[places[1], m]
    if category is not None:
        counted = counted & np.array([category in one.categories for one in evaluation.labelled.questions], np.bool_)
    at = np.flatnonzero(counted)
    if not len(at):
        return None
    old, new = (evaluation.values[s, m, at] for s in places)
    clusters = clusters_of(evaluation)
    sign = 1.0 if evaluation.measures[m].higher_is_better else -1.0
    found = compare(sign * (new - old), [clusters[place] for place in at], seed=seed)
    return Row(category or "", str(evaluation.measures[m]), float(old.mean()), float(new.mean()), found, found.p)


def _adjusted(rows: Sequence[Row | None]) -> tuple[Row, ...]:
    held = [row for row in rows if row is not None]
    adjusted = holm([row.comparison.p for row in held])
    return tuple(
        Row(row.group, row.measure, row.a, row.b, row.comparison, q) for row, q in zip(held, adjusted, strict=True)
    )


def _flips(evaluation: Evaluation, places: tuple[int, int]) -> tuple[Flip, ...]:
    counted = evaluation.counts[places[0], 0] & evaluation.counts[places[1], 0]
    sign = 1.0 if evaluation.measures[0].higher_is_better else -1.0
    change = sign * (evaluation.values[places[1], 0] - evaluation.values[places[0], 0])
    losses = evaluation.runs[places[1]].losses
    out = []
    for place in sorted(np.flatnonzero(counted & (change != 0)), key=lambda one: (change[one], one)):
        question = evaluation.labelled.questions[place]
        lost = {name: stage for name, stage in (losses[place] if losses else {}).items() if stage != "kept"}
        old, new = (float(evaluation.values[s, 0, place]) for s in places)
        out.append(Flip(question.id, float(change[place]), old, new, question.categories, lost))
    return tuple(out)


def pairing_values(pairing: Pairing) -> dict[str, Any]:
    """All of it as JSON values (unknown numbers are null)."""

    def row(one: Row) -> dict[str, Any]:
        found = one.comparison
        return {
            **({"category": one.group} if one.group else {}),
            "measure": one.measure,
            "a": _number(one.a),
            "b": _number(one.b),
            "difference": _number(found.interval.mean),
            "low": _number(found.interval.low),
            "high": _number(found.interval.high),
            "bootstrap": [_number(value) for value in found.bootstrap],
            "p": _number(found.p),
            "holm": _number(one.holm),
            "better": found.better,
            "worse": found.worse,
            "same": found.same,
            "effect": _number(found.effect),
            "detectable": _number(found.detectable),
            "questions": found.interval.n,
            "clusters": found.interval.clusters,
        }

    return {
        "dataset": pairing.dataset,
        "a": pairing.a,
        "b": pairing.b,
        "primary": pairing.primary,
        "measures": [row(one) for one in pairing.rows],
        "categories": [row(one) for one in pairing.by],
        "flips": [
            {"question": one.question, "a": one.a, "b": one.b, "categories": list(one.categories), "lost": one.lost}
            for one in pairing.flips
        ],
        "notes": list(pairing.notes),
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def pairing_markdown(pairing: Pairing, shown: int) -> str:
    """The same as Markdown, with at most `shown` of the questions that got worse, and of those that got better."""
    a, b = pairing.a, pairing.b
    header = ["measure", a, b, "difference", "bootstrap", "p (Holm)", "better", "worse", "same", "d_z", "detectable"]
    worse = [one for one in pairing.flips if one.change < 0]
    better = [one for one in reversed(pairing.flips) if one.change > 0]
    parts = [
        f"# {b} against {a} on {pairing.dataset}",
        f"{pairing.questions} questions. Differences are signed so that above 0 is better; brackets: 95 % interval.",
        table(header, [[row.measure, *_cells(row)] for row in pairing.rows]),
        "p: randomization test, adjusted by Holm's method over this table; d_z: mean difference over the standard "
        "deviation of the differences; detectable: the smallest true difference found with 80 % power.",
    ]
    if pairing.by:
        rows = [
            [row.group + (" (few)" if row.comparison.interval.n < SMALL_CELL else ""), *_cells(row)]
            for row in pairing.by
        ]
        parts += [f"## {pairing.primary} by category", table(["category", *header[1:]], rows)]
        if any(row.comparison.interval.n < SMALL_CELL for row in pairing.by):
            parts.append(f"few: under {SMALL_CELL} questions; such a difference is rough.")
    for title, flips in ((f"Worse in {b}", worse), (f"Better in {b}", better)):
        if flips:
            more = f", {shown} of them" if len(flips) > shown else ""
            parts += [
                f"## {title}: {len(flips)} questions{more}",
                table(["question", a, b, "categories", f"lost by {b} at"], [_flip(one) for one in flips[:shown]]),
            ]
    parts += [f"- {note}" for note in pairing.notes]
    return "\n\n".join(parts) + "\n"


def _cells(row: Row) -> list[str]:
    found = row.comparison
    known = found.interval.n > 1
    return [
        f"{row.a:.3f}",
        f"{row.b:.3f}",
        f"{_signed(found.interval.mean)} {_between(found.interval.low, found.interval.high, known)}",
        _between(*found.bootstrap, known),
        f"{row.holm:.3f}" if row.holm >= 0.0005 else "<0.001",
        str(found.better),
        str(found.worse),
        str(found.same),
        f"{found.effect:+.2f}",
        f"{found.detectable:.3f}" if math.isfinite(found.detectable) else "–",
    ]


def _signed(value: float) -> str:
    return f"{value + 0.0 if abs(value) >= 0.0005 else 0.0:+.3f}"


def _between(low: float, high: float, known: bool) -> str:
    """An interval; a dash where one question leaves it unknown."""
    return f"[{_signed(low)}, {_signed(high)}]" if known and math.isfinite(low) and math.isfinite(high) else "[–]"


def _flip(flip: Flip) -> list[str]:
    lost = ", ".join(f"{name}: {stage}" for name, stage in flip.lost.items())
    return [flip.question, f"{flip.a:.3f}", f"{flip.b:.3f}", ", ".join(flip.categories), lost or "–"]
