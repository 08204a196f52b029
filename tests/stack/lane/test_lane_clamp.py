"""The clamp and the input estimate: the documented figures, and that nothing ever exceeds the window."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallstack.errors import InputError
from recallstack.systems.lane.clamp import WINDOW, clamp, output_cap
from recallstack.systems.lane.estimate import character_tokens, estimate_input
from recallstack.systems.lane.request import Message, Request, Text, Tool, message_ids
from recallstack.systems.lane.session import Baseline

REQUESTED = 384_000


@pytest.mark.parametrize(
    ("estimate", "sent"),
    [
        # 1.05 × 676,541 = 710,368.05; 1,048,576 − 710,368.05 = 338,207.95 (seed 001).
        (676_541, 338_207),
        # 1.05 × 632,929 = 664,575.45; the cap is floor(384,000.55): the last estimate that changes nothing.
        (632_929, 384_000),
        # 1.05 × 632,930 = 664,576.50; floor(383,999.50).
        (632_930, 383_999),
        # At least 65,000 low (seed 001): 1.05 × 611,541 = 642,118.05; the cap is 406,457.
        (611_541, 384_000),
        (127_497, 384_000),
        (0, 384_000),
    ],
)
def test_documented_figures(estimate, sent):
    assert clamp(REQUESTED, estimate) == sent


def test_caps_by_hand():
    assert WINDOW == 1_048_576
    assert output_cap(676_541) == 338_207
    assert output_cap(611_541) == 406_457
    # 1,048,576 / 1.05 = 998,643.8…: 1.05 × 998,642 = 1,048,574.1 leaves 1.9; × 998,643 = 1,048,575.15 leaves 0.85.
    assert output_cap(998_642) == 1
    assert output_cap(998_643) == 0
    # Below nothing the floor goes down: 1,048,576 − 1.05 × 998,645 = −1.25.
    assert output_cap(998_645) == -2


def test_a_request_with_no_room_is_refused_with_a_line():
    assert clamp(REQUESTED, 998_642) == 1
    with pytest.raises(InputError) as caught:
        clamp(REQUESTED, 998_643)
    assert str(caught.value) == (
        "no room for output: the input is about 998643 tokens, and with 5 % margin the window of 1048576 is full; "
        "compress the conversation or start a new one"
    )


@given(estimate=st.integers(0, 2**70), window=st.integers(1, 2**70))
def test_the_cap_is_the_exact_floor(estimate, window):
    assert output_cap(estimate, window) == floor(Fraction(window) - Fraction(105, 100) * estimate)


@given(data=st.data(), window=st.integers(1, 2**60), requested=st.integers(1, 2**61))
def test_estimate_with_margin_and_output_never_exceed_the_window(data, window, requested):
    # Estimates on both sides of the edge.
    edge = window * 100 // 105
    estimate = data.draw(st.integers(0, 2 * window) | st.integers(max(0, edge - 3), edge + 3))
    cap = floor(Fraction(window) - Fraction(105, 100) * estimate)
    if cap < 1:
        with pytest.raises(InputError, match="no room"):
            clamp(requested, estimate, window)
        return
    sent = clamp(requested, estimate, window)
    assert Fraction(105, 100) * estimate + sent <= window
    # And no less than that: what was asked for, or one more token would not fit.
    assert sent == requested or Fraction(105, 100) * estimate + sent + 1 > window


def said(*texts):
    return tuple(Message("user", (Text(text),)) for text in texts)


@pytest.mark.parametrize(("count", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (2_446_164, 611_541)])
def test_a_quarter_of_the_characters_rounded_up(count, tokens):
    assert character_tokens(count) == tokens


def test_settled_usage_plus_a_quarter_of_later_characters():
    before, later = said("one", "two"), said("1234567", "89")
    request = Request(system="s" * 400, messages=before + later, tools=(Tool("t" * 40),))
    ids = message_ids(request.messages)
    # 676,541 settled; 9 characters later: 2.25, so 3. System and tools are in the settled usage.
    assert estimate_input(request, ids, Baseline(676_541, ids[:2])) == 676_544
    assert estimate_input(request, ids, Baseline(676_541, ids)) == 676_541
    # Nothing settled: (400 + 40 + 3 + 3 + 9) / 4 = 113.75.
    assert estimate_input(request, ids, None) == 114


def test_usage_of_another_history_does_not_count():
    request = Request(messages=said("one", "two"))
    ids = message_ids(request.messages)
    for other in (message_ids(said("blob")), message_ids(said("one", "three")), message_ids(said("one", "two", "x"))):
        assert estimate_input(request, ids, Baseline(127_497, other)) == 2


@given(texts=st.lists(st.text(max_size=9), max_size=6), settled=st.integers(0, 6), tokens=st.integers(0, 2**40))
def test_the_estimate_never_falls_as_the_conversation_goes_on(texts, settled, tokens):
    messages = said(*texts)
    ids = message_ids(messages)
    baseline = Baseline(tokens, ids[:settled])
    whole = Request(messages=messages)
    last = tokens
    for end in range(min(settled, len(texts)), len(texts) + 1):
        part = msgspec.structs.replace(whole, messages=messages[:end])
        now = estimate_input(part, ids[:end], baseline)
        assert now >= last
        last = now
    count = sum(len(text) for text in texts[settled:])
    assert last == tokens + -(-count // 4)
