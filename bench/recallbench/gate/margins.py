"""Margins: is a measure's drop, over the whole set or a category, within what the policy allows?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallbench.evaluation.aggregate import clusters_of
from recallbench.evaluation.evaluate import Evaluation
from recallbench.gate.outcome import Change, Outcome, Verdict
from recallbench.gate.policy import Policy
from recallbench.gate.unjudged import Bounds, Deciding, Lists, label_bounds
from recallbench.statistics.intervals import FEW_CLUSTERS
from recallbench.statistics.paired import compare
from recallbench.statistics.sample_size import settle
from recallbench.statistics.verdict_interval import FEW_QUESTIONS, VerdictInterval, verdict_interval
from recallstack.errors import InputError

SMALL_CELL = 30
"""Under this many questions a category's interval is rough, and the table says so (choice: the t interval of skewed
differences is known to need about so many)."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A system and its baseline: places in the runs of an evaluation."""

    system: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Rule:
    """A margin on one measure of one system. group: a category, empty for the whole set."""

    pair: Pair
    measure: int
    group: str
    margin: float


def rules_of(evaluation: Evaluation, pairs: Sequence[Pair], policy: Policy) -> list[Rule]:
    """Every margin of the policy, system by system."""
    place = {str(measure): m for m, measure in enumerate(evaluation.measures)}
    out = []
    for pair in pairs:
        out += [Rule(pair, place[name], "", margin) for name, margin in policy.margins.items()]
        for group, category in policy.categories.items():
            out += [Rule(pair, place[name], group, margin) for name, margin in category.margins.items()]
    return out


def members(evaluation: Evaluation, group: str) -> NDArray[np.bool_]:
    """bool `[Q]`: the questions of a category, all without one. Raises InputError for a category without questions."""
    questions = evaluation.labelled.questions
    if not group:
        return np.ones(len(questions), np.bool_)
    found = np.array([group in question.categories for question in questions], np.bool_)
    if not found.any():
        known = sorted({name for question in questions for name in question.categories})
        raise InputError(
            f"[gate.categories.{group}]: no question of {evaluation.labelled.info.name} has this category; "
            f"it has {', '.join(known) or 'none'}"
        )
    return found


