"""From an evaluation of both sides and a policy to a verdict with its explanation."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recallbench.datasets.model import LabelledSet
from recallbench.evaluation.aggregate import clusters_of
from recallbench.evaluation.evaluate import Evaluation, evaluate
from recallbench.evaluation.trust import Check
from recallbench.gate.flips import Flips, flips
from recallbench.gate.margins import SMALL_CELL, Pair, differences, margin_outcomes, rules_of
from recallbench.gate.outcome import EXIT, Outcome, Verdict, combined
from recallbench.gate.policy import Policy
from recallbench.gate.replays import scenario_outcomes
from recallbench.gate.rules import latency_outcomes, limit_outcomes, trust_outcomes
from recallbench.gate.unjudged import Listed
from recallbench.measures import Measure, parse_measure
from recallbench.statistics.verdict_interval import VerdictInterval, verdict_interval
from recallbench.systems.base import SystemRun
from recallbench.systems.config import Configured
from recallstack.errors import InputError

BASELINE = "baseline"
"""Prefix of the baseline's side among the systems of the evaluation."""
BISECT_SKIP = 125
"""What `git bisect run` takes for "this revision cannot be tested"."""


@dataclass(frozen=True, slots=True)
class CategoryChange:
    """The primary measure's change in one category. small: under SMALL_CELL questions, so that it is rough."""

    system: str
    category: str
    interval: VerdictInterval
    small: bool


@dataclass(frozen=True, eq=False)
class GateResult:
    """A verdict and all that explains it.

    against: what the baseline is, in a few words. flips: the primary measure of every system, and each measure that
    did not pass. unjudged: memories whose labels decide, highest ranks first. notes: on the baseline. seconds: spent
    on statistics and labels.
    """

    verdict: Verdict
    outcomes: tuple[Outcome, ...]
    evaluation: Evaluation
    pairs: tuple[Pair, ...]
    against: str
    policy: Policy
    flips: tuple[Flips, ...]
    categories: tuple[CategoryChange, ...]
    unjudged: Listed
    notes: tuple[str, ...]
    seconds: float

    @property
    def warnings(self) -> tuple[Check, ...]:
        """Findings of the trust checks that do not make the gate INVALID."""
        return tuple(one for one in self.evaluation.checks if one.level == "warning")

    def exit_code(self, bisect: bool = False) -> int:
        """protocols, exit codes. bisect: what cannot be judged is 125, and so is an inconclusive result."""
        code = EXIT[self.verdict]
        if self.verdict is Verdict.INCONCLUSIVE and not (self.policy.strict or bisect):
            code = 0
        return BISECT_SKIP if bisect and code not in (0, 1) else code


def measures_of(policy: Policy, labelled: LabelledSet) -> tuple[Measure, ...]:
    """What is measured: every measure of a rule, the primary one first, and the share of judged hits.

    Raises InputError for a policy without a rule.
    """
    named = policy.measures()
    if not named and policy.latency is None and not policy.scenarios.run:
        raise InputError(
            'the policy has no rule; give at least one margin: [gate.margins] "nDCG@5" = 0.02 in recallbench.toml, or '
            "--margin nDCG@5=0.02"
        )
    names = dict.fromkeys((*named, *(() if named else (labelled.info.primary_measure,)), "Judged@5"))
    return tuple(parse_measure(name) for name in names)


def paired_runs(
    before: Sequence[SystemRun], after: Sequence[SystemRun], where: str
) -> tuple[list[SystemRun], list[Pair]]:
    """Both sides as the runs of one evaluation, and which belongs to which.

    One system on each side: they are compared whatever their names are. More: by name. where: names the baseline.
    Raises InputError for a system that the baseline does not hold.
    """
    held = {run.system: place for place, run in enumerate(before)}
    pairs, runs = [], list(after)
    for place, run in enumerate(after):
        if run.system in held:
            base = held[run.system]
        elif len(before) == len(after) == 1:
            base = 0
        else:
            raise InputError(f"{where}: holds no system {run.system!r}; it holds {', '.join(held)}")
        runs.append(dataclasses.replace(before[base], system=f"{BASELINE}:{run.system}"))
        pairs.append(Pair(run.system, len(after) + place, place))
    return runs, pairs


