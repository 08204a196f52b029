"""Injection driven by a session, end to end, with expectations worked out by hand.

Four memories, all projects without a title: a "apple pie" [1, 0], b "bicycle repair" [0, 1], c "apple cider"
[0.6, 0.8], and low "apple tart" [0.8, 0.6] of importance 2, which is not eligible. Two are injected (pool 4), all
four fixes are on, k = 60, no scope is known (multiplier 1).

"bicycle" [0, 1]: vector list b 1, c 0.8, a 0 (after the filter); BM25 list b. Fused: b 2/61, c 1/62, a 1/63.
Reranked 0.5 * cosine + 0.5 * fused * 61/2: b 1, c 0.4 + 0.246 = 0.646, a 0.242. Injected (b, c).
Without a vector: BM25 brings b, the rest is filled in rule order (a, b, c by position): (b, a).
"apple" [1, 0]: vector list a 1, c 0.6, b 0; BM25 list a, c (equal scores, by position; low is filtered). Fused: a 2/61,
c 2/62, b 1/63. Reranked: a 1, c 0.3 + 0.492 = 0.792, b 0.242. Injected (a, c).
No query at all: rule order, (a, b).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual import play

from recallstack.errors import InputError
from recallstack.ranking.injection import Scope
from recallstack.ranking.pipeline import Query, answer
from recallstack.ranking.presets import preset, presets
from recallstack.ranking.recipes import InjectRecipe
from recallstack.ranking.rows import Corpus, Memory
from recallstack.systems.session.block import BlockConfig
from recallstack.systems.session.clock import VirtualClock
from recallstack.systems.session.host import Host
from recallstack.systems.session.log import CLAIMED
from recallstack.systems.session.prefetch import QueryVectors
from recallstack.systems.session.query import LiveQueries
from recallstack.systems.session.sources import BatchSource, LiveSource, embed_with
from recallstack.systems.session.switches import Switches
from recallstack.systems.session.turn import Assembly, InjectionSession, play_turn

CORPUS = Corpus.of(
    "main",
    [
        Memory(id="a", content="apple pie"),
        Memory(id="b", content="bicycle repair"),
        Memory(id="c", content="apple cider"),
        Memory(id="low", content="apple tart", importance=2),
    ],
)
VECTORS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.8, 0.6]])
QUERIES = {"bicycle": [0.0, 1.0], "apple": [1.0, 0.0]}
FIXED = preset("inject-fixed")
assert isinstance(FIXED, InjectRecipe)
RECIPE = dataclasses.replace(FIXED, max_items=2)
QUERY_BUG, PREFETCH_BUG = Switches(query_from_visible_messages=True), Switches(prefetch_not_awaited=True)
BOTH_BUGS = Switches(query_from_visible_messages=True, prefetch_not_awaited=True)


def session_of(clock: VirtualClock, latency: float = 100, **settings: Any) -> tuple[InjectionSession, Host]:
    async def embed(query: str) -> list[float] | None:
        await clock.sleep(latency)
        return QUERIES.get(query)

    settings = {"memory_vectors": VECTORS, **settings}
    session = InjectionSession.over(CORPUS, RECIPE, embed, clock, **settings)
    return session, Host(session.log)


def seen(assemblies: list[Assembly]) -> list[tuple[str, bool, tuple[str, ...]]]:
    return [(one.query, one.vector, one.ids) for one in assemblies]


def test_every_step_injects_what_its_query_asks_for() -> None:
    async def scenario(clock: VirtualClock) -> None:
        session, host = session_of(clock)
        first = await clock.drive(play_turn(session, host, "bicycle", steps=2))
        assert seen(first) == [("bicycle", True, ("b", "c"))] * 2
        second = await clock.drive(play_turn(session, host, "apple"))
        assert seen(second) == [("apple", True, ("a", "c"))]
        assert [(one.turn, one.step) for one in (*first, *second)] == [(1, 1), (1, 2), (2, 1)]
        # The first step waits for the vector, the second has it.
        assert [one.waited_ms for one in first] == [100.0, 0.0]
        assert session.vectors.requests == 2
        assert first[0].semantic == (True, True)
        await session.close()

    play(scenario)


def test_legacy_query_is_empty_in_turn_1_and_stale_in_turn_2() -> None:
    async def scenario(clock: VirtualClock) -> None:
        session, host = session_of(clock, switches=QUERY_BUG)
        first = await clock.drive(play_turn(session, host, "bicycle", steps=2))
        assert seen(first) == [("", False, ("a", "b")), ("bicycle", True, ("b", "c"))]
        assert first[0].semantic == (False, False)
        assert first[0].no_vector == "there is no query"
        second = await clock.drive(play_turn(session, host, "apple"))
        assert seen(second) == [("bicycle", True, ("b", "c"))]
        await session.close()

    play(scenario)


def test_legacy_prefetch_misses_every_first_step_and_a_turn_of_one_step_never_has_its_vector() -> None:
    async def scenario(clock: VirtualClock) -> None:
        session, host = session_of(clock, switches=PREFETCH_BUG)
        first = await clock.drive(play_turn(session, host, "bicycle", steps=3, step_ms=60))
        # Steps at 0, 60 and 120 ms; the vector comes at 100.
        assert seen(first) == [
            ("bicycle", False, ("b", "a")),
            ("bicycle", False, ("b", "a")),
            ("bicycle", True, ("b", "c")),
        ]
        assert first[0].no_vector == "the request was started and not awaited"
        assert [one.waited_ms for one in first] == [0.0, 0.0, 0.0]
        (only,) = await clock.drive(play_turn(session, host, "apple", step_ms=500))
        assert (only.query, only.vector) == ("apple", False)
        assert session.vectors.cached("apple") is not None  # in time for nothing
        await session.close()

    play(scenario)


def test_with_both_bugs_the_last_turns_cached_vector_answers_the_new_question() -> None:
    async def scenario(clock: VirtualClock) -> None:
        session, host = session_of(clock, switches=BOTH_BUGS)
        first = await clock.drive(play_turn(session, host, "bicycle", steps=2, step_ms=500))
        assert seen(first) == [("", False, ("a", "b")), ("bicycle", False, ("b", "a"))]
        second = await clock.drive(play_turn(session, host, "apple", step_ms=500))
        assert seen(second) == [("bicycle", True, ("b", "c"))]
        await session.close()

    play(scenario)


def test_without_a_vector_bm25_alone_feeds_the_pool_and_the_reason_is_told() -> None:
    async def scenario(clock: VirtualClock) -> None:
        session, host = session_of(clock, latency=300, timeout_ms=200)
        late = await clock.drive(play_turn(session, host, "bicycle", steps=2))
        assert seen(late) == [("bicycle", False, ("b", "a")), ("bicycle", True, ("b", "c"))]
        assert late[0].no_vector == "no vector after 200 ms"
        assert late[0].semantic == (True, False)
        assert [one.waited_ms for one in late] == [200.0, 100.0]
        await session.close()

    play(scenario)


def test_a_failed_query_is_not_asked_again_in_its_turn() -> None:
    async def scenario(clock: VirtualClock) -> None:
        session, host = session_of(clock)
        failed = await clock.drive(play_turn(session, host, "no such query bicycle", steps=3))
        assert seen(failed) == [("no such query bicycle", False, ("b", "a"))] * 3
        assert session.vectors.requests == 1
        assert failed[1].no_vector == ("the query failed and is not asked again yet: the embedder gave an empty vector")
        await session.close()

    play(scenario)


def test_what_was_withdrawn_rewound_or_rejected_is_never_asked() -> None:
    async def scenario(clock: VirtualClock) -> None:
        session, host = session_of(clock)
        host.splice("bicycle")
        host.cancel()
        assert (await clock.drive(session.assemble(1))).query == ""
        host.splice("bicycle")
        host.claim()
        host.pre_step("enter")
        (event,) = host.append_claimed()
        host.rewind(event.seq)
        assert (await clock.drive(session.assemble(1))).query == ""
        assert session.vectors.requests == 0
        await session.close()

    play(scenario)


def test_a_message_queued_in_the_last_turn_is_asked_once_it_is_claimed() -> None:
    async def scenario(clock: VirtualClock) -> None:
        session, host = session_of(clock)
        host.splice("bicycle")
        host.claim()
        host.pre_step("enter")
        host.append_claimed()
        host.splice("apple")
        host.end_turn()
        host.claim()
        host.pre_step("enter")
        got = await clock.drive(session.assemble(1))
        assert (got.query, got.ids) == ("apple", ("a", "c"))
        await session.close()

    play(scenario)


def test_a_host_that_writes_claims_as_removals_gives_the_same_injections() -> None:
    async def scenario(clock: VirtualClock) -> None:
        session, _ = session_of(clock)
        host = Host(session.log, durable_claims=True)
        first = await clock.drive(play_turn(session, host, "bicycle", steps=2))
        second = await clock.drive(play_turn(session, host, "apple"))
        assert seen([*first, *second]) == [
            ("bicycle", True, ("b", "c")),
            ("bicycle", True, ("b", "c")),
            ("apple", True, ("a", "c")),
        ]
        await session.close()

    play(scenario)


def test_the_block_shows_what_was_injected_within_its_budget() -> None:
    async def scenario(clock: VirtualClock) -> None:
        session, host = session_of(clock, block=BlockConfig(head="M:", max_chars=30))
        (got,) = await clock.drive(play_turn(session, host, "bicycle"))
        # 'M:' and line 1 are 2 + 13 + 14 = 29 characters: line 2 has no room but for the ellipsis.
        assert got.block.text == "M:\n- [project] bicycle repair…"
        assert got.block.ids == ("b",)
        assert got.ids == ("b", "c")
        await session.close()

    play(scenario)


def test_the_trace_names_what_each_stage_left() -> None:
    async def scenario(clock: VirtualClock) -> None:
        session, host = session_of(clock)
        (got,) = await clock.drive(play_turn(session, host, "bicycle"))
        trace = got.trace()
        assert trace["vector"] == ("b", "c", "low", "a")  # cosines 1, 0.8, 0.6, 0
        assert trace["vector.eligible"] == ("b", "c", "a")
        assert trace["bm25.pool"] == ("b",)
        assert trace["merged"] == ("b", "c", "a")
        await session.close()

    play(scenario)


def test_the_scope_of_the_session_counts() -> None:
    """Strict scope, and b is another agent's: c leads the vector list (0.4 + 0.25 = 0.65), then a (0 + 0.246)."""
    rows = [msgspec.structs.replace(one, agent_scope="other") if one.id == "b" else one for one in CORPUS.memories]

    async def scenario(clock: VirtualClock) -> None:
        async def embed(query: str) -> list[float]:
            return QUERIES[query]

        recipe = dataclasses.replace(RECIPE, scope="strict")
        session = InjectionSession.over(
            Corpus.of("main", rows), recipe, embed, clock, memory_vectors=VECTORS, scope=Scope(agent="me")
        )
        (got,) = await clock.drive(play_turn(session, Host(session.log), "bicycle"))
        assert got.ids == ("c", "a")
        await session.close()

    play(scenario)


