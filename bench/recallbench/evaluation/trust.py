"""Trust checks: how an evaluation fails silently, checked on every run (protocols, trust checks)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recallbench.datasets.model import LabelledSet
from recallbench.evaluation.check_set import contradictions
from recallbench.evaluation.match import tie_bounds
from recallbench.measures import Measure
from recallbench.measures.ranked import RankedLabels
from recallbench.systems.base import SystemRun
from recallbench.text.escape import one_line

SATURATED = 0.98
"""From this mean of the primary measure on, a set cannot tell systems apart."""
JUDGED_ENOUGH = 0.95
"""Below this mean of Judged@5 the figures of a system depend on hits that nobody judged."""

REASONS = 5
"""Different reasons that the message of failed questions names."""
MATCHES = {"id": "id", "source_ids": "source ids", "id_map": "id map", "text": "text"}

Level = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. name: kebab case, stable; system: empty where it is about the whole run."""

    level: Level
    name: str
    system: str
    message: str


def check_evaluation(
    labelled: LabelledSet,
    runs: Sequence[SystemRun],
    ranked: Sequence[RankedLabels],
    measures: tuple[Measure, ...],
    values: NDArray[np.float64],
    counts: NDArray[np.bool_],
    depth: int,
    allow_zero: Sequence[str] = (),
) -> tuple[Check, ...]:
    """All findings, errors first. The first measure is the primary one. values, counts: `[S, M, Q]`."""
    found = [
        *_labels(labelled),
        *_answers(labelled, runs),
        *_denominator(labelled, measures, counts),
        *_zero(runs, measures[0], values[:, 0], counts[:, 0], allow_zero),
        *_saturation(runs, measures, values, counts),
        *_short_lists(labelled, runs, depth),
        *_order(runs),
        *_ties(labelled, runs, ranked, measures[0], values[:, 0], counts[:, 0]),
        *_judged(runs, measures, values, counts),
    ]
    rank = {"error": 0, "warning": 1, "info": 2}
    shown = (replace(check, message=one_line(check.message)) for check in found)
    return tuple(sorted(shown, key=lambda check: rank[check.level]))


def _labels(labelled: LabelledSet) -> Iterator[Check]:
    found = contradictions(labelled)
    if found:
        told = "; ".join(f"{one.where}: {one.message}" for one in found[:REASONS])
        more = f" and {len(found) - REASONS} more" if len(found) > REASONS else ""
        yield Check("error", "labels", "", f"the labels contradict themselves: {told}{more}; see `datasets check`")


def _answers(labelled: LabelledSet, runs: Sequence[SystemRun]) -> Iterator[Check]:
    for run in runs:
        failed = int(run.failed.sum())
        if failed:
            first = labelled.questions[int(run.failed.argmax())].id
            yield Check(
                "error",
                "failed-questions",
                run.system,
                f"no valid answer to {failed} of {len(run.failed)} questions (first: {first}); "
                f"each scores the worst value{_reasons(labelled, run)}",
            )
        yield from _observed(run)
        repeated = sum(len(one) - len(set(one)) for one in run.ids)
        if repeated:
            yield Check(
                "warning",
                "repeated-ids",
                run.system,
                f"{repeated} repeated ids; each counted once, at its first place",
            )
        for note in run.notes:
            yield Check("warning", "system-note", run.system, note)


def _reasons(labelled: LabelledSet, run: SystemRun) -> str:
    """Why questions have no valid answer, the most frequent reason first, each with its first question."""
    if run.observed is None:
        return ""
    found: dict[str, list[str]] = {}
    for question, error in zip(labelled.questions, run.observed.errors, strict=True):
        if error:
            found.setdefault(error, []).append(question.id)
    order = sorted(found.items(), key=lambda one: -len(one[1]))
    shown = [f"{len(ids)}× it {error} ({ids[0]}{', …' if len(ids) > 1 else ''})" for error, ids in order[:REASONS]]
    if len(order) > REASONS:
        shown.append(f"and {len(order) - REASONS} other reasons")
    return f": {'; '.join(shown)}"


def _observed(run: SystemRun) -> Iterator[Check]:
    """What was seen of a system from outside: answers that change, rows that match nothing."""
    seen = run.observed
    if seen is None:
        return
    unstable = sum(seen.unstable)
    if unstable:
        yield Check(
            "warning",
            "flaky",
            run.system,
            f"another list came back for {unstable} of {len(seen.unstable)} questions in {seen.repeats} repeats; "
            "the first answer counts",
        )
    ways = Counter(match for one in seen.matches for match in one)
    nothing = ways.pop("none", 0)
    if nothing or set(ways) - {"id"}:
        shown = ", ".join(f"{count} by {MATCHES[way]}" for way, count in sorted(ways.items()))
        yield Check(
            "warning" if nothing else "info",
            "matching",
            run.system,
            f"returned rows matched to memories: {shown or 'none'}"
            + (f"; {nothing} matched nothing, each keeps its place" if nothing else ""),
        )


def _denominator(labelled: LabelledSet, measures: tuple[Measure, ...], counts: NDArray[np.bool_]) -> Iterator[Check]:
    if not counts[:, 0].any():
        yield Check(
            "error",
            "nothing-measured",
            "",
            f"no question counts in {measures[0]}; the labels hold nothing for it",
        )
    empty = sum(not any(grade > 0 for grade in question.relevant.values()) for question in labelled.questions)
    if empty:
        yield Check(
            "info",
            "no-relevant",
            "",
            f"{empty} of {len(labelled.questions)} questions have no relevant memory; "
            "they count in Abstain and Leak, not in recall",
        )


