"""The injected message: its shape, its budget, and which documents it counts as injected."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from plugin_session import Session, hit, outcomes


def test_the_injected_message() -> None:
    # What the design asks of it: a plugin's user message whose second section lists the documents.
    outcome = asyncio.run(Session([hit("a", snippet="5432"), hit("b", snippet="6379")]).step(1))
    text = (
        "Knowledge base, looked up before this request · docs:2\n[1] A · a.md · docs\n5432\n[2] B · b.md · docs\n6379"
    )
    assert (outcome.text, outcome.ids, outcome.truncated) == (text, ("a", "b"), False)
    (event,) = outcome.events
    assert event.type == "user/message"
    assert event.data["content"] == [{"type": "text", "text": text}]
    assert event.data["source"] == {
        "kind": "plugin",
        "plugin": "pre-retrieval",
        "form": "snapshot",
        "turn": 1,
        "truncated": False,
        "sections": [{"name": "pre-retrieval", "text": text}, {"name": "pre-retrieval-ids", "text": '["a", "b"]'}],
    }


def test_a_text_over_the_budget_is_cut_and_marked() -> None:
    outcome = asyncio.run(Session([hit("a", snippet="x" * 5000)]).step(1))
    assert len(outcome.text) == 4000
    assert outcome.text.endswith("x…")
    assert outcome.truncated
    assert outcome.events[0].data["source"]["truncated"] is True
    full = len(asyncio.run(Session([hit("a", snippet="x" * 50)]).step(1)).text)
    at_the_line = asyncio.run(Session([hit("a", snippet="x" * 50)], max_chars=full).step(1))
    assert (len(at_the_line.text), at_the_line.truncated) == (full, False)


def test_a_document_that_was_cut_away_was_not_injected() -> None:
    """Else per-turn would never bring it."""
    hits = [hit("a", snippet="x" * 3000), hit("b", snippet="y" * 3000), hit("c")]
    session = Session(hits, inject_mode="per-turn")
    first, second = asyncio.run(outcomes(session, 1, 2))
    assert (first.ids, first.truncated) == (("a", "b"), True)
    assert (second.ids, second.truncated) == (("c",), False)


def test_a_budget_too_small_for_any_document_injects_nothing() -> None:
    for max_chars in (1, 2, 60):
        outcome = asyncio.run(Session([hit("a")], max_chars=max_chars).step(1))
        assert (outcome.kind, outcome.text, outcome.events) == ("nothing", "", ())


@given(
    st.lists(st.sampled_from(["x", "é", "👩\u200d👩\u200d👧", "🇩🇪", "\ud83d\ude00", "\ud83d"]), max_size=60),
    st.integers(75, 140),
)
def test_the_budget_holds_at_whole_characters(parts: list[str], max_chars: int) -> None:
    outcome = asyncio.run(Session([hit("a", snippet="".join(parts))], max_chars=max_chars).step(1))
    assert len(outcome.text) <= max_chars
    outcome.text.encode("utf-8")
    if outcome.truncated:
        kept = outcome.text.removesuffix("…").partition("docs\n")[2]
        shown = {"\ud83d\ude00": "😀", "\ud83d": "\ufffd"}
        heads = ["".join(shown.get(one, one) for one in parts[:count]) for count in range(len(parts) + 1)]
        assert kept in heads


def test_halves_of_a_character_never_reach_the_log() -> None:
    outcome = asyncio.run(Session([hit("a", snippet="ok \ud83d\ude00 \ud83d!")]).step(1))
    assert outcome.text.endswith("ok 😀 \ufffd!")