def test_sessions_of_a_plugin_share_vectors_and_live_queries() -> None:
    async def scenario(clock: VirtualClock) -> None:
        async def embed(query: str) -> list[float]:
            await clock.sleep(100)
            return QUERIES[query]

        source, vectors, live = LiveSource(CORPUS, RECIPE, VECTORS), QueryVectors(embed, clock), LiveQueries()
        for number in range(3):
            session = InjectionSession(RECIPE, source, vectors, live=live)
            session.log.id = f"s{number}"
            await clock.drive(play_turn(session, Host(session.log), "bicycle"))
        assert vectors.requests == 1
        assert len(live) == 3
        await vectors.close()

    play(scenario)


def test_query_vectors_of_another_dimension_bring_nothing_and_a_note() -> None:
    async def scenario(clock: VirtualClock) -> None:
        session, host = session_of(clock, memory_vectors=np.ones((4, 3)))
        (got,) = await clock.drive(play_turn(session, host, "bicycle"))
        assert "have 2 dimensions, the index has 3; the channel returns nothing" in got.notes[0]
        assert got.ids[0] == "b"
        await session.close()

    play(scenario)


def test_memory_vectors_must_be_one_a_memory() -> None:
    with pytest.raises(InputError, match=r"shape \(3, 2\) for 4 texts"):
        LiveSource(CORPUS, RECIPE, VECTORS[:3])