def _zero(
    runs: Sequence[SystemRun],
    primary: Measure,
    values: NDArray[np.float64],
    counts: NDArray[np.bool_],
    allowed: Sequence[str],
) -> Iterator[Check]:
    if not primary.higher_is_better or not counts.any():
        return
    zero = [run.system for run, v, c in zip(runs, values, counts, strict=True) if c.any() and not v[c].any()]
    strict = [name for name in zero if name not in allowed]
    if len(zero) == len(runs) and strict:
        yield Check(
            "error",
            "all-zero",
            "",
            f"{primary} is 0 on every question for every system: labels and returned ids do not meet; "
            "allow it by name with --allow-zero SYSTEM if it is right",
        )
        return
    for name in strict:
        yield Check("warning", "zero", name, f"{primary} is 0 on every question")


def _saturation(
    runs: Sequence[SystemRun],
    measures: tuple[Measure, ...],
    values: NDArray[np.float64],
    counts: NDArray[np.bool_],
) -> Iterator[Check]:
    primary = measures[0]
    means = [v[c].mean() if c.any() else 0.0 for v, c in zip(values[:, 0], counts[:, 0], strict=True)]
    if primary.higher_is_better and max(means) >= SATURATED:
        best = runs[int(np.argmax(means))].system
        yield Check(
            "warning",
            "saturated",
            "",
            f"{best} reaches {primary} {max(means):.3f}: saturated from {SATURATED} on, "
            "the set cannot tell systems apart",
        )
    groups: list[list[int]] = []
    for s in range(len(runs)):
        for group in groups:
            if np.array_equal(values[s], values[group[0]]):
                group.append(s)
                break
        else:
            groups.append([s])
    for group in groups:
        if len(group) > 1:
            same = ", ".join(runs[s].system for s in group)
            yield Check("warning", "equal-systems", "", f"equal in every measure on every question: {same}")


def _short_lists(labelled: LabelledSet, runs: Sequence[SystemRun], depth: int) -> Iterator[Check]:
    """Always the same number of rows, and fewer than asked for, than the capacity, and than there are memories."""
    rows = min((len(labelled.corpora[question.corpus]) for question in labelled.questions), default=0)
    found = []
    for run in runs:
        lengths = {len(one) for one, bad in zip(run.ids, run.failed, strict=True) if not bad}
        if len(lengths) == 1 and len(run.ids) > 1 and 0 < max(lengths) < min(depth, run.capacity or depth, rows):
            found.append(f"{run.system} {max(lengths)}")
    if found:
        yield Check(
            "warning",
            "short-lists",
            "",
            f"always the same number of rows where {depth} were asked for; a limit may have been swallowed: "
            + ", ".join(found),
        )


def _order(runs: Sequence[SystemRun]) -> Iterator[Check]:
    found: dict[Level, list[str]] = {"warning": [], "info": []}
    for run in runs:
        bad = sum(any(a < b for a, b in itertools.pairwise(one)) for one in run.scores)
        if bad:  # a recipe of ours may order by more than its scores; its documented order is no surprise
            found["info" if "kind" in run.spec else "warning"].append(f"{run.system} {bad}")
    for level, systems in found.items():
        if systems:
            yield Check(
                level,
                "scores-not-in-order",
                "",
                f"scores do not fall along the list (questions of {len(runs[0].scores)}; "
                f"the order of the list counts): {', '.join(systems)}",
            )


def _ties(
    labelled: LabelledSet,
    runs: Sequence[SystemRun],
    ranked: Sequence[RankedLabels],
    primary: Measure,
    values: NDArray[np.float64],
    counts: NDArray[np.bool_],
) -> Iterator[Check]:
    found = []
    for s, run in enumerate(runs):
        bounds = tie_bounds(primary, labelled, run)
        if bounds is None or not counts[s].any():
            continue
        worst, best = sorted(float(one[counts[s]].mean()) for one in bounds)
        if best - worst > 1e-12:
            found.append(f"{run.system} {float(values[s][counts[s]].mean()):.3f} in [{worst:.3f}, {best:.3f}]")
    if found:
        yield Check(
            "info",
            "ties",
            "",
            f"{primary} over all orders of equal scores (the documented order counts): {', '.join(found)}",
        )


def _judged(
    runs: Sequence[SystemRun],
    measures: tuple[Measure, ...],
    values: NDArray[np.float64],
    counts: NDArray[np.bool_],
) -> Iterator[Check]:
    names = [str(measure) for measure in measures]
    if "Judged@5" not in names:
        return
    m = names.index("Judged@5")
    low = [
        f"{run.system} {values[s, m][counts[s, m]].mean():.2f}"
        for s, run in enumerate(runs)
        if counts[s, m].any() and values[s, m][counts[s, m]].mean() < JUDGED_ENOUGH
    ]
    if low:
        yield Check(
            "info",
            "unjudged",
            "",
            f"share of judged memories in the top 5 under {JUDGED_ENOUGH}: {', '.join(low)}; "
            "unjudged hits count as not relevant",
        )
