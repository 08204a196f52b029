"""What a report concludes, against hand computations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_support import evaluated, run_of, section_of, small_set, traced

from recallbench.datasets.model import Question
from recallbench.evaluation.evaluate import Evaluation
from recallbench.evaluation.trust import Check
from recallbench.reports.costs import front
from recallbench.reports.look import look_at
from recallbench.reports.losses import waterfalls
from recallbench.reports.standing import needed, resolutions, standing
from recallbench.reports.verdict import verdict
from recallbench.statistics.intervals import Interval
from recallbench.text.numbers import fine, mark, number, probability, spread


def asked(count: int, **more: Any) -> tuple[Question, ...]:
    return tuple(Question(id=f"q{i}", text=f"{i}", relevant={"a": 1}, **more) for i in range(count))


def of(lists: dict[str, Sequence[str]], questions: Sequence[Question] | None = None) -> Evaluation:
    count = len(next(iter(lists.values())))
    return evaluated(small_set(questions or asked(count)), [run_of(name, one) for name, one in lists.items()])


FIRST, SECOND, NOTHING = "a", "ba", ""
"""Lists whose reciprocal rank is 1, 1/2 and 0."""


# The standing of systems


def test_order_difference_and_p() -> None:
    held = standing(of({"old": [SECOND] * 8, "new": [FIRST] * 6 + [SECOND] * 2}), "old")
    assert held.order == ("new", "old")
    assert (held.best, held.second, held.reference) == ("new", "old", "old")
    # Six differences of 1/2, two of 0. Sign flips of the six: 2 of 2^6 patterns are as extreme as all of one sign.
    assert held.to_base["new"].p == pytest.approx(2 / 64)
    assert held.to_base["new"].interval.mean == pytest.approx(0.5 * 6 / 8)
    assert held.to_base["new"].significant
    assert held.tied == ()
    assert held.tone("old") == "behind"


def test_holm_counts_the_whole_family() -> None:
    """p = 2/64 alone is significant; in a family of two it is twice that, and is not."""
    lists = {"old": [SECOND] * 8, "new": [FIRST] * 6 + [SECOND] * 2, "same": [SECOND] * 8}
    held = standing(of(lists), "old")
    assert held.to_base["new"].adjusted == pytest.approx(4 / 64)
    assert held.to_base["same"].adjusted == 1
    assert held.tied == ("old", "same")


def test_a_lower_is_better_measure_is_turned_round(tmp_path: Path) -> None:
    questions = [Question(id=f"q{i}", text="", relevant={"a": 1}, forbidden=("e",)) for i in range(3)]
    found = evaluated(
        small_set(questions), [run_of("clean", ["a"] * 3), run_of("leaky", ["ae", "ae", "a"])], ("Leak", "RR")
    )
    held = standing(found)
    assert held.order == ("clean", "leaky")
    assert held.to_best["leaky"].interval.mean == pytest.approx(-2 / 3)
    assert section_of(tmp_path, found).held.order == held.order


def test_systems_that_measure_nothing_stand_last() -> None:
    questions = (*asked(2), Question(id="e", text="", expects_empty=True))
    held = standing(of({"one": [FIRST, NOTHING, "b"], "two": [FIRST, FIRST, "b"]}, questions))
    assert held.means["one", "RR"].n == 2
    assert held.order == ("two", "one")


def test_resolution_and_questions_needed() -> None:
    # Differences 1/2, 1/2, 1/2, 0: mean 0.375, sd 0.25, error 0.125; t(.975, 3) = 3.182446, t(.8, 3) = 0.978472.
    held = standing(of({"old": [SECOND] * 4, "new": [FIRST] * 3 + [SECOND]}))
    found = resolutions(held)[0]
    assert (found.questions, found.differ, found.pairs) == (4, 1, 1)
    assert found.detectable == pytest.approx((0.125 * (3.182446 + 0.978472),) * 3, rel=1e-5)
    # R@2 differs nowhere: no pair has a say.
    assert resolutions(held)[1].detectable is None


def test_questions_that_would_tell_the_nearest_apart() -> None:
    """Of the systems that are not told apart the nearest come first; those that are equal on average are left out."""
    best = [FIRST] * 10
    lists = {"best": best, "far": [SECOND] * 2 + best[2:], "near": [SECOND, *best[1:]], "same": best}
    held = standing(of(lists))
    assert held.tied == ("same", "near", "far")
    found = needed(held)
    assert [one[0] for one in found] == ["near", "far"]
    assert [one[1] for one in found] == pytest.approx([0.05, 0.1])
    # near: sd of (0.5, nine 0) is 0.158114; ((t + t) 0.158114 / 0.05)^2 with 80 degrees is (1.990063 + 0.846143)^2 * 10
    # = 80.44, so 81 questions.
    assert found[0][2] == 81
    assert needed(held, most=1) == found[:1]


# The verdict


def outcome(lists: dict[str, Sequence[str]], baseline: str | None = None, **more: Sequence[Question]) -> str:
    return verdict(standing(of(lists, **more), baseline)).outcome


@pytest.mark.parametrize(
    ("lists", "baseline", "says"),
    [
        ({"old": [SECOND] * 8, "new": [FIRST] * 8}, "old", "better"),
        ({"old": [FIRST] * 8, "new": [SECOND] * 8}, "old", "kept"),
        ({"old": [SECOND] * 8, "new": [FIRST] + [SECOND] * 7}, "old", "unproven"),
        ({"old": [SECOND] * 8, "new": [FIRST] * 8}, None, "clear"),
        ({"old": [SECOND] * 8, "new": [FIRST] + [SECOND] * 7}, None, "tied"),
        ({"only": [FIRST] * 8}, None, "alone"),
        ({"old": [NOTHING] * 8, "new": [NOTHING] * 8}, "old", "invalid"),
    ],
)
def test_outcomes(lists: dict[str, Sequence[str]], baseline: str | None, says: str) -> None:
    assert outcome(lists, baseline) == says


def test_better_at_the_cost_of_leaks_is_said() -> None:
    questions = [Question(id=f"q{i}", text="", relevant={"a": 1}, forbidden=("e",)) for i in range(8)]
    lists = {"old": [SECOND] * 8, "new": ["ae"] * 7 + [FIRST]}
    found = verdict(standing(of(lists, questions), "old"))
    assert found.outcome == "traded"
    assert "Leak" in found.headline.en
    # Differences of 1 seven times and 0 once: mean 0.875, and no sign that says the opposite of the figures before it.
    assert found.sure[0].en.startswith(
        "Leak of new is worse than that of old: 0.875 against 0.000, a difference of 0.875"
    )
    assert found.sure[0].zh.startswith("new 的 Leak 比 old 差")


def test_the_first_by_its_mean_need_not_be_the_one_that_is_shown_to_be_better() -> None:
    """`steady` gains 1/6 on each of 10 questions (p = 2 / 2^10); `wild` has the better mean, maybe by chance."""
    lists = {"old": ["bca"] * 10, "wild": [FIRST] * 6 + [NOTHING] * 4, "steady": [SECOND] * 10}
    held = standing(of(lists), "old")
    found = verdict(held)
    assert (held.best, held.proven, held.pick) == ("wild", ("steady",), "steady")
    assert (found.outcome, found.headline.en) == ("better", "Ship steady: it is better than old")
    assert [one.value for one in found.figures[:2]] == ["0.500", "+0.167"]
    assert found.sure[0].en.startswith(
        "wild has the highest RR (0.600), but is not shown to be better than old (p = 0."
    )


def leaking() -> list[Question]:
    return [Question(id=f"q{i}", text="", relevant={"a": 1}, forbidden=("e",)) for i in range(8)]


def test_a_better_one_without_harm_goes_before_a_better_one_with_it() -> None:
    # Eight gains: 2 / 2^8, seven: 2 / 2^7; both are below 0.05 after Holm's method over two.
    lists = {"old": [SECOND] * 8, "leaky": ["ae"] * 8, "clean": [FIRST] * 7 + [SECOND]}
    held = standing(of(lists, leaking()), "old")
    found = verdict(held)
    assert (held.best, held.pick, found.outcome) == ("leaky", "clean", "better")
    assert found.sure[0].en == "leaky has the highest RR (1.000), but is worse than old in Leak."


def test_without_a_better_one_the_one_that_harms_less_is_named() -> None:
    """Equal in RR; none of eight answers leaks instead of all: 2 of 2^8 sign patterns are as extreme."""
    held = standing(of({"old": ["ae"] * 8, "clean": ["a"] * 8}, leaking()), "old")
    found = verdict(held)
    assert (held.best, held.pick, found.outcome) == ("old", "clean", "unproven")
    assert found.headline.en.startswith("Ship clean: it does less harm than old (Leak) at no lower RR")
    assert found.sure[0].en.startswith("clean does less harm than old (Leak 0.000 instead of 1.000)")
    # A lower mean is a trade, however small: nothing to ship unasked.
    held = standing(of({"old": ["ae"] * 8, "clean": ["a"] * 7 + ["ba"]}, leaking()), "old")
    assert (held.spared, verdict(held).outcome) == (None, "kept")


def test_less_harm_has_to_be_shown() -> None:
    """Five of eight: 2 / 2^5 = 0.0625, by its interval a gain, by its test none."""
    held = standing(of({"old": ["ae"] * 8, "clean": ["a"] * 5 + ["ae"] * 3}, leaking()), "old")
    assert held.to_reference["clean", "Leak"].low > 0
    assert (held.spared, verdict(held).outcome) == (None, "kept")


def test_a_trade_names_who_harms_less() -> None:
    """`old` leaks in 8 of 16, `leaky` in all and is the only better one, `clean` in none and is as good as `old`."""
    lists = {"old": ["bae"] * 8 + ["ba"] * 8, "leaky": ["ae"] * 16, "clean": ["ba"] * 16}
    questions = [Question(id=f"q{i}", text="", relevant={"a": 1}, forbidden=("e",)) for i in range(16)]
    found = verdict(standing(of(lists, questions), "old"))
    assert found.outcome == "traded"
    assert found.headline.en.endswith("Without that harm: clean")
    assert found.sure[0].en.startswith("Leak of leaky is worse than that of old: 1.000 against 0.500")
    assert found.sure[1].en.startswith("clean does less harm than old (Leak 0.000 instead of 0.500)")


def test_one_leak_more_is_no_finding() -> None:
    """One difference of eight: the interval holds 0, and the verdict stays."""
    questions = [Question(id=f"q{i}", text="", relevant={"a": 1}, forbidden=("e",)) for i in range(8)]
    lists = {"old": [SECOND] * 8, "new": ["ae"] + [FIRST] * 7}
    assert outcome(lists, "old", questions=questions) == "better"


def test_three_numbers() -> None:
    questions = [Question(id=f"q{i}", text="", relevant={"a": 1}, forbidden=("e",)) for i in range(8)]
    found = verdict(standing(of({"old": [SECOND + "e"] * 8, "new": [FIRST] * 8}, questions), "old"))
    assert [one.value for one in found.figures] == ["1.000", "+0.500", "0.000"]
    assert found.figures[1].detail.en.endswith("p = 0.008 (Holm over 1)")  # 2 of 2^8 sign patterns
    assert found.figures[2].detail.en.endswith("old: 1.000")


def test_without_a_baseline_the_second_is_shown() -> None:
    found = verdict(standing(of({"old": [SECOND] * 8, "new": [FIRST] * 8})))
    assert (found.figures[1].value, found.figures[1].label.en) == ("+0.500", "against old")


def test_the_safest_of_equals_is_named() -> None:
    questions = [Question(id=f"q{i}", text="", relevant={"a": 1}, forbidden=("e",)) for i in range(4)]
    found = verdict(standing(of({"leaky": ["ae"] * 4, "clean": ["a"] * 3 + [SECOND]}, questions)))
    assert any(
        one.en == "Of those not told apart, clean has the least Leak: 0.000 against 1.000." for one in found.sure
    )


def test_chosen_on_dev_and_shown_on_test() -> None:
    questions = (*asked(2, split="dev"), *[replace_id(one) for one in asked(2, split="test")])
    # On dev `a` wins 1 to 1/2 and has (0 + 1/2) / 2 on test; over all questions `b` wins with 3/4.
    found = verdict(
        standing(of({"a": [FIRST, FIRST, NOTHING, SECOND], "b": [SECOND, SECOND, FIRST, FIRST]}, questions))
    )
    held = next(one.en for one in found.sure if "dev alone" in one.en)
    assert held.startswith("Chosen on dev alone, a would win, and reaches RR 0.250")
    assert "2 test questions" in held
    # `b` is first over all: its own figure on the same test questions, (1 + 1) / 2, stands beside that of `a`.
    assert held.endswith("There b has 1.000.")


def replace_id(question: Question) -> Question:
    import msgspec

    return msgspec.structs.replace(question, id=f"t-{question.id}")


def test_without_splits_the_choice_is_called_too_good() -> None:
    found = verdict(standing(of({"a": [FIRST, NOTHING], "b": [SECOND, SECOND]})))
    assert any("a little too good" in one.en for one in found.sure)


def test_an_error_stands_first() -> None:
    evaluation = of({"a": [FIRST] * 3, "b": [SECOND] * 3})
    bad = replace(evaluation, checks=(Check("error", "failed-questions", "a", "no valid answer to 1"),))
    found = verdict(standing(bad, "b"))
    assert found.outcome == "invalid"
    assert found.sure[0].en == "a: no valid answer to 1"
    assert "有问题没有得到有效回答" in found.sure[0].zh


def test_nothing_of_an_invalid_run_is_claimed() -> None:
    """Neither figures nor "ahead of every other system": what is wrong, and the questions where it went wrong."""
    failed = np.array([False, True, False, True, False, False, False, False])
    runs = [run_of("a", [FIRST] * 8), run_of("b", [SECOND] * 8, failed=failed)]
    evaluation = evaluated(small_set(asked(8)), runs)
    found = verdict(standing(evaluation, "b"))
    assert found.outcome == "invalid"
    assert (found.figures, [one.en[:2] for one in found.sure]) == ((), ["b:"])
    assert [(one.place, one.why.en) for one in found.look] == [
        (1, "b gave no valid answer"),
        (3, "b gave no valid answer"),
    ]


# Questions to look at


def test_the_greatest_falls_come_first_then_what_others_find() -> None:
    lists = {
        "old": [FIRST, SECOND, FIRST, NOTHING, NOTHING, NOTHING],
        "new": [NOTHING, NOTHING, SECOND, FIRST, FIRST, FIRST],
        "third": [FIRST, FIRST, FIRST, FIRST, FIRST, NOTHING],
    }
    held = standing(of({name: lists[name] for name in ("old", "new")}), "old")
    assert held.best == "new"
    # Falls: q0 by 1, then q1 and q2 by 1/2 in the order of the set.
    assert [one.place for one in look_at(held)] == [0, 1, 2]
    assert look_at(held, 1)[0].why.en == "new falls from 1.000 to 0.000 against old"
    # `third` is best of all three (5/6) and against `old` falls nowhere; at q5 it finds nothing where `new` does.
    held = standing(of(lists), "old")
    assert held.best == "third"
    (one,) = look_at(held)
    assert (one.place, one.why.en) == (5, "third gets 0.000, 1 of 2 others do better (up to 1.000)")


def test_how_it_was_lost_is_said() -> None:
    left = traced([{"a": "filtered"}, *[{"a": "kept"}] * 3])
    runs = [run_of("old", [FIRST, *[SECOND] * 3]), run_of("new", [NOTHING, *[FIRST] * 3], **left)]
    held = standing(evaluated(small_set(asked(4)), runs), "old")
    assert held.best == "new"
    (one,) = look_at(held)
    assert one.why.en == "new falls from 1.000 to 0.000 against old; lost: filtered"
    assert one.why.zh.endswith("丢失方式：被过滤")


def test_a_fall_within_the_list_says_from_where_to_where() -> None:
    """Nothing was lost: the memory stands lower. `a` is at rank 3 instead of 1."""
    held = standing(of({"old": [FIRST, *[SECOND] * 3], "new": ["bca", *[FIRST] * 3]}), "old")
    (one,) = look_at(held)
    assert one.why.en == "new falls from 1.000 to 0.333 against old; a is at rank 3, was at 1"
    assert one.why.zh.endswith("a 排第 3，原为第 1")


def test_nothing_to_look_at() -> None:
    assert look_at(standing(of({"a": [FIRST] * 2, "b": [SECOND] * 2}))) == []


# The Pareto front and the waterfall


def test_front_by_hand() -> None:
    points = {"cheap": (1.0, 0.2), "dear": (9.0, 0.8), "mid": (5.0, 0.5), "bad": (6.0, 0.4), "twin": (5.0, 0.5)}
    assert front(points) == ("cheap", "mid", "twin", "dear")
    assert front({"a": (1.0, 0.5), "b": (1.0, 0.4), "c": (2.0, 0.5)}) == ("a",)
    assert front({"a": (1.0, float("nan"))}) == ()


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.tuples(st.integers(0, 4), st.integers(0, 4))))
def test_the_front_is_what_nothing_beats(points: dict[str, tuple[int, int]]) -> None:
    def beats(one: tuple[int, int], other: tuple[int, int]) -> bool:
        return one[0] <= other[0] and one[1] >= other[1] and one != other

    wanted = {name for name, mine in points.items() if not any(beats(other, mine) for other in points.values())}
    assert set(front({name: (float(c), float(q)) for name, (c, q) in points.items()})) == wanted


def test_the_waterfall_counts_memories_of_the_grade_that_counts() -> None:
    questions = (
        Question(id="q0", text="", relevant={"a": 2, "b": 1, "c": 2}),
        Question(id="q1", text="", relevant={"d": 2}),
    )
    labelled = small_set(questions)
    labelled = replace(labelled, info=replace(labelled.info, default_rel=2))
    losses = [{"a": "kept", "b": "filtered", "c": "out-fused"}, {"d": "lost in the post"}]
    found = waterfalls(evaluated(labelled, [run_of("one", ["a", ""], **traced(losses)), run_of("two", ["a", ""])]))
    (one,) = found  # `two` left no trace
    # b has grade 1 and does not count; an outcome that is none of ours stands after ours.
    assert one.counts == {"out-fused": 1, "lost in the post": 1, "kept": 1}
    assert one.total == 3
    assert one.steps == [("out-fused", 2, 3), ("lost in the post", 1, 2), ("kept", 0, 1)]


# How figures are written


def test_figures() -> None:
    assert [number(v) for v in (0.12345, 12.345, 1234.5, 0.0, float("nan"), None, float("inf"))] == [
        "0.123", "12.3", "1,234", "0.000", "–", "–", "∞",
    ]  # fmt: skip
    assert [number(v, signed=True) for v in (0.1, -0.1, -0.0001)] == ["+0.100", "−0.100", "+0.000"]
    assert [probability(p) for p in (0.0004, 0.0123, 1.0)] == ["<0.001", "0.012", "1.000"]
    assert (fine(0.0001), fine(0.02)) == ("<0.001", "0.020")
    assert spread(Interval(0.5, 0.25, 0.75, 4, 0)) == "0.500 [0.250, 0.750]"
    assert [mark(Interval(0, low, high, 3, 0)) for low, high in ((0.1, 1), (-1, -0.1), (-1, 1), (0, 0))] == [
        "▲", "▼", "", "",
    ]  # fmt: skip