def test_a_session_over_no_memories_injects_nothing() -> None:
    async def scenario(clock: VirtualClock) -> None:
        async def embed(query: str) -> list[float]:
            return [1.0, 0.0]

        for given_vectors in (None, np.zeros((0, 2))):
            empty = Corpus.of("empty", [])
            session = InjectionSession.over(empty, RECIPE, embed, clock, memory_vectors=given_vectors)
            (got,) = await clock.drive(play_turn(session, Host(session.log), "bicycle"))
            assert (got.ids, got.block.text) == ((), "")
            await session.close()

    play(scenario)


def test_candidates_searched_ahead_for_no_question_at_all_know_what_is_embedded() -> None:
    corpus = Corpus.of("main", [Memory(id="a", content="apple pie"), Memory(id="none", content="")])
    assert BatchSource(corpus, RECIPE, []).embedded.tolist() == LiveSource(corpus, RECIPE).embedded.tolist()
    assert BatchSource(corpus, RECIPE, []).embedded.tolist()[0] is True


def test_closing_in_the_middle_leaves_nothing() -> None:
    async def scenario(clock: VirtualClock) -> None:
        session, host = session_of(clock, latency=9_000, timeout_ms=200)
        (got,) = await clock.drive(play_turn(session, host, "bicycle"))
        assert not got.vector
        assert session.vectors.in_flight == 1
        await session.close()

    play(scenario)


