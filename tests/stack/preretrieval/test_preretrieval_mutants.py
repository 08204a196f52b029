"""Each mutant of pre-retrieval, caught: the documented behaviour, worked out by hand, and the mutant gives another."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from plugin_session import Session, hit, outcomes

from recallstack.systems.preretrieval.billing import billed_tokens
from recallstack.systems.preretrieval.contract import RetrieverError
from recallstack.systems.preretrieval.log import Event
from recallstack.systems.preretrieval.switches import NO_SWITCHES, Switches


async def _kinds(switches: Switches, answers: Sequence[Any], *turns: int, **settings: Any) -> Any:
    return await Session(*answers, switches=switches, **settings).steps(*turns)


async def _ids(switches: Switches, answers: Sequence[Any], *turns: int, **settings: Any) -> Any:
    return [one.ids for one in await outcomes(Session(*answers, switches=switches, **settings), *turns)]


async def _resumed(switches: Switches) -> Any:
    session = Session([hit("a")], switches=switches)
    before = await session.steps(1)
    session.resume()
    return before + await session.steps(1)


async def _raised(switches: Switches, failure: Any) -> Any:
    try:
        return await _kinds(switches, [failure], 1)
    except RetrieverError as error:
        return f"raised {error.kind}"


async def _slow(switches: Switches) -> Any:
    """A base that answers, but only once a deadline far below has had to pass."""
    session = Session(gate := asyncio.Event(), switches=switches, timeout_s=0.01)
    asyncio.get_running_loop().call_later(0.5, gate.set)
    return (await session.step(1)).kind


async def _length(switches: Switches) -> Any:
    return len((await Session([hit("a", snippet="x" * 5000)], switches=switches).step(1)).text) > 4000


async def _sent(switches: Switches, *log: Event) -> Any:
    session = Session(switches=switches, inject_mode="per-turn")
    session.log.extend(log)
    await session.step(2, "p" * 900)
    return [len(one.text) for one in session.asked[0].context or ()]


async def _second_step(switches: Switches) -> Any:
    session = Session([hit("a")], switches=switches)
    session.log.append(Event("user/message", {"text": "a question"}))
    return [(await session.step(1, step=number)).kind for number in (1, 2)]


async def _billed(switches: Switches) -> Any:
    return int(billed_tokens(10, 2, 4, switches))


REFUSED = ConnectionRefusedError()
STATUS = RetrieverError("status", "the knowledge base answered HTTP 500")
OWN = {"kind": "plugin", "plugin": "pre-retrieval"}
LONG = Event("assistant/message", {"text": "a" * 900})

MUTANTS: dict[str, tuple[Callable[[Switches], Awaitable[Any]], Any]] = {
    "once_ignored": (lambda s: _kinds(s, [[hit("a")]], 1, 2), ["injected", "skipped"]),
    "resume_forgets": (_resumed, ["injected", "skipped"]),
    "per_turn_repeats_ids": (lambda s: _ids(s, [[hit("a")]], 1, 2, inject_mode="per-turn"), [("a",), ()]),
    "failure_not_marked_once": (lambda s: _kinds(s, [REFUSED], 1, 1), ["failed", "skipped"]),
    "failure_not_marked_turn": (lambda s: _kinds(s, [REFUSED], 1, 1, inject_mode="per-turn"), ["failed", "skipped"]),
    "timeout_blocks": (_slow, "failed"),
    "http_500_raises": (lambda s: _raised(s, STATUS), ["failed"]),
    "malformed_raises": (lambda s: _raised(s, b"<html>"), ["failed"]),
    "min_score_exclusive": (lambda s: _ids(s, [[hit("a", 0.2)]], 1), [("a",)]),
    "min_score_ignored": (lambda s: _ids(s, [[hit("a", 0.1)]], 1), [()]),
    "cut_before_filter": (lambda s: _ids(s, [[hit("w", 0.1), hit("a")]], 1, top_k=1), [("a",)]),
    "repeats_kept": (lambda s: _ids(s, [[hit("a"), hit("a")]], 1), [("a",)]),
    "max_chars_ignored": (_length, False),
    # 2,000 in all: the pending message's 800, one answer's 800, and 400 of the other.
    "context_total_ignored": (lambda s: _sent(s, LONG, LONG), [400, 800, 800]),
    "context_entry_ignored": (lambda s: _sent(s), [800]),
    "tool_entry_ignored": (lambda s: _sent(s, Event("tool/result", {"text": "t" * 900})), [200, 800]),
    "own_injection_in_context": (lambda s: _sent(s, Event("user/message", {"text": "i", "source": OWN})), [800]),
    # 10 tokens in rounds 2, 3 and 4.
    "billed_once": (_billed, 30),
    "every_step_retrieves": (_second_step, ["injected", "skipped"]),
}


def test_every_switch_is_watched() -> None:
    assert set(MUTANTS) == {one.name for one in dataclasses.fields(Switches)}
    assert not any(dataclasses.astuple(NO_SWITCHES))


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str) -> None:
    watch, expected = MUTANTS[name]

    async def observed(switches: Switches) -> Any:
        return await watch(switches)

    assert asyncio.run(observed(NO_SWITCHES)) == expected
    assert asyncio.run(observed(Switches(**{name: True}))) != expected
