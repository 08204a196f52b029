"""Injection state, rebuilt from the session log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallstack.systems.preretrieval.log import Event
from recallstack.systems.preretrieval.state import State, read_ids, rebuild, write_ids


def injection(*sections: Any, **source: Any) -> Event:
    return Event(
        "user/message",
        {"text": "x", "source": {"kind": "plugin", "plugin": "pre-retrieval", **source, "sections": sections}},
    )


def listed(text: Any) -> Mapping[str, Any]:
    return {"name": "pre-retrieval-ids", "text": text}


def start(turn: int) -> Event:
    return Event("turn/start", {"turn": turn})


def end(turn: int) -> Event:
    return Event("turn/end", {"turn": turn})


def failed(turn: int) -> Event:
    return Event("pre-retrieval/failed", {"turn": turn, "kind": "timeout"})


def test_an_empty_log_is_before_turn_one() -> None:
    assert rebuild([]) == State(1, (), frozenset(), frozenset())


def test_what_a_log_says() -> None:
    log = [start(1), injection(listed('["b", "a"]'), turn=1), end(1), start(2), failed(2), end(2), start(3)]
    log.append(injection({"name": "pre-retrieval", "text": '["no"]'}, listed('["a", "c"]'), turn=3))
    assert rebuild(log) == State(3, ("b", "a", "c"), frozenset({1, 3}), frozenset({2}))


@pytest.mark.parametrize(
    ("log", "turn"),
    [
        ([start(1)], 1),
        ([start(1), end(1)], 2),
        ([start(1), end(1), start(2)], 2),
        ([end(1), end(2)], 3),  # a host without turn/start
        ([start(1), start(4)], 4),  # a host without turn/end
        ([Event("turn/start", {}), Event("turn/end", {}), Event("turn/start", {"turn": "2"})], 2),
    ],
)
def test_the_turn_comes_from_either_event(log: list[Event], turn: int) -> None:
    assert rebuild(log).turn == turn


def test_a_message_without_its_turn_belongs_to_the_running_one() -> None:
    """So the public plugin writes it."""
    log = [start(1), end(1), start(2), injection(listed("a,b"))]
    assert rebuild(log) == State(2, ("a", "b"), frozenset({2}), frozenset())


def test_only_our_own_messages_count() -> None:
    other = {"kind": "plugin", "plugin": "other", "sections": [listed('["a"]')]}
    user = {"kind": "user", "plugin": "pre-retrieval", "sections": [listed('["a"]')]}
    log = [Event("user/message", {"source": other}), Event("user/message", {"source": user}), Event("user/message", {})]
    log.append(Event("assistant/message", {"source": {"kind": "plugin", "plugin": "pre-retrieval"}}))
    assert rebuild(log) == State(1, (), frozenset(), frozenset())


@pytest.mark.parametrize("sections", [None, 7, "text", [None, "text", 7, {}], [{"name": "pre-retrieval-ids"}]])
def test_a_broken_section_is_still_an_injection(sections: Any) -> None:
    event = Event("user/message", {"source": {"kind": "plugin", "plugin": "pre-retrieval", "sections": sections}})
    assert rebuild([event]) == State(1, (), frozenset({1}), frozenset())


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("a,b", ("a", "b")),
        ("7", ("7",)),
        ("true,null", ("true", "null")),
        ("", ()),
        (",a,,b,", ("a", "b")),
        ('["a,b", "c"]', ("a,b", "c")),
    ],
)
def test_both_forms_of_the_ids(text: str, ids: tuple[str, ...]) -> None:
    assert read_ids(text) == ids


@given(st.lists(st.text()))
def test_ids_are_read_as_they_were_written(ids: list[str]) -> None:
    assert read_ids(write_ids(ids)) == tuple(ids)