WORDS = st.sampled_from(["deploy", "window", "friday", "replica", "lag", "lock", "tea", "租约", "房东", "备份", "恢复"])
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
INJECTIONS = [one for one in presets().values() if isinstance(one, InjectRecipe)]


@given(
    st.lists(st.tuples(SENTENCES, st.integers(1, 5)), min_size=2, max_size=12),
    st.lists(SENTENCES, min_size=1, max_size=4, unique=True),
    st.sampled_from(INJECTIONS),
    st.integers(1, 3),
)
@settings(deadline=None, max_examples=40)
def test_a_session_injects_what_the_batch_pipeline_injects(
    rows: list[tuple[str, int]], questions: list[str], recipe: InjectRecipe, steps: int
) -> None:
    """The pipeline over all questions at once is the oracle, for candidates searched live and ahead alike."""
    corpus = Corpus.of("main", [Memory(id=f"m{n}", content=text, importance=i) for n, (text, i) in enumerate(rows)])
    want = answer(corpus, [Query(one) for one in questions], recipe, recipe.max_items).final
    expected = [tuple(corpus.ids[line[line >= 0]]) for line in want.ids]
    has_vector = embed_with(corpus, recipe.vector, questions)

    async def scenario(clock: VirtualClock) -> None:
        for source in (LiveSource(corpus, recipe), BatchSource(corpus, recipe, questions[:-1])):
            vectors = QueryVectors(has_vector, clock)
            session = InjectionSession(recipe, source, vectors)
            host = Host(session.log)
            for question, ids in zip(questions, expected, strict=True):
                got = await clock.drive(play_turn(session, host, question, steps=steps))
                assert [one.query for one in got] == [question] * steps
                if all(one.vector for one in got):  # a question none of whose n-grams a memory holds has no vector
                    assert [one.ids for one in got] == [ids] * steps
            await session.close()

    play(scenario)


def test_a_plugins_message_in_the_claim_is_not_asked() -> None:
    async def scenario(clock: VirtualClock) -> None:
        session, host = session_of(clock)
        host.splice("bicycle")
        host.claim()
        session.log.receive(CLAIMED, {"message": {"text": "apple", "source": {"kind": "plugin"}}})
        assert (await clock.drive(session.assemble(1))).query == "bicycle"
        await session.close()

    play(scenario)