def judge(
    labelled: LabelledSet,
    before: Sequence[SystemRun],
    after: Sequence[SystemRun],
    policy: Policy,
    *,
    depth: int,
    against: str,
    notes: Sequence[str] = (),
    same_machine: bool = False,
    configured: Mapping[str, Configured] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> GateResult:
    """Measure both sides, apply every rule, explain.

    before: runs of the baseline; after: of the systems under test; one list a question of `labelled`, `depth` rows
    asked for. same_machine: whether the times of both sides can be compared. configured, overrides: for scenarios on a
    system on stdio. Raises InputError for a rule that cannot be applied to this set.
    """
    measures = measures_of(policy, labelled)
    runs, pairs = paired_runs(before, after, against)
    evaluation = evaluate(
        labelled, runs, measures, depth, split=policy.split or None, allow_zero=_allowed(policy.allow_zero)
    )
    import scipy.stats  # noqa: F401 (a second of start-up that would be taken for statistics)

    begun = time.perf_counter()
    evaluation = dataclasses.replace(evaluation, checks=_without_own_pairs(evaluation))
    rules = rules_of(evaluation, pairs, policy)
    family = max(1, len(rules) + (len(pairs) if policy.latency is not None else 0))
    margins = list(margin_outcomes(evaluation, rules, policy, family))
    outcomes = [
        *trust_outcomes(evaluation),
        *(outcome for outcome, _ in margins),
        *limit_outcomes(evaluation, pairs, policy),
        *latency_outcomes(evaluation, pairs, policy, family, same_machine),
    ]
    found, by_category = _flips(evaluation, pairs, outcomes), _categories(evaluation, pairs, policy.level)
    unjudged = Listed([hits for _, hits in margins if hits is not None])
    seconds = time.perf_counter() - begun
    outcomes += scenario_outcomes(policy, configured, overrides)
    return GateResult(
        combined(outcomes),
        tuple(outcomes),
        evaluation,
        tuple(pairs),
        against,
        policy,
        tuple(found),
        tuple(by_category),
        unjudged,
        tuple(notes),
        seconds,
    )


def _allowed(names: Sequence[str]) -> list[str]:
    return [*names, *(f"{BASELINE}:{name}" for name in names)]


def _without_own_pairs(evaluation: Evaluation) -> tuple[Check, ...]:
    """The findings, without those that only say that a system equals its own baseline: that is what a gate hopes for.

    What the baseline's side alone is warned of was known when it was saved.
    """
    return tuple(
        one
        for one in evaluation.checks
        if one.level == "error" or not (one.system.startswith(f"{BASELINE}:") or one.name == "equal-systems")
    )


def _flips(evaluation: Evaluation, pairs: Sequence[Pair], outcomes: Sequence[Outcome]) -> list[Flips]:
    names = [str(measure) for measure in evaluation.measures]
    out = []
    for pair in pairs:
        wanted = {names[0]} if evaluation.counts[[pair.before, pair.after], 0].any() else set()
        wanted |= {
            one.name
            for one in outcomes
            if one.kind in ("margin", "hard") and one.system == pair.system and one.verdict is not Verdict.PASS
        }
        out += [flips(evaluation, pair, m) for m, name in enumerate(names) if name in wanted]
    return out


def _categories(evaluation: Evaluation, pairs: Sequence[Pair], level: float) -> list[CategoryChange]:
    questions, clusters = evaluation.labelled.questions, clusters_of(evaluation)
    names = sorted({name for question in questions for name in question.categories})
    out = []
    for pair in pairs:
        change, counted = differences(evaluation, pair, 0)
        if not change[counted].any():
            continue
        for name in names:
            mine = np.array([name in question.categories for question in questions], np.bool_) & counted
            places = np.flatnonzero(mine)
            if len(places):
                found = verdict_interval(change[places], [clusters[place] for place in places], level)
                out.append(CategoryChange(pair.system, name, found, found.n < SMALL_CELL))
    return out
