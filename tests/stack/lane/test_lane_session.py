"""What the pipeline does to a session apart from reviews: refusal, folds, nudge, binding, mistakes."""

from __future__ import annotations

import json

import pytest
from lane_shapes import body_of, review_body

from recallstack.errors import InputError
from recallstack.systems.lane.classify import AGENT
from recallstack.systems.lane.pipeline import Pipeline
from recallstack.systems.lane.session import Block, Compress, Fold, Session


def test_a_request_with_no_room_is_refused_locally():
    pipeline = Pipeline(window=1000)
    # 1.05 × 952 = 999.6 leaves 0.4: 952 tokens are 3,808 characters, nothing settled.
    body = body_of("openai-chat", "", [("user", "x" * 3808)], limit=5)
    refused = pipeline.handle("openai-chat", body, "s")
    assert (refused.lane, refused.body, refused.max_tokens, refused.estimate) == ("refused", None, None, 952)
    assert refused.message.startswith("no room for output: the input is about 952 tokens")
    assert "\n" not in refused.message
    pipeline.settle(refused, 7)
    assert pipeline.session("s").baseline is None
    # One token less leaves 1.05, without a limit too.
    for limit, sent in [(5, 1), (1, 1)]:
        fits = pipeline.handle("openai-chat", body_of("openai-chat", "", [("user", "x" * 3804)], limit=limit), "t")
        assert (fits.lane, fits.max_tokens, json.loads(fits.body)["max_tokens"]) == ("main", sent, sent)
    open_body = body_of("openai-chat", "", [("user", "x" * 3804)], limit=None)
    assert pipeline.handle("openai-chat", open_body, "t").body == open_body
    no_limit = body_of("openai-chat", "", [("user", "x" * 3808)], limit=None)
    assert pipeline.handle("openai-chat", no_limit, "t").lane == "refused"


def test_compress_folds_absorbs_and_fails():
    pipeline = Pipeline()
    turns = [("user", "a"), ("assistant", "b", []), ("user", "c"), ("assistant", "d", [])]
    body = body_of("openai-chat", "", turns)
    first = pipeline.handle("openai-chat", body, "s")
    a, b, c, d = first.ids
    pipeline.compress("s", "m1", "m2", "ab")
    pipeline.handle("openai-chat", body, "s")
    assert (pipeline.session("s").blocks, pipeline.session("s").fold) == ((Block((a, b), "ab"),), Fold(1, b))
    pipeline.compress("s", "m3", "m3", "c")
    assert pipeline.session("s").pending == Compress("m3", "m3", "c")
    pipeline.handle("openai-chat", body, "s")
    assert (len(pipeline.session("s").blocks), pipeline.session("s").fold) == (2, Fold(2, c))
    for first_ref, last_ref in [("m2", "m1"), ("m1", "m5"), ("m0", "m1"), ("b1", "m2"), ("m1", "")]:
        pipeline.compress("s", first_ref, last_ref, "bad")
        done = pipeline.handle("openai-chat", body, "s")
        assert done.compress == "failed"
        assert (len(pipeline.session("s").blocks), pipeline.session("s").pending) == (2, None)
    pipeline.compress("s", "m1", "m4", "all")
    assert pipeline.handle("openai-chat", body, "s").compress == "done"
    assert (pipeline.session("s").blocks, pipeline.session("s").fold) == ((Block((a, b, c, d), "all"),), Fold(3, d))
    assert pipeline.handle("openai-chat", body, "s").compress == "none"


def test_a_block_that_only_overlaps_the_new_one_stays():
    pipeline = Pipeline()
    body = body_of("openai-chat", "", [("user", "a"), ("assistant", "b", []), ("user", "c")])
    a, b, c = pipeline.handle("openai-chat", body, "s").ids
    for first, last in [("m1", "m2"), ("m2", "m3")]:
        pipeline.compress("s", first, last, first)
        pipeline.handle("openai-chat", body, "s")
    assert [block.ids for block in pipeline.session("s").blocks] == [(a, b), (b, c)]


def test_nothing_is_sent_so_nothing_is_nudged():
    pipeline = Pipeline(window=1000)
    body = body_of("openai-chat", "", [("user", "x")])
    pipeline.settle(pipeline.handle("openai-chat", body, "s"), 953)
    refused = pipeline.handle("openai-chat", body, "s")
    assert (refused.lane, refused.nudge) == ("refused", False)


def test_the_persona_is_that_of_the_last_stamped_request():
    pipeline = Pipeline()

    def forked(system, text, stamp=AGENT):
        turns = [("user", "start"), ("user", text)] if text == "more" else [("user", text)]
        return pipeline.handle("openai-chat", body_of("openai-chat", system, turns), "s", stamp).forked

    assert not forked("none yet", "start", None)
    assert not forked("one", "new to the session")  # no persona before the first stamp: nothing to fork from
    assert not forked("two", "more")  # the conversation goes on under another system text
    assert not forked("two", "all new")
    assert forked("one", "all new again")


def test_a_nudge_from_half_the_window_on():
    pipeline = Pipeline()
    body = body_of("openai-chat", "", [("user", "x")])
    for tokens, nudged in [(524_287, False), (524_288, True)]:
        pipeline.settle(pipeline.handle("openai-chat", body, "s"), tokens)
        assert pipeline.handle("openai-chat", body, "s").nudge is nudged


def test_the_binding_is_sticky_until_another_client_comes():
    pipeline = Pipeline()
    body = body_of("openai-chat", "", [("user", "x")])
    for stamp, agent in [(None, None), (AGENT, AGENT), (None, AGENT), ("", AGENT), ("other", "other")]:
        pipeline.handle("openai-chat", body, "s", stamp)
        assert pipeline.session("s").agent == agent


def test_what_cannot_be_done_is_said_and_changes_nothing():
    pipeline = Pipeline()
    with pytest.raises(InputError, match="no session 's'; it starts with its first request"):
        pipeline.compress("s", "m1", "m2", "x")
    with pytest.raises(InputError, match="the body is empty"):
        pipeline.handle("openai-chat", b"", "s", AGENT)
    assert dict(pipeline.sessions) == {}
    with pytest.raises(InputError, match="window is 0"):
        Pipeline(window=0)
    done = pipeline.handle("openai-chat", body_of("openai-chat", "", [("user", "x")]), "s")
    with pytest.raises(InputError, match="cannot be negative"):
        pipeline.settle(done, -1)
    with pytest.raises(TypeError):
        pipeline.sessions["t"] = Session(key="t")
    pipeline.put(Session(key="t", agent=AGENT))
    assert pipeline.handle("openai-chat", review_body("openai-chat", "x"), "t").lane == "side"
