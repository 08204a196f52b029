"""Rules without a margin: floors, hard rules, latency, trust checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from recallbench.evaluation.evaluate import Evaluation
from recallbench.gate.margins import Pair, differences, members
from recallbench.gate.outcome import Outcome, Verdict
from recallbench.gate.policy import NO_NEW, Policy
from recallbench.measures import Measure
from recallstack.errors import InputError

SHOWN = 5
"""Questions that one message names."""
_RESAMPLES = 1_999


def limit_outcomes(evaluation: Evaluation, pairs: Sequence[Pair], policy: Policy) -> Iterator[Outcome]:
    """Floors and hard rules. They hold for this very set: no interval, one question may be one too many."""
    place = {str(measure): m for m, measure in enumerate(evaluation.measures)}
    for pair in pairs:
        for name, limit in policy.floors.items():
            yield _floor(evaluation, pair, place[name], "", limit)
        for group, category in policy.categories.items():
            for name, limit in category.floors.items():
                yield _floor(evaluation, pair, place[name], group, limit)
        for name, rule in policy.hard.items():
            if rule == NO_NEW:
                yield _no_new(evaluation, pair, place[name])
            else:
                yield _limit("hard", evaluation, pair, place[name], "", float(rule))


def _floor(evaluation: Evaluation, pair: Pair, m: int, group: str, limit: float) -> Outcome:
    measure = evaluation.measures[m]
    if not measure.higher_is_better:
        raise InputError(f'floors: "{measure}": lower is better; give it in [gate.hard], as the mean it may not exceed')
    return _limit("floor", evaluation, pair, m, group, limit)


def _limit(kind: str, evaluation: Evaluation, pair: Pair, m: int, group: str, limit: float) -> Outcome:
    measure = evaluation.measures[m]
    counted = evaluation.counts[pair.after, m] & members(evaluation, group)
    if not counted.any():
        raise InputError(
            f'"{measure}": no question counts in it ({measure.denominator}), so that its {kind} rule can never fail; '
            "drop the rule"
        )
    value = float(evaluation.values[pair.after, m][counted].mean())
    fine = value >= limit if measure.higher_is_better else value <= limit
    message = ""
    if not fine:
        side = "under" if measure.higher_is_better else "over"
        message = f"{value:.3f} is {side} {limit:g}{_named(evaluation, m, pair.after, counted, measure)}"
    verdict = Verdict.PASS if fine else Verdict.FAIL
    return Outcome(
        "floor" if kind == "floor" else "hard",
        pair.system,
        str(measure),
        verdict,
        message,
        group,
        value=value,
        limit=limit,
    )


def _named(evaluation: Evaluation, m: int, system: int, counted: NDArray[np.bool_], measure: Measure) -> str:
    """The questions that break a rule that allows none, such as a leak."""
    bad = counted & (evaluation.values[system, m] > 0)
    if measure.higher_is_better or not bad.any():
        return ""
    return f": {_listed(evaluation, bad)}"


def _listed(evaluation: Evaluation, which: NDArray[np.bool_]) -> str:
    names = [evaluation.labelled.questions[place].id for place in np.flatnonzero(which).tolist()]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _no_new(evaluation: Evaluation, pair: Pair, m: int) -> Outcome:
    measure = evaluation.measures[m]
    change, both = differences(evaluation, pair, m)
    worse = both & (change < 0)
    value = float(worse.sum())
    message = f"worse than in the baseline on {int(value)}: {_listed(evaluation, worse)}" if value else ""
    verdict = Verdict.FAIL if value else Verdict.PASS
    return Outcome("hard", pair.system, str(measure), verdict, message, value=value)


def latency_outcomes(
    evaluation: Evaluation, pairs: Sequence[Pair], policy: Policy, family: int, same_machine: bool
) -> Iterator[Outcome]:
    """The percentile against that of the baseline, with a bootstrap interval of their ratio over questions.

    FAIL if the whole interval is above the ratio, PASS if it is below. family: as of margins.
    """
    if policy.latency is None:
        return
    rule = policy.latency
    for pair in pairs:
        before, after = (_times(evaluation, side) for side in (pair.before, pair.after))
        name = f"latency p{rule.percentile:g}"
        if before is None or after is None:
            why = "not measured: a system in process, or a baseline without times; ask both over stdio, http or mcp"
            yield Outcome("latency", pair.system, name, Verdict.INCONCLUSIVE, why, limit=rule.ratio)
            continue
        if not same_machine:
            why = "the baseline was timed on another machine; use --baseline-ref, which times both here"
            yield Outcome("latency", pair.system, name, Verdict.INCONCLUSIVE, why, limit=rule.ratio)
            continue
        timed = ~(np.isnan(before) | np.isnan(after))
        before, after = before[timed], after[timed]
        if len(before) < 2:
            why = "fewer than two questions were timed on both sides"
            yield Outcome("latency", pair.system, name, Verdict.INCONCLUSIVE, why, limit=rule.ratio)
            continue
        at = [float(np.percentile(one, rule.percentile)) for one in (before, after)]
        ratio = at[1] / max(at[0], 1e-9)
        ratios = _drawn_ratios(before, after, rule.percentile, policy.seed)
        low, high = np.quantile(ratios, [0.5 - policy.level / 2, 0.5 + policy.level / 2])
        joint_low = np.quantile(ratios, (1 - policy.level) / family / 2)
        verdict = Verdict.INCONCLUSIVE
        if joint_low > rule.ratio:
            verdict = Verdict.FAIL
        elif high < rule.ratio:
            verdict = Verdict.PASS
        message = f"{at[0]:.1f} ms, now {at[1]:.1f} ms: × {ratio:.2f} [{low:.2f}, {high:.2f}]"
        if verdict is Verdict.INCONCLUSIVE:
            message += "; ask each question more often (repeats) or on a quieter machine"
        yield Outcome("latency", pair.system, name, verdict, message, value=ratio, limit=rule.ratio)


def _times(evaluation: Evaluation, side: int) -> NDArray[np.float64] | None:
    seen = evaluation.runs[side].observed
    if seen is None or not seen.latency_ms or all(math.isnan(one) for one in seen.latency_ms):
        return None
    return np.array(seen.latency_ms, np.float64)


def _drawn_ratios(
    before: NDArray[np.float64], after: NDArray[np.float64], percentile: float, seed: int
) -> NDArray[np.float64]:
    """Ratios of the percentiles in samples of questions, both systems' times of a question drawn together."""
    drawn = np.random.default_rng(seed).integers(0, len(before), (_RESAMPLES, len(before)))
    slow, fast = (np.percentile(one[drawn], percentile, axis=1) for one in (after, before))
    return np.asarray(slow / np.maximum(fast, 1e-9), np.float64)


def trust_outcomes(evaluation: Evaluation) -> Iterator[Outcome]:
    """The trust checks that failed: each makes the gate INVALID."""
    for check in evaluation.checks:
        if check.level == "error":
            yield Outcome("trust", check.system, check.name, Verdict.INVALID, check.message)
