"""The waterfall of a report: how many relevant memories each stage lost, system by system."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from recallbench.evaluation.evaluate import Evaluation
from recallstack.ranking.trace import LOSSES


@dataclass(frozen=True, slots=True)
class Waterfall:
    """counts: outcome -> memories, in the order of the stages, `kept` last; outcomes that nobody has are left out."""

    system: str
    total: int
    counts: dict[str, int]

    @property
    def steps(self) -> list[tuple[str, int, int]]:
        """(outcome, from, to): what is left before and after each loss; `kept` stands from 0."""
        out, left = [], self.total
        for name, count in self.counts.items():
            if name == "kept":
                out.append((name, 0, count))
            else:
                out.append((name, left - count, left))
                left -= count
        return out


def waterfalls(evaluation: Evaluation) -> list[Waterfall]:
    """One for each system that left a trace; memories of the least grade that binary measures count, or above."""
    rel = evaluation.labelled.info.default_rel
    counted: dict[str, Counter[str]] = {}
    for run in evaluation.runs:
        if run.losses:
            counted[run.system] = Counter(
                outcome
                for question, lost in zip(evaluation.labelled.questions, run.losses, strict=True)
                for memory, outcome in lost.items()
                if question.relevant.get(memory, 0) >= rel
            )
    named = [name for name in LOSSES if name != "kept"]
    extra = dict.fromkeys(name for one in counted.values() for name in one if name not in LOSSES)
    order = [name for name in (*named, *extra) if any(one[name] for one in counted.values())]
    return [
        Waterfall(system, sum(one.values()), {name: one[name] for name in (*order, "kept")})
        for system, one in counted.items()
    ]
