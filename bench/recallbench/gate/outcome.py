"""What a gate finds: one outcome a rule, and the verdict that they make together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from recallbench.statistics.paired import Comparison
from recallbench.statistics.sample_size import Settle
from recallbench.statistics.verdict_interval import VerdictInterval


class Verdict(StrEnum):
    """PASS: merge. FAIL: recall got worse. INCONCLUSIVE: the set cannot tell. INVALID: nothing was measured."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    INVALID = "INVALID"


EXIT = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.INVALID: 2, Verdict.INCONCLUSIVE: 3}
"""Exit codes; INCONCLUSIVE is 0 unless the policy is strict (protocols, statistics and verdict)."""

Kind = Literal["margin", "floor", "hard", "latency", "scenario", "trust"]


@dataclass(frozen=True, slots=True)
class Change:
    """A paired change of one measure, signed so that above 0 is better.

    before, after: means over the questions that count in both. interval: what PASS is read from, at the policy's level.
    joint: what FAIL is read from, wider so that all FAILs of the gate together keep the level. better, worse, same:
    questions. bounds: (worst, best) mean change over labels of hits that nobody judged, None where there is none or
    the policy takes them as not relevant. comparison: bootstrap, randomization test and effect size, for the whole set.
    """

    margin: float
    before: float
    after: float
    interval: VerdictInterval
    joint: VerdictInterval
    better: int
    worse: int
    same: int
    bounds: tuple[float, float] | None = None
    settle: Settle | None = None
    comparison: Comparison | None = None

    @property
    def significantly_worse(self) -> bool:
        """Whether the whole interval is below 0, margin or not."""
        return self.interval.high < 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One rule on one system. name: a measure, a scenario or a check; group: a category, empty for the whole set.

    message: one line on why, empty where the numbers say it. notes: what weakens the outcome, one line each.
    """

    kind: Kind
    system: str
    name: str
    verdict: Verdict
    message: str = ""
    group: str = ""
    change: Change | None = None
    value: float | None = None
    limit: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Name and category."""
        return f"{self.name} · {self.group}" if self.group else self.name


def combined(outcomes: Iterable[Outcome]) -> Verdict:
    """INVALID before FAIL before INCONCLUSIVE before PASS."""
    found = {one.verdict for one in outcomes}
    order = (Verdict.INVALID, Verdict.FAIL, Verdict.INCONCLUSIVE)
    return next((one for one in order if one in found), Verdict.PASS)
