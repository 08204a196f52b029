"""Every rule of a gate on sets of forty questions whose verdicts can be worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from gate_sets import COUNT, gated, made_set, policy, system
from scipy import stats

from recallbench.gate.judge import BISECT_SKIP, judge
from recallbench.gate.lines import flip_line, flip_notes
from recallbench.gate.outcome import Outcome, Verdict
from recallbench.gate.values import gate_values
from recallbench.scenarios.base import Running, Vocabulary
from recallbench.scenarios.model import Switch
from recallbench.scenarios.reference import Reference
from recallbench.statistics.verdict_interval import verdict_interval
from recallstack.errors import InputError

SET = made_set()
GOOD = system(SET)


def lost(*places: int, **more: Any) -> Any:
    return system(SET, dict.fromkeys(places, 0), **more)


def only(result: Any, name: str) -> Outcome:
    return next(one for one in result.outcomes if one.title == name)


# Margins. R@5 is 1 for an answer in the five rows, else 0.


def test_the_same_answers_pass() -> None:
    result = gated(SET, GOOD, GOOD, policy(margins={"R@5": 0.01}))
    assert result.verdict is Verdict.PASS
    assert result.exit_code() == 0
    change = only(result, "R@5").change
    assert change is not None
    assert (change.before, change.after, change.interval.low, change.same) == (1, 1, 0, COUNT)


def test_a_drop_beyond_the_margin_fails() -> None:
    """20 of 40 lost: the change is -0.5 with t interval +- t(39) * sqrt(0.25 * 40/39 / 40) = 0.162; -0.338 < -0.1."""
    result = gated(SET, GOOD, lost(*range(20)), policy(margins={"R@5": 0.1}))
    assert result.verdict is Verdict.FAIL
    assert result.exit_code() == 1
    change = only(result, "R@5").change
    assert change is not None
    half = stats.t.ppf(0.975, 39) * math.sqrt(0.25 * 40 / 39 / 40)
    assert change.interval.mean == -0.5
    assert change.interval.high == pytest.approx(-0.5 + half, abs=0.01)
    assert (change.better, change.worse, change.same) == (0, 20, 20)


def test_a_drop_that_could_be_either_is_inconclusive() -> None:
    """4 of 40 lost: mean -0.1, exactly the margin."""
    result = gated(SET, GOOD, lost(0, 1, 2, 3), policy(margins={"R@5": 0.1}))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert (result.exit_code(), result.exit_code(bisect=True)) == (0, BISECT_SKIP)
    change = only(result, "R@5").change
    assert change is not None
    assert change.settle is not None
    assert min(change.settle.same, change.settle.twice) > COUNT


def test_strict_makes_an_inconclusive_result_3() -> None:
    result = gated(SET, GOOD, lost(0, 1, 2, 3), policy(margins={"R@5": 0.1}, strict=True))
    assert result.exit_code() == 3


def test_a_wide_margin_passes_a_significant_drop_and_says_so() -> None:
    result = gated(SET, GOOD, lost(*range(20)), policy(margins={"R@5": 0.9}))
    assert result.verdict is Verdict.PASS
    change = only(result, "R@5").change
    assert change is not None
    assert change.significantly_worse
    strict = gated(SET, GOOD, lost(*range(20)), policy(margins={"R@5": 0.9}, worse_within_margin="fail"))
    assert strict.verdict is Verdict.FAIL


def test_lower_is_better_is_turned_round() -> None:
    labelled = made_set(forbidden=range(COUNT))
    before = system(labelled)
    worse = system(labelled, leaks=range(20))
    assert gated(labelled, before, worse, policy(margins={"Leak": 0.1})).verdict is Verdict.FAIL
    assert gated(labelled, worse, before, policy(margins={"Leak": 0.1})).verdict is Verdict.PASS


def test_failing_of_any_shares_the_level_among_the_rules() -> None:
    """9 of 40 lost: mean -0.225; the high end of a t interval is -0.225 + t * 0.0669.

    At 95 % t(39) = 2.023: -0.090, below -0.08: FAIL alone. Among five rules the level is 99 %, t = 2.708: -0.044.
    """
    after = lost(*range(9))
    alone = gated(SET, GOOD, after, policy(margins={"R@5": 0.08}))
    assert alone.verdict is Verdict.FAIL
    # Four more rules that cannot fail: the same questions by category.
    names = {f"part-{n}": range(30, 40) for n in range(4)}
    labelled = made_set(categories=names)
    rules = policy(margins={"R@5": 0.08}, categories={name: {"margins": {"R@5": 0.5}} for name in names})
    shared = gated(labelled, GOOD, after, rules)
    found = only(shared, "R@5")
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.change is not None
    error = math.sqrt(9 / 40 * 31 / 40 / 39)
    assert found.change.interval.high < -0.08 < found.change.joint.high
    assert found.change.joint.high >= -0.225 + stats.t.ppf(0.995, 39) * error - 1e-9
    assert shared.verdict is Verdict.INCONCLUSIVE


def test_passing_needs_no_correction() -> None:
    """A margin between the low ends at 95 % and at 99 %: PASS alone, and PASS among five rules."""
    names = {f"part-{n}": range(30, 40) for n in range(4)}
    labelled = made_set(categories=names)
    after = lost(0, 1, 2, 3)
    change = np.array([-1.0] * 4 + [0.0] * 36)
    margin = -(verdict_interval(change, level=0.95).low + verdict_interval(change, level=0.99).low) / 2
    rules = policy(margins={"R@5": margin}, categories={name: {"margins": {"R@5": 0.5}} for name in names})
    found = only(gated(labelled, GOOD, after, rules), "R@5")
    assert found.change is not None
    assert found.change.joint.low < -margin < found.change.interval.low
    assert found.verdict is Verdict.PASS


def test_a_category_has_its_own_margin() -> None:
    labelled = made_set(categories={"temporal": range(15), "other": range(15, 40)})
    after = system(labelled, dict.fromkeys(range(12), 0))
    rules = policy(margins={"R@5": 0.9}, categories={"temporal": {"margins": {"R@5": 0.1}}})
    result = gated(labelled, system(labelled), after, rules)
    assert only(result, "R@5").verdict is Verdict.PASS
    found = only(result, "R@5 · temporal")
    assert found.verdict is Verdict.FAIL
    assert found.change is not None
    assert found.change.interval.n == 15
    assert "rough" in found.notes[0]
    assert result.verdict is Verdict.FAIL
    small = {one.category: one.small for one in result.categories}
    assert small == {"temporal": True, "other": True}


def test_under_ten_questions_nothing_is_decided() -> None:
    labelled = made_set(categories={"tiny": range(5)})
    rules = policy(margins={"R@5": 0.9}, categories={"tiny": {"margins": {"R@5": 0.1}}})
    after = system(labelled, dict.fromkeys(range(5), 0))
    found = only(gated(labelled, system(labelled), after, rules), "R@5 · tiny")
    assert found.verdict is Verdict.INCONCLUSIVE
    same = only(gated(labelled, system(labelled), system(labelled), rules), "R@5 · tiny")
    assert same.verdict is Verdict.PASS


def test_a_category_without_questions_is_a_mistake_of_the_policy() -> None:
    rules = policy(margins={"R@5": 0.1}, categories={"nobody": {"margins": {"R@5": 0.1}}})
    with pytest.raises(InputError, match=r"\[gate\.categories\.nobody\]: no question of made has this category"):
        gated(SET, GOOD, GOOD, rules)
    with pytest.raises(InputError, match=r'\[gate\.margins\] "Leak": no question of made counts in it'):
        gated(SET, GOOD, GOOD, policy(margins={"Leak": 0.1}))


# Hits that nobody judged.


def test_unjudged_hits_that_could_change_a_pass_make_it_inconclusive() -> None:
    """The new lists hold other memories below the answer; nobody judged them.

    P@5 is 0.2 as labelled on both sides. If the old lists' four others are all relevant it fell by 0.8.
    """
    after = system(SET, fill="x-1")
    as_labelled = gated(SET, GOOD, after, policy(margins={"P@5": 0.05}))
    assert as_labelled.verdict is Verdict.PASS
    bounded = gated(SET, GOOD, after, policy(margins={"P@5": 0.05}, unjudged="bounds"))
    found = only(bounded, "P@5")
    assert bounded.verdict is Verdict.INCONCLUSIVE
    assert found.change is not None
    # Old lists: x-1 … x-4; new ones x-11 … x-14: all eight moved, in each of forty questions.
    assert found.change.bounds == pytest.approx((-0.8, 0.8))
    assert len(bounded.unjudged) == 8 * COUNT
    # The highest ranks first: rank 2 of every question, new or old.
    first = bounded.unjudged[0]
    assert (first.question, first.memory, first.before, first.after) == ("q-0", "x-11", 0, 2)
    assert {max(hit.before, hit.after) for hit in bounded.unjudged[: 2 * COUNT]} == {2}
    assert found.change.settle is None
    # R@5 cannot go up with more relevant memories that are all returned: 1 / (1 + 4) at worst.
    recall = only(gated(SET, GOOD, after, policy(margins={"R@5": 0.05}, unjudged="bounds")), "R@5")
    assert recall.change is not None
    assert recall.change.bounds == pytest.approx((-0.8, 0.8))


def test_judged_hits_are_left_alone() -> None:
    judged = [f"x-{n}" for n in range(30)]
    labelled = made_set(judged=judged)
    rules = policy(margins={"P@5": 0.05}, unjudged="bounds")
    result = gated(labelled, system(labelled), system(labelled, fill="x-1"), rules)
    assert result.verdict is Verdict.PASS
    assert len(result.unjudged) == 0


def test_unjudged_hits_that_stand_where_they_stood_decide_nothing() -> None:
    result = gated(SET, GOOD, GOOD, policy(margins={"P@5": 0.05}, unjudged="bounds"))
    assert result.verdict is Verdict.PASS


def test_a_fail_that_labels_could_lift_is_inconclusive_and_one_that_they_cannot_stays() -> None:
    after = lost(*range(20), fill="x-1")
    lifted = gated(SET, GOOD, after, policy(margins={"P@5": 0.01}, unjudged="bounds"))
    assert lifted.verdict is Verdict.INCONCLUSIVE
    assert "FAIL as labelled" in only(lifted, "P@5").message
    # Success@1 sees the first row alone: where an answer is lost, one unjudged row took its place. With every such
    # row judged not relevant nothing could lift it; with none judged, all could be relevant.
    judged = made_set(judged=[f"x-{n}" for n in range(30)])
    stays = gated(judged, GOOD, after, policy(margins={"P@5": 0.01}, unjudged="bounds"))
    assert stays.verdict is Verdict.FAIL


# Floors and hard rules.


@pytest.mark.parametrize(("floor", "verdict"), [(0.9, Verdict.PASS), (0.95, Verdict.FAIL)])
def test_a_floor_is_the_mean_that_must_be_reached(floor: float, verdict: Verdict) -> None:
    """4 of 40 lost on both sides: R@5 is 0.9."""
    both = lost(0, 1, 2, 3)
    result = gated(SET, both, both, policy(floors={"R@5": floor}))
    assert result.verdict is verdict
    assert only(result, "R@5").value == pytest.approx(0.9)


def test_a_category_has_its_own_floor() -> None:
    labelled = made_set(categories={"temporal": range(4)})
    both = system(labelled, {0: 0})
    rules = policy(margins={"R@5": 0.1}, categories={"temporal": {"floors": {"R@5": 0.8}}})
    found = gated(labelled, both, both, rules)
    assert found.verdict is Verdict.FAIL
    assert only(found, "R@5 · temporal").message == "0.750 is under 0.8"


def test_a_floor_of_a_lower_is_better_measure_is_refused() -> None:
    labelled = made_set(forbidden=[0])
    with pytest.raises(InputError, match="lower is better"):
        gated(labelled, system(labelled), system(labelled), policy(floors={"Leak": 0.1}))


def test_one_leak_is_one_too_many() -> None:
    labelled = made_set(forbidden=[3, 7])
    before, after = system(labelled), system(labelled, leaks=[7])
    rules = policy(margins={"R@5": 0.9}, hard={"Leak": 0})
    result = gated(labelled, before, after, rules)
    assert result.verdict is Verdict.FAIL
    assert only(result, "Leak").message == "0.500 is over 0: q-7"
    assert gated(labelled, after, before, rules).verdict is Verdict.PASS


def test_no_new_leak_looks_at_each_question() -> None:
    """The mean stays 0.5: one question leaks anew and another no longer."""
    labelled = made_set(forbidden=[3, 7])
    before, after = system(labelled, leaks=[3]), system(labelled, leaks=[7])
    rules = policy(margins={"R@5": 0.9}, hard={"Leak": "no-new"})
    result = gated(labelled, before, after, rules)
    assert result.verdict is Verdict.FAIL
    assert only(result, "Leak").message == "worse than in the baseline on 1: q-7"
    assert gated(labelled, before, before, rules).verdict is Verdict.PASS


def test_a_hard_rule_on_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="can never fail"):
        gated(SET, GOOD, GOOD, policy(margins={"R@5": 0.9}, hard={"Leak": 0}))


# INVALID.


def test_a_failed_question_is_invalid_before_anything_else() -> None:
    result = gated(SET, GOOD, lost(*range(20), failed=[39]), policy(margins={"R@5": 0.1}))
    assert result.verdict is Verdict.INVALID
    assert (result.exit_code(), result.exit_code(bisect=True)) == (2, BISECT_SKIP)
    assert only(result, "R@5").verdict is Verdict.FAIL
    assert only(result, "failed-questions").verdict is Verdict.INVALID


def test_a_policy_without_a_rule_is_refused() -> None:
    with pytest.raises(InputError, match="the policy has no rule"):
        gated(SET, GOOD, GOOD, policy())


# Latency.


def timed(ms: Sequence[float]) -> Any:
    return system(SET, ms=ms)


@pytest.mark.parametrize(
    ("now", "verdict"), [(10.0, Verdict.PASS), (20.0, Verdict.FAIL), (12.5, Verdict.INCONCLUSIVE)], ids=str
)
def test_latency_is_a_ratio_of_percentiles(now: float, verdict: Verdict) -> None:
    """All questions take the same time: the ratio is exactly now / 10, without spread; the limit is 1.25."""
    result = gated(SET, timed([10.0] * COUNT), timed([now] * COUNT), policy(latency={"ratio": 1.25}), same_machine=True)
    found = only(result, "latency p95")
    assert found.verdict is verdict
    assert found.value == pytest.approx(now / 10)


def test_a_few_slow_questions_are_not_enough_to_fail() -> None:
    """The 95th percentile of forty hangs on three questions; its interval says so."""
    ms = [10.0] * 37 + [30.0] * 3
    result = gated(SET, timed([10.0] * COUNT), timed(ms), policy(latency={"ratio": 1.25}), same_machine=True)
    assert result.verdict is Verdict.INCONCLUSIVE
    half = policy(latency={"ratio": 1.25, "percentile": 50})
    assert gated(SET, timed([10.0] * COUNT), timed(ms), half, same_machine=True).verdict is Verdict.PASS


def test_times_that_cannot_be_compared_are_not() -> None:
    rules = policy(latency={"ratio": 1.25})
    other = gated(SET, timed([10.0] * COUNT), timed([99.0] * COUNT), rules)
    assert other.verdict is Verdict.INCONCLUSIVE
    assert "another machine" in only(other, "latency p95").message
    unmeasured = gated(SET, GOOD, timed([10.0] * COUNT), rules, same_machine=True)
    assert "not measured" in only(unmeasured, "latency p95").message


# Scenarios.


class Broken(Reference):
    """The reference stack with the switch of every scenario in: what a plugin with that bug looks like."""

    name = "broken"

    def start(self, system: str, given: Mapping[str, Any], switches: Mapping[str, Switch]) -> Running:
        return super().start(system, given, {"like_override": True})


class Silent(Reference):
    """Declares nothing."""

    name = "silent"

    def vocabulary(self, system: str) -> Vocabulary | None:
        return None


BROKEN, SILENT = Broken(), Silent()
BUG = "mneme-like-override-rrf"


@pytest.mark.parametrize(
    ("implementation", "verdict", "said"),
    [
        ("reference", Verdict.PASS, ""),
        ("python:test_gate_rules:BROKEN", Verdict.FAIL, "expected"),
        ("python:test_gate_rules:SILENT", Verdict.INCONCLUSIVE, "not applicable"),
    ],
)
def test_scenarios_are_rules(implementation: str, verdict: Verdict, said: str) -> None:
    rules = policy(scenarios={"run": [BUG], "implementation": implementation})
    result = gated(SET, GOOD, GOOD, rules)
    assert result.verdict is verdict
    assert said in only(result, BUG).message


def test_of_a_whole_system_only_what_applies_is_asked_for() -> None:
    rules = policy(scenarios={"run": ["mneme"]})
    result = gated(SET, GOOD, GOOD, rules)
    assert result.verdict is Verdict.PASS
    assert len(result.outcomes) > 10
    silent = policy(scenarios={"run": ["mneme"], "implementation": "python:test_gate_rules:SILENT"})
    found = gated(SET, GOOD, GOOD, silent)
    assert [(one.name, one.verdict) for one in found.outcomes] == [("mneme", Verdict.INCONCLUSIVE)]


def test_an_unknown_scenario_is_named() -> None:
    with pytest.raises(InputError, match=f"did you mean '{BUG}'"):
        gated(SET, GOOD, GOOD, policy(scenarios={"run": [BUG + "x"]}))


# Several systems.


def test_systems_are_paired_by_name() -> None:
    one, two = system(SET, name="one"), system(SET, dict.fromkeys(range(20), 0), name="two")
    rules = policy(margins={"R@5": 0.1})
    swapped = judge(SET, [two, one], [one, two], rules, depth=5, against="before")
    assert swapped.verdict is Verdict.PASS
    worse = system(SET, dict.fromkeys(range(20), 0), name="one")
    result = judge(SET, [one, two], [worse, two], rules, depth=5, against="before")
    assert {outcome.system: outcome.verdict for outcome in result.outcomes} == {
        "one": Verdict.FAIL,
        "two": Verdict.PASS,
    }
    with pytest.raises(InputError, match="holds no system 'three'; it holds one, two"):
        judge(SET, [one, two], [system(SET, name="three")], rules, depth=5, against="before")


def test_a_single_system_may_have_got_another_name() -> None:
    after = system(SET, name="plugin 0.13")
    assert gated(SET, GOOD, after, policy(margins={"R@5": 0.1})).verdict is Verdict.PASS


# What changed, and where it was lost.


def test_flips_say_what_was_lost_and_where() -> None:
    after = system(SET, {0: 0, 1: 3, 2: 0}, losses={0: "out-fused", 2: "filtered"})
    result = gated(SET, GOOD, after, policy(margins={"RR@2": 0.9}))
    found = result.flips[0]
    assert (found.measure, found.same, found.better) == ("RR@2", COUNT - 3, ())
    assert [(one.question, one.before, one.after) for one in found.worse] == [
        ("q-0", 1, 0),
        ("q-1", 1, 0),
        ("q-2", 1, 0),
    ]
    moved = [(one.moved[0].memory, one.moved[0].before, one.moved[0].after, one.moved[0].stage) for one in found.worse]
    assert moved == [
        ("m-0", 1, 0, "out-fused"),
        ("m-1", 1, 3, "ranked down past 2"),
        ("m-2", 1, 0, "filtered"),
    ]
    assert dict(found.lost_at) == {"out-fused": 1, "ranked down past 2": 1, "filtered": 1}


def test_the_greatest_loss_comes_first_and_better_ones_are_told_apart() -> None:
    before, after = system(SET, {5: 0}), system(SET, {0: 2, 1: 0})
    found = gated(SET, before, after, policy(margins={"RR": 0.9})).flips[0]
    assert [one.question for one in found.worse] == ["q-1", "q-0"]
    assert [one.question for one in found.better] == ["q-5"]
    assert found.worse[1].moved[0].stage == "ranked down"
    assert found.worse[0].moved[0].stage.startswith("not returned")


def test_statistics_beside_the_verdict_are_scipys() -> None:
    after = lost(*range(6))
    change = only(gated(SET, GOOD, after, policy(margins={"R@5": 0.5})), "R@5").change
    assert change is not None
    assert change.comparison is not None
    data = np.array([-1.0] * 6 + [0.0] * 34)
    t = stats.ttest_1samp(data, 0.0).confidence_interval(0.95)
    assert (change.comparison.interval.low, change.comparison.interval.high) == pytest.approx((t.low, t.high))
    # Six differences of one sign: 2 of 2^6 sign patterns are as extreme.
    assert change.comparison.p == pytest.approx(2 / 64)
    assert change.comparison.effect == pytest.approx(data.mean() / data.std(ddof=1))


def test_where_the_worse_questions_are() -> None:
    """Of 40 questions 6 get worse: 0-3 are zh, 4 and 5 en. `hard` has four of them in 4, `odd` one (too few to tell),
    `usual` two in 20: no more than the whole set's 6 in 40."""
    labelled = made_set(
        categories={"hard": range(2, 6), "odd": [0], "usual": [1, 2, *range(20, 38)], "well": range(38, 40)},
        chinese=[*range(4), *range(10, 16)],
    )
    after = system(labelled, dict.fromkeys([0, 1, 2, 3, 4, 5], 0))
    found = gated(labelled, system(labelled), after, policy(margins={"R@5": 0.5})).flips[0]
    assert found.where == (("en", 2, 30), ("zh", 4, 10), ("hard", 4, 4))
    assert flip_line(found, False) == "R@5: 6 questions worse, 0 better, 34 the same."
    assert next(flip_notes(found)) == "Worse in: en 2 of 30, zh 4 of 10, hard 4 of 4."


