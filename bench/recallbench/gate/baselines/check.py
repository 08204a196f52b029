"""Whether a baseline still says what the set, the measures and the system say now."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from recallbench.datasets.jsonl import listed
from recallbench.datasets.model import LabelledSet
from recallbench.evaluation.match import ranked_labels
from recallbench.gate.baselines.changes import Changes, Difference, changes, counted
from recallbench.gate.baselines.model import Baseline, run_of
from recallbench.measures import parse_measure
from recallbench.systems.base import SystemRun


@dataclass(frozen=True, slots=True)
class Checked:
    """changes: of the set. values: (system, measure) -> questions whose stored value is not what its list gives now;
    empty where the memories have changed. answers: system -> questions that it answers with another list now."""

    changes: Changes
    values: dict[tuple[str, str], tuple[str, ...]]
    answers: dict[str, tuple[str, ...]]

    @property
    def usable(self) -> bool:
        """Whether a gate would take it."""
        asked = self.changes.questions
        return not (self.changes.memories or asked.added or asked.changed)

    @property
    def same(self) -> bool:
        """Whether nothing at all has changed."""
        found = self.changes
        return not (found.memories or found.questions or found.labels or self.values or self.answers)

    def lines(self) -> list[str]:
        """One line a finding."""
        found = self.changes
        out = [
            f"{what} {difference}: {outcome}"
            for what, difference, outcome in (
                ("memories:", found.memories, "refused by a gate; save it anew"),
                ("questions:", found.questions, _asked(found.questions)),
                ("labels:", found.labels, "a gate scores it anew from its lists"),
            )
            if difference
        ]
        out += [
            f"{system}: {measure}: {counted(len(names), 'stored value')} not what the lists give now ({listed(names)})"
            for (system, measure), names in self.values.items()
        ]
        out += [
            f"{system}: answers {counted(len(names), 'question')} with other lists now ({listed(names)})"
            for system, names in self.answers.items()
        ]
        return out


def _asked(found: Difference) -> str:
    if found.added or found.changed:
        return "refused by a gate; save it anew"
    return "a gate leaves them out"


def check(baseline: Baseline, labelled: LabelledSet, runs: Sequence[SystemRun] = ()) -> Checked:
    """Compare a baseline with a set, and with new answers of its systems (`runs`, by name)."""
    found = changes(baseline, labelled)
    values: dict[tuple[str, str], tuple[str, ...]] = {}
    answers: dict[str, tuple[str, ...]] = {}
    known = [question for question in labelled.questions if question.id in baseline.questions]
    if not found.memories and known:
        import dataclasses

        order = {name: place for place, name in enumerate(baseline.questions)}
        places = [order[question.id] for question in known]
        part = dataclasses.replace(labelled, questions=tuple(known))
        for name, system in baseline.systems.items():
            ranked = ranked_labels(part, run_of(name, system, places))
            for measure, stored in system.values.items():
                fresh = parse_measure(measure).compute(ranked).tolist()
                wrong = tuple(
                    question.id
                    for question, place, value in zip(known, places, fresh, strict=True)
                    if not math.isclose(stored[place], value, rel_tol=1e-12, abs_tol=1e-12)
                )
                if wrong:
                    values[name, measure] = wrong
    for run in runs:
        if run.system in baseline.systems:
            lists = dict(zip(baseline.questions, baseline.systems[run.system].ids, strict=True))
            other = tuple(
                question.id
                for question, ids in zip(labelled.questions, run.ids, strict=True)
                if question.id in lists and tuple(lists[question.id]) != tuple(ids)
            )
            if other:
                answers[run.system] = other
    return Checked(found, values, answers)
