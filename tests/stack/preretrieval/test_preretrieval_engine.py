"""Before a step: whether to ask, what is injected, what is marked.

The rules are those of the design (scenarios, pre-retrieval); expected values are counted by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plugin_session import Session, hit, outcomes

from recallstack.errors import InputError
from recallstack.systems.preretrieval.contract import Hit, RetrieverError, SearchRequest, SearchResponse
from recallstack.systems.preretrieval.engine import Outcome, PreRetrieval, PreRetrievalConfig
from recallstack.systems.preretrieval.log import Event
from recallstack.systems.preretrieval.retriever import InProcessRetriever


def play(session: Session, *turns: int) -> list[str]:
    """What happened at step 1 of each turn."""
    return asyncio.run(session.steps(*turns))


# ---- once and per-turn


def test_once_asks_in_turn_one_only() -> None:
    session = Session([hit("a")], [hit("b")])
    assert play(session, 1, 1, 2, 3) == ["injected", "skipped", "skipped", "skipped"]
    assert len(session.asked) == 1


def test_once_is_once_even_when_nothing_was_found() -> None:
    session = Session([hit("a", 0.1)], [hit("b")])
    assert play(session, 1, 2) == ["nothing", "skipped"]
    assert len(session.asked) == 1


def test_once_does_not_ask_in_a_session_that_it_joins_later() -> None:
    session = Session([hit("a")])
    assert play(session, 2) == ["skipped"]
    assert session.asked == []


def test_per_turn_injects_only_what_was_not_injected_before() -> None:
    session = Session([hit("a"), hit("b")], [hit("b"), hit("c"), hit("a")], [hit("c")], inject_mode="per-turn")
    got = asyncio.run(outcomes(session, 1, 2, 2, 3))
    assert [one.ids for one in got] == [("a", "b"), ("c",), (), ()]
    assert [one.kind for one in got] == ["injected", "injected", "skipped", "nothing"]
    assert len(session.asked) == 3


@pytest.mark.parametrize("mode", ["once", "per-turn"])
def test_only_step_one_retrieves(mode: str) -> None:
    session = Session([hit("a")], inject_mode=mode)

    async def steps() -> list[Outcome]:
        return [await session.step(1, step=number) for number in (2, 3)]

    assert {one.kind for one in asyncio.run(steps())} == {"skipped"}
    assert session.asked == []


@pytest.mark.parametrize("mode", ["once", "per-turn"])
def test_nothing_to_ask_with_is_neither_asked_nor_marked(mode: str) -> None:
    session = Session([hit("a")], inject_mode=mode)
    outcome = asyncio.run(session.step(1, text=" \n"))
    assert (outcome.kind, outcome.reason) == ("skipped", "there is no text to ask with")
    assert (session.asked, outcome.events) == ([], ())


@pytest.mark.parametrize("mode", ["once", "per-turn"])
@pytest.mark.parametrize("failing", [False, True])
def test_a_resumed_session_goes_on_as_if_it_had_never_stopped(mode: str, failing: bool) -> None:
    """The log is all the state: a new process before any step changes nothing."""
    second: Any = ConnectionRefusedError() if failing else [hit("b"), hit("a")]
    answers = [[hit("a")], second, [hit("a"), hit("c")], [hit("c"), hit("d")]]
    turns = (1, 1, 2, 2, 3, 4)
    straight = Session(*answers, inject_mode=mode)
    expected = asyncio.run(outcomes(straight, *turns))
    for stop in range(len(turns)):
        resumed = Session(*answers, inject_mode=mode)
        before = asyncio.run(outcomes(resumed, *turns[:stop]))
        resumed.resume()
        assert before + asyncio.run(outcomes(resumed, *turns[stop:])) == expected
        assert resumed.log == straight.log


# ---- failures

FAILURES: dict[str, tuple[Any, str, str]] = {
    "refused": (ConnectionRefusedError(111, "secret"), "unreachable", "not reached: ConnectionRefusedError"),
    "its own timeout": (TimeoutError(), "timeout", "no answer within 3 s"),
    "HTTP 500": (RetrieverError("status", "kb answered HTTP 500"), "status", "kb answered HTTP 500"),
    "empty": (b"", "malformed", "the knowledge base answered an empty body instead of JSON"),
    "200 hits": (
        [hit("a")] * 200,
        "malformed",
        "the knowledge base answered 200 hits for top_k 3; at most 100 are read",
    ),
}


@pytest.mark.parametrize(("answer", "kind", "reason"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_injects_nothing_and_leaves_one_mark(answer: Any, kind: str, reason: str) -> None:
    outcome = asyncio.run(Session(answer).step(1))
    assert (outcome.kind, outcome.text, outcome.ids) == ("failed", "", ())
    assert outcome.reason == reason
    assert outcome.events == (Event("pre-retrieval/failed", {"turn": 1, "kind": kind}),)


@pytest.mark.parametrize("failure", [one[0] for one in FAILURES.values()], ids=FAILURES.keys())
def test_a_failure_ends_the_session_in_once_and_the_turn_in_per_turn(failure: Any) -> None:
    session = Session(failure, [hit("a")])
    assert play(session, 1, 1, 2, 3) == ["failed", "skipped", "skipped", "skipped"]
    assert len(session.asked) == 1
    session = Session(failure, [hit("a")], inject_mode="per-turn")
    assert play(session, 1, 1, 2) == ["failed", "skipped", "injected"]
    assert len(session.asked) == 2


def test_a_slow_base_is_given_up_at_the_deadline() -> None:
    session = Session(asyncio.Event(), timeout_s=0.01)
    outcome = asyncio.run(session.step(1))
    assert (outcome.kind, outcome.reason) == ("failed", "no answer within 0.01 s")
    assert outcome.events[0].data == {"turn": 1, "kind": "timeout"}


def test_a_retriever_that_does_not_check_is_checked() -> None:
    class Careless:
        async def retrieve(self, request: SearchRequest) -> SearchResponse:
            return SearchResponse(hits=(hit("a", float("nan")),))

    outcome = asyncio.run(PreRetrieval(PreRetrievalConfig(), Careless()).before_step([], ["x"], 1))
    assert (outcome.kind, outcome.reason) == (
        "failed",
        "the knowledge base answered hits[0].score is nan; it must be a finite number",
    )


def test_a_fault_of_our_own_is_not_taken_for_a_failed_base() -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(Session(ZeroDivisionError()).step(1))


def test_a_cancelled_step_is_cancelled_and_marks_nothing() -> None:
    session = Session(asyncio.Event())

    async def cancel() -> None:
        task = asyncio.ensure_future(session.step(1))
        while not session.asked:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(cancel())
    assert [one.type for one in session.log] == ["turn/start"]


# ---- what is asked


def test_the_request_of_each_mode() -> None:
    said = Event("assistant/message", {"text": "hello"})
    context = Session(top_k=5, sources=("docs",), scope={"team": "a"}, context_max_chars=4)
    context.log.append(said)
    asyncio.run(context.step(1, "ports"))
    (request,) = context.asked
    assert [(one.role, one.text) for one in request.context or ()] == [("user", "port")]
    assert (request.query, request.top_k, request.sources, request.scope) == (None, 5, ("docs",), {"team": "a"})

    rule = Session(query_mode="rule", query_chars=4)
    rule.log.append(said)
    asyncio.run(rule.step(1, "ports"))
    (request,) = rule.asked
    assert (request.query, request.context, request.top_k) == ("port", None, 3)
    assert (request.sources, request.scope) == (None, None)


def test_defaults_are_the_documented_ones() -> None:
    config = PreRetrievalConfig()
    assert (config.query_mode, config.inject_mode, config.top_k) == ("context", "once", 3)
    assert (config.max_chars, config.min_score) == (4000, 0.2)
    assert (config.context_max_chars, config.query_chars, config.timeout_s) == (2000, 800, 3.0)


# ---- what stays of an answer


def stays(hits: Sequence[Hit], injected: Sequence[str] = (), **settings: Any) -> list[str]:
    engine = PreRetrieval(PreRetrievalConfig(**settings), InProcessRetriever(lambda _: SearchResponse(hits=())))
    return [one.doc_id for one in engine.select(hits, injected)]


def test_min_score_is_inclusive() -> None:
    below = 0.2 - 2**-55  # the float64 just below 0.2
    assert below < 0.2
    assert stays([hit("a", 0.2), hit("b", below), hit("c", 0.3)]) == ["a", "c"]
    assert stays([hit("a", 0.0), hit("b", -0.1)], min_score=0.0) == ["a"]


def test_the_cut_to_top_k_comes_last() -> None:
    weak, twice = hit("weak", 0.1), hit("a", 0.9)
    hits = [weak, hit("a"), twice, hit("old"), hit("b"), hit("c"), hit("d")]
    assert stays(hits) == ["a", "old", "b"]
    assert stays(hits, ["old"], inject_mode="per-turn") == ["a", "b", "c"]
    assert stays(hits, top_k=1) == ["a"]


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from([0.0, 0.19, 0.2, 0.21, 1.0])), max_size=12),
    st.sets(st.sampled_from("abcdef")),
    st.integers(1, 5),
)
def test_selection_against_a_plain_model(rows: list[tuple[str, float]], old: set[str], top_k: int) -> None:
    good = [name for name, score in rows if score >= 0.2 and name not in old]
    once_each = list(dict.fromkeys(good))
    hits = [hit(name, score) for name, score in rows]
    assert stays(hits, sorted(old), inject_mode="per-turn", top_k=top_k) == once_each[:top_k]


# ---- settings

BAD_SETTINGS = [
    ({"query_mode": "keywords"}, "query_mode is 'keywords'; use context or rule"),
    ({"inject_mode": "always"}, "inject_mode is 'always'; use once or per-turn"),
    ({"top_k": 0}, "top_k is 0; it must be from 1 to 1000"),
    ({"top_k": 1001}, "top_k is 1001; it must be from 1 to 1000"),
    ({"max_chars": 0}, "max_chars is 0; it must be at least 1"),
    ({"query_chars": -1}, "query_chars is -1; it must be at least 1"),
    ({"context_max_chars": 0}, "context_max_chars is 0; it must be at least 1"),
    ({"min_score": float("nan")}, "min_score is nan; it must be a finite number"),
    ({"timeout_s": 0.0}, "timeout_s is 0.0; it must be a number above 0"),
    ({"timeout_s": float("inf")}, "timeout_s is inf; it must be a number above 0"),
    ({"scope": {"team": object()}}, "sources or scope cannot be sent as JSON"),
    ({"sources": ("\ud83d",)}, "sources or scope cannot be sent as JSON"),
]


@pytest.mark.parametrize(("settings", "line"), BAD_SETTINGS)
def test_bad_settings_are_one_clear_line(settings: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as caught:
        PreRetrievalConfig(**settings)
    assert str(caught.value).startswith("pre-retrieval: ")
    assert line in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