def test_one_language_and_no_drop_say_nothing_of_where() -> None:
    chinese = made_set(chinese=range(COUNT))
    after = system(chinese, dict.fromkeys([0, 1], 0))
    one = gated(chinese, system(chinese), after, policy(margins={"R@5": 0.5})).flips[0]
    assert one.where == ()
    assert not [line for line in flip_notes(one) if "Worse in" in line]
    assert gated(SET, lost(0, 1), GOOD, policy(margins={"R@5": 0.5})).flips[0].where == ()


def test_where_names_the_three_categories_that_are_hit_the_most() -> None:
    """Worse: 0-7. Shares: a 2/2, b 2/3, c 2/4, d 2/5; the whole set 8/40. Equal shares would stand by name."""
    categories = {"d": [6, 7, 10, 11, 12], "c": [4, 5, 13, 14], "b": [2, 3, 15], "a": [0, 1]}
    labelled = made_set(categories=categories)
    after = system(labelled, dict.fromkeys(range(8), 0))
    result = gated(labelled, system(labelled), after, policy(margins={"R@5": 0.5}))
    assert result.flips[0].where == (("a", 2, 2), ("b", 2, 3), ("c", 2, 4))
    assert gate_values(result)["flips"][0]["where"][1] == {"group": "b", "worse": 2, "questions": 3}