def differences(evaluation: Evaluation, pair: Pair, m: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(change float64 `[Q]` signed so that above 0 is better, bool `[Q]` of the questions that count in both)."""
    sign = 1.0 if evaluation.measures[m].higher_is_better else -1.0
    with np.errstate(invalid="ignore"):  # the worst value of a cost may be infinite on both sides
        change = np.nan_to_num(sign * (evaluation.values[pair.after, m] - evaluation.values[pair.before, m]))
    return change, evaluation.counts[pair.after, m] & evaluation.counts[pair.before, m]


def margin_outcomes(
    evaluation: Evaluation, rules: Sequence[Rule], policy: Policy, family: int
) -> Iterator[tuple[Outcome, Deciding | None]]:
    """One outcome a rule, with the unjudged memories that decide it (none where they decide nothing).

    family: in how many ways the gate can FAIL by chance; the intervals that FAIL is read from share the level among
    them (Bonferroni, whose verdict is that of Holm's first step). PASS needs every rule to pass, and no correction
    (Berger 1982, the intersection-union test).
    """
    known: dict[tuple[Pair, int], Bounds | None] = {}
    lists: dict[Pair, Lists] = {}
    for rule in rules:
        change, both = differences(evaluation, rule.pair, rule.measure)
        counted = both & members(evaluation, rule.group)
        measure = evaluation.measures[rule.measure]
        if not counted.any():
            where = f"categories.{rule.group}.margins" if rule.group else "margins"
            raise InputError(
                f'[gate.{where}] "{measure}": no question of {evaluation.labelled.info.name} counts in it '
                f"({measure.denominator}); drop the rule"
            )
        key = rule.pair, rule.measure
        if policy.unjudged == "bounds" and key not in known:
            if rule.pair not in lists:
                before, after = (evaluation.runs[side] for side in (rule.pair.before, rule.pair.after))
                lists[rule.pair] = Lists(evaluation.labelled, before, after)
            known[key] = label_bounds(lists[rule.pair], measure, change, both)
        yield _Judge(evaluation, rule, counted, policy, family).outcome(change, known.get(key))


class _Judge:
    """The verdict on one rule."""

    def __init__(
        self, evaluation: Evaluation, rule: Rule, counted: NDArray[np.bool_], policy: Policy, family: int
    ) -> None:
        self._evaluation, self._rule, self._policy = evaluation, rule, policy
        self._places = np.flatnonzero(counted)
        clusters = clusters_of(evaluation)
        self._clusters = [clusters[place] for place in self._places]
        self._joint_level = 1 - (1 - policy.level) / family

    def intervals(self, change: NDArray[np.float64]) -> tuple[VerdictInterval, VerdictInterval]:
        """(what PASS is read from, what FAIL is read from)."""
        values = change[self._places]
        found = verdict_interval(values, self._clusters, self._policy.level)
        if self._joint_level == self._policy.level:
            return found, found
        return found, verdict_interval(values, self._clusters, self._joint_level)

    def verdict(self, interval: VerdictInterval, joint: VerdictInterval) -> Verdict:
        """protocols, statistics and verdict."""
        margin = self._rule.margin
        if joint.high < -margin:
            return Verdict.FAIL
        if joint.high < 0 and self._policy.worse_within_margin == "fail":
            return Verdict.FAIL
        return Verdict.PASS if interval.low > -margin else Verdict.INCONCLUSIVE

    def outcome(self, change: NDArray[np.float64], bounds: Bounds | None) -> tuple[Outcome, Deciding | None]:
        rule, evaluation = self._rule, self._evaluation
        interval, joint = self.intervals(change)
        verdict = self.verdict(interval, joint)
        message, range_ = "", None
        hits: Deciding | None = None
        if bounds is not None and any(_moved(side, change, self._places) for side in (bounds.worst, bounds.best)):
            range_ = (float(bounds.worst[self._places].mean()), float(bounds.best[self._places].mean()))
            sides = (bounds.worst, bounds.best)
            if verdict is not Verdict.INCONCLUSIVE and any(
                self.verdict(*self.intervals(side)) is not verdict for side in sides
            ):
                hits = bounds.deciding(self._places)
                message = (
                    f"{verdict} as labelled, but {len(hits)} returned memories that moved were never judged, and their "
                    "labels change the verdict"
                )
                verdict = Verdict.INCONCLUSIVE
        values = change[self._places]
        means = [
            float(evaluation.values[s, rule.measure, self._places].mean()) for s in (rule.pair.before, rule.pair.after)
        ]
        open_ = verdict is Verdict.INCONCLUSIVE and not message
        found = Change(
            rule.margin,
            means[0],
            means[1],
            interval,
            joint,
            int((values > 0).sum()),
            int((values < 0).sum()),
            int((values == 0).sum()),
            range_,
            settle(interval, joint, rule.margin) if open_ else None,
            None if rule.group else compare(values, self._clusters, level=self._policy.level, seed=self._policy.seed),
        )
        name = str(evaluation.measures[rule.measure])
        notes = tuple(_notes(interval, bool(rule.group)))
        return Outcome(
            "margin", rule.pair.system, name, verdict, message, rule.group, found, limit=rule.margin, notes=notes
        ), hits


def _moved(bound: NDArray[np.float64], change: NDArray[np.float64], places: NDArray[np.intp]) -> bool:
    return not np.array_equal(bound[places], change[places])


def _notes(interval: VerdictInterval, category: bool) -> Iterator[str]:
    if interval.n < FEW_QUESTIONS:
        yield f"{interval.n} questions: under {FEW_QUESTIONS} nothing is decided unless nothing differs"
    elif interval.n < SMALL_CELL:
        yield f"{interval.n} questions: under {SMALL_CELL} an interval is rough" + (" (small category)" * category)
    if interval.clusters == 1:
        yield "all questions are of one cluster: the interval says nothing of others"
    elif 0 < interval.clusters < FEW_CLUSTERS:
        yield f"{interval.clusters} clusters: under {FEW_CLUSTERS} an interval is rough"
