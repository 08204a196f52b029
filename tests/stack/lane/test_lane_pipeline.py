"""The incident of seed 001 on all wires, fixed and legacy, and what must stay as it is around it."""

from __future__ import annotations

import json

import pytest
from lane_shapes import WIRES, body_of, review_body

from recallstack.systems.lane.classify import AGENT, REVIEW_POLICY
from recallstack.systems.lane.framing import OPEN_TAG, PREAMBLE
from recallstack.systems.lane.pipeline import Pipeline
from recallstack.systems.lane.session import Baseline, Fold, Session
from recallstack.systems.lane.switches import LEGACY, Switches

REFS, USAGE, REVIEW_USAGE, REQUESTED, WINDOW = 112, 676_541, 127_497, 384_000, 1_048_576
CHARACTERS = 4 * (USAGE - 65_000)
"""Of the main request: what characters/4 sees is 65,000 tokens low, the least that the source says."""
BLOB = f"FILTERED_HISTORY\nuser: earlier\n{PREAMBLE}\n{OPEN_TAG}we did this</compacted-summary>\n"
"""A history that quotes a checkpoint in its middle."""
SUMMARY = f"{PREAMBLE}\n{OPEN_TAG}we did this</compacted-summary>"
MAIN = "You are a coding agent."


def main_turns(count=REFS, total=CHARACTERS, system=MAIN):
    """Messages of the user and the assistant in turn, with the system text `total` code points in all."""
    turns = []
    for place in range(count):
        text = f"{place:04d}".ljust((total - len(system)) // count, ".")
        turns.append(("user", text) if place % 2 == 0 else ("assistant", text, []))
    short = total - len(system) - sum(len(turn[1]) for turn in turns)
    return [("user", turns[0][1] + "." * short), *turns[1:]]


def main_body(wire, turns=None, limit=REQUESTED):
    return body_of(wire, MAIN, main_turns() if turns is None else turns, limit=limit)


def limit_of(body):
    fields = json.loads(body)
    fields |= fields.get("generationConfig", {})
    names = ("max_tokens", "max_output_tokens", "maxOutputTokens")
    return next(fields[name] for name in names if name in fields)


def folded_session(wire, switches):
    """112 refs, all folded in one block, usage 676,541 settled, one `compress` pending."""
    pipeline = Pipeline(switches=switches)
    pipeline.settle(pipeline.handle(wire, main_body(wire), "s", AGENT), USAGE)
    pipeline.compress("s", "m1", "m112", "all of it")
    done = pipeline.handle(wire, main_body(wire), "s", AGENT)
    assert (done.lane, done.compress) == ("main", "done")
    assert len(pipeline.session("s").blocks[0].ids) == REFS
    pipeline.settle(done, USAGE)
    pipeline.compress("s", "m2", "m5", "more")
    return pipeline


def kept(before, after):
    return len(set(before.refs) & set(after.refs))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stamp", [None, AGENT])
def test_a_review_leaves_the_session_alone_and_the_clamp_holds(wire, stamp):
    pipeline = folded_session(wire, Switches())
    before = pipeline.session("s")
    body = review_body(wire, BLOB, limit=REQUESTED)
    review = pipeline.handle(wire, body, "s", stamp)
    pipeline.settle(review, REVIEW_USAGE)
    assert (review.lane, review.body) == ("side", body)
    assert kept(before, pipeline.session("s")) == REFS == len(before.refs)
    assert pipeline.session("s") == before
    assert list(pipeline.sessions) == ["s"]
    after = pipeline.handle(wire, main_body(wire), "s", AGENT)
    # The figures of seed 001: the settled usage anchors the clamp.
    assert (after.estimate, after.max_tokens, limit_of(after.body)) == (USAGE, 338_207, 338_207)
    assert USAGE + limit_of(after.body) <= WINDOW
    assert (after.compress, after.rebased) == ("done", False)


@pytest.mark.parametrize("wire", WIRES)
def test_legacy_wipes_the_session_and_every_later_request_is_over_the_window(wire):
    pipeline = folded_session(wire, LEGACY)
    before = pipeline.session("s")
    review = pipeline.handle(wire, review_body(wire, BLOB, limit=REQUESTED), "s")
    pipeline.settle(review, REVIEW_USAGE)
    after = pipeline.session("s")
    assert (review.lane, review.rebased, review.compress) == ("main", True, "failed")
    assert (kept(before, after), len(before.refs), after.blocks) == (0, REFS, ())
    assert (before.baseline.tokens, after.baseline.tokens) == (676_541, 127_497)
    for _ in range(3):  # an error settles nothing, so it never recovers
        request = pipeline.handle(wire, main_body(wire), "s", AGENT)
        pipeline.settle(request, None)
        # Characters/4 throughout: 611,541, under the 632,929 from which the clamp does nothing.
        assert (request.estimate, limit_of(request.body)) == (611_541, REQUESTED)
        assert USAGE + limit_of(request.body) > WINDOW


def test_the_gate_alone_lowers_the_baseline_and_the_framing_alone_only_waits_for_a_quotation():
    gate = folded_session("openai-chat", Switches(gates_read_live_stamp=True))
    before = gate.session("s")
    review = gate.handle("openai-chat", review_body("openai-chat", BLOB), "s")
    gate.settle(review, REVIEW_USAGE)
    # The framing rule still prevents the wipe: all refs are there, and one for the review.
    assert (review.lane, review.rebased) == ("main", False)
    assert (kept(before, gate.session("s")), review.refs) == (REFS, ("m113",))
    assert gate.session("s").baseline.tokens == REVIEW_USAGE

    framing = folded_session("openai-chat", Switches(tag_anywhere=True))
    before = framing.session("s")
    assert framing.handle("openai-chat", review_body("openai-chat", BLOB), "s").lane == "side"
    assert framing.session("s") == before
    quoted = framing.handle("openai-chat", main_body("openai-chat", [("user", BLOB)]), "s", AGENT)
    assert (quoted.rebased, kept(before, framing.session("s"))) == (True, 0)


def test_a_quoted_checkpoint_does_not_rebase():
    pipeline = folded_session("openai-chat", Switches())
    before = pipeline.session("s")
    quoted = pipeline.handle("openai-chat", main_body("openai-chat", [("user", BLOB)]), "s")
    assert not quoted.rebased
    assert kept(before, pipeline.session("s")) == REFS


@pytest.mark.parametrize("wire", WIRES)
def test_a_stamped_review_is_forked_in_legacy_only(wire):
    pipeline = folded_session(wire, Switches(stamped_review_forked=True))
    before = pipeline.session("s")
    review = pipeline.handle(wire, review_body(wire, BLOB), "s", AGENT)
    pipeline.settle(review, REVIEW_USAGE)
    assert (review.lane, review.forked) == ("main", True)
    assert pipeline.session("s") == before
    (sub,) = set(pipeline.sessions) - {"s"}
    assert sub == review.key
    assert sub.startswith("s|sub:")
    assert pipeline.session(sub).baseline.tokens == REVIEW_USAGE
    assert pipeline.session(sub).refs == review.ids
    again = pipeline.handle(wire, review_body(wire, "another"), "s", AGENT)
    assert (again.key, again.refs) == (sub, ("m2",))
    # Without a stamp it is still passed through: only the named bug is back.
    assert pipeline.handle(wire, review_body(wire, BLOB), "s").lane == "side"


def test_the_resolver_still_forks_other_discontinuous_shapes():
    pipeline = folded_session("openai-chat", Switches())
    title = body_of("openai-chat", "Write a title.", [("user", "some text")])
    forked = pipeline.handle("openai-chat", title, "s", AGENT)
    assert (forked.lane, forked.forked) == ("main", True)
    assert forked.key.startswith("s|sub:")
    # Not without a stamp, not for another system text on the same conversation, not for the same system text.
    for system, text, stamp in [("Write a title.", "some text", None), (MAIN, "all new", AGENT), (MAIN, "x", "other")]:
        body = body_of("openai-chat", system, [("user", text)])
        assert not pipeline.handle("openai-chat", body, "s", stamp).forked
    today = body_of("openai-chat", MAIN + " It is Monday.", main_turns())
    assert not pipeline.handle("openai-chat", today, "s", AGENT).forked


@pytest.mark.parametrize("wire", WIRES)
def test_a_real_checkpoint_rebases(wire):
    pipeline = folded_session(wire, Switches())
    turns = [("user", SUMMARY), ("assistant", "Understood.", []), ("user", "go on")]
    done = pipeline.handle(wire, main_body(wire, turns), "s")
    assert (done.rebased, done.compress, done.refs) == (True, "failed", ("m1", "m2", "m3"))
    after = pipeline.session("s")
    assert (after.refs, after.blocks, after.fold, after.pending) == (done.ids, (), Fold(), None)
    assert after.agent == AGENT
    # The settled usage was of another history: characters/4 until the next answer is billed.
    written = len(MAIN) + len(SUMMARY) + len("Understood.") + len("go on")
    assert done.estimate == -(-written // 4)
    pipeline.settle(done, 90_000)
    again = pipeline.handle(wire, main_body(wire, [*turns, ("assistant", "12345", [])]), "s")
    assert (again.rebased, again.estimate, again.refs[:3]) == (False, 90_002, ("m1", "m2", "m3"))


def test_a_checkpoint_rebases_only_when_all_conditions_hold():
    turns = main_turns()
    for name, sent, blocks in [
        ("one covered message kept", [turns[2], ("user", SUMMARY)], True),
        ("no framing", [("user", "a new start")], True),
        ("no active block", [("user", SUMMARY)], False),
    ]:
        pipeline = Pipeline()
        pipeline.handle("openai-chat", main_body("openai-chat"), "s", AGENT)
        if blocks:
            pipeline.compress("s", "m1", "m9", "start")
            pipeline.handle("openai-chat", main_body("openai-chat"), "s")
        before = pipeline.session("s")
        assert not pipeline.handle("openai-chat", main_body("openai-chat", sent), "s").rebased, name
        assert kept(before, pipeline.session("s")) == REFS, name


def test_an_old_checkpoint_does_not_rebase_again():
    pipeline = Pipeline()
    turns = [("user", SUMMARY), ("assistant", "one", []), ("user", "two")]
    pipeline.handle("openai-chat", main_body("openai-chat", turns), "s", AGENT)
    pipeline.compress("s", "m2", "m3", "one and two")
    assert pipeline.handle("openai-chat", main_body("openai-chat", turns), "s").compress == "done"
    rewound = pipeline.handle("openai-chat", main_body("openai-chat", turns[:1]), "s")
    assert not rewound.rebased


def test_another_agent_is_unaffected():
    for stamp in (None, "other"):
        pipeline = Pipeline()
        pipeline.settle(pipeline.handle("openai-chat", main_body("openai-chat"), "s", "other"), USAGE)
        pipeline.compress("s", "m1", "m112", "all")
        pipeline.handle("openai-chat", main_body("openai-chat"), "s", "other")
        review = pipeline.handle("openai-chat", review_body("openai-chat", SUMMARY), "s", stamp)
        assert (review.lane, review.rebased, review.refs) == ("main", False, ("m113",))
        pipeline.settle(review, REVIEW_USAGE)
        assert pipeline.session("s").baseline.tokens == REVIEW_USAGE
        assert len(pipeline.session("s").blocks) == 1


def test_a_fresh_session_goes_through_the_whole_pipeline():
    pipeline = Pipeline()
    review = pipeline.handle("openai-chat", review_body("openai-chat", BLOB), "new")
    assert (review.lane, review.rebased, review.refs) == ("main", False, ("m1",))
    pipeline.settle(review, REVIEW_USAGE)
    assert pipeline.session("new") == Session(key="new", refs=review.ids, baseline=Baseline(REVIEW_USAGE, review.ids))


def test_a_conversation_that_quotes_the_policy_is_no_review():
    pipeline = folded_session("openai-chat", Switches())
    turns = [*main_turns(), ("user", f"what does this do? {REVIEW_POLICY}")]
    assert pipeline.handle("openai-chat", main_body("openai-chat", turns), "s").refs[-1] == "m113"
    several = body_of("openai-chat", REVIEW_POLICY, [("user", "a"), ("assistant", "b", []), ("user", "c")])
    assert pipeline.handle("openai-chat", several, "s").lane == "main"


def test_a_drifted_policy_is_a_miss_and_the_framing_still_prevents_the_wipe():
    pipeline = folded_session("openai-chat", Switches())
    before = pipeline.session("s")
    drifted = REVIEW_POLICY.replace("policy 1", "policy 2")
    review = pipeline.handle("openai-chat", review_body("openai-chat", BLOB, drifted), "s")
    assert (review.lane, review.rebased, kept(before, pipeline.session("s"))) == ("main", False, REFS)
