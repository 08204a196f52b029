"""An injected text is billed in every round from its own to the last: `tokens × rounds` (seed 004)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallstack.errors import InputError
from recallstack.systems.preretrieval.billing import billed_tokens
from recallstack.systems.preretrieval.switches import Switches


@pytest.mark.parametrize(
    ("tokens", "first", "last", "billed"),
    [
        (1000, 1, 1, 1000),  # one round
        (1000, 1, 10, 10_000),  # rounds 1 to 10
        (1000, 8, 10, 3000),  # rounds 8, 9, 10: late is cheap
        (0, 1, 10, 0),
    ],
)
def test_by_hand(tokens: int, first: int, last: int, billed: int) -> None:
    assert billed_tokens(tokens, first, last) == billed


def test_a_session_of_per_turn_injections() -> None:
    # 300 tokens in rounds 1-6, 200 in 3-6, 100 in 6: 1,800 + 800 + 100.
    found = billed_tokens([300, 200, 100], [1, 3, 6], 6)
    assert found.dtype == np.int64
    assert found.tolist() == [1800, 800, 100]
    assert billed_tokens([300, 200, 100], [1, 3, 6], 6, Switches(billed_once=True)).tolist() == [300, 200, 100]


def test_of_nothing_is_nothing() -> None:
    assert billed_tokens([], [], 5).tolist() == []


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 50), st.integers(0, 50)), min_size=1, max_size=20))
def test_against_a_bill_round_by_round(texts: list[tuple[int, int, int]]) -> None:
    bill = [0] * len(texts)
    for round_ in range(1, 101):
        for place, (tokens, first, more) in enumerate(texts):
            if first <= round_ <= first + more:
                bill[place] += tokens
    tokens, first, more = np.array(texts).T
    assert billed_tokens(tokens, first, first + more).tolist() == bill


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (([5, -1], 1, 1), "tokens must not be negative, got -1"),
        ((1, 0, 1), "rounds are 1-based"),
        ((1, 3, 2), "the last round is not before"),
        ((1.5, 1, 1), "must be whole numbers"),
        ((1, 1, float("nan")), "must be whole numbers"),
        (("7", 1, 1), "must be whole numbers"),
    ],
)
def test_bad_numbers_are_refused(arguments: tuple[Any, Any, Any], line: str) -> None:
    with pytest.raises(InputError, match=line):
        billed_tokens(*arguments)
