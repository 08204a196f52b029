"""Every switch of the lane: what the fixed variant gives, worked out by hand, and what the switch makes of it."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lane_shapes import WIRES, body_of, review_body

from recallstack.systems.lane.clamp import clamp, output_cap
from recallstack.systems.lane.classify import AGENT, REVIEW_POLICY, classify, is_review
from recallstack.systems.lane.framing import OPEN_TAG, PREAMBLE
from recallstack.systems.lane.pipeline import Pipeline
from recallstack.systems.lane.request import Message, Request, Text, Tool
from recallstack.systems.lane.switches import LEGACY, NO_SWITCHES, Switches
from recallstack.systems.lane.wires import input_tokens

WIRE = "openai-chat"
USAGE = 676_541
TURNS = [("user", "one"), ("assistant", "two", []), ("user", "three")]
SUMMARY = [("user", f"{PREAMBLE}\n{OPEN_TAG}one, two</compacted-summary>")]
QUOTED = [("user", f"they wrote {OPEN_TAG} there")]
ASK = (Message("user", (Text("history"),)),)


def main(turns=TURNS, limit=384_000):
    return body_of(WIRE, "main", turns, limit=limit)


def session(switches, agent=AGENT, blocks=True):
    """Refs m1 to m3, m1 and m2 folded, 676,541 tokens settled, one `compress` pending."""
    pipeline = Pipeline(switches=switches)
    done = pipeline.handle(WIRE, main(), "s", agent)
    if blocks:
        pipeline.compress("s", "m1", "m2", "one, two")
        done = pipeline.handle(WIRE, main(), "s", agent)
    pipeline.settle(done, USAGE)
    pipeline.compress("s", "m1", "m1", "one")
    return pipeline


def lane(stamp, review=None):
    def probe(switches):
        pipeline = session(switches)
        return pipeline.handle(WIRE, review or review_body(WIRE, "history"), "s", stamp).lane

    return probe


def shape(**fields):
    """Whether a request that differs from a review in these fields is one."""
    return lambda switches: is_review(Request(**({"system": REVIEW_POLICY, "messages": ASK} | fields)), switches)


def side(what, limit=384_000):
    """Something of a review that is passed through, whose usage is settled."""

    def probe(switches):
        pipeline = session(switches)
        body = review_body(WIRE, "history", limit=limit)
        outcome = pipeline.handle(WIRE, body, "s")
        pipeline.settle(outcome, 127_497)
        return what(pipeline.session("s"), outcome, body)

    return probe


def rebased(turns, agent=AGENT, blocks=True):
    return lambda switches: session(switches, agent, blocks).handle(WIRE, main(turns), "s").rebased


def after_rebase(what):
    def probe(switches):
        pipeline = session(switches)
        outcome = pipeline.handle(WIRE, main(SUMMARY), "s")
        return what(pipeline.session("s"), outcome)

    return probe


def forked(switches):
    """A title request without a stamp on a bound session."""
    title = body_of(WIRE, "Write a title.", [("user", "text")])
    return session(switches).handle(WIRE, title, "s").forked


def stamped_fork(switches):
    title = body_of(WIRE, "Write a title.", [("user", "text")])
    return session(switches).handle(WIRE, title, "s", AGENT).forked


def sticky(switches):
    pipeline = session(switches)
    pipeline.handle(WIRE, main(), "s")
    return pipeline.handle(WIRE, review_body(WIRE, "history"), "s").lane


def estimate(turns):
    return lambda switches: session(switches).handle(WIRE, main(turns), "s").estimate


def evidence(switches):
    return classify(Request(system=REVIEW_POLICY, messages=ASK), "other", "other", switches).lane


def cached(switches):
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 70}
    return input_tokens("anthropic", json.dumps({"usage": usage}).encode(), switches)


def no_room(switches):
    pipeline = Pipeline(window=5, switches=switches)
    return pipeline.handle(WIRE, main(), "s").lane


def refs_kept(state, outcome):
    return len(state.refs), outcome.refs


CASES = {
    # name: (what is looked at, fixed, with the switch)
    "gates_read_live_stamp": (lane(None), "side", "main"),
    "stamped_review_forked": (lane(AGENT), "side", "main"),
    "tag_anywhere": (rebased(QUOTED), False, True),
    "policy_anywhere": (shape(system="Quote: " + REVIEW_POLICY), False, True),
    "policy_drift_matches": (shape(system=REVIEW_POLICY.replace("ALLOW", "YES")), False, True),
    "message_count_ignored": (shape(messages=ASK + ASK), False, True),
    "role_ignored": (shape(messages=(Message("assistant", (Text("x"),)),)), False, True),
    "tools_ignored": (shape(tools=(Tool("read"),)), False, True),
    "evidence_ignored": (evidence, False, True),
    "identity_from_binding": (forked, False, True),
    "binding_not_sticky": (sticky, "side", "main"),
    "resolver_never_forks": (stamped_fork, True, False),
    "passthrough_reencoded": (side(lambda s, o, body: o.body == body), True, False),
    # 338,207 of 384,000 is what a main request with this usage gets; a review keeps what it asked for.
    "side_clamped": (side(lambda s, o, body: json.loads(o.body)["max_tokens"]), 384_000, 338_207),
    "side_settles": (side(lambda s, o, body: s.baseline.tokens), USAGE, 127_497),
    "side_nudged": (side(lambda s, o, body: o.nudge), False, True),
    "side_refs": (side(lambda s, o, body: len(s.refs)), 3, 4),
    "framing_ignored": (rebased([("user", "new")]), False, True),
    "blocks_not_needed": (rebased(SUMMARY, blocks=False), False, True),
    "retention_ignored": (rebased([*TURNS, *SUMMARY]), False, True),
    "any_agent_rebases": (rebased(SUMMARY, agent="other"), False, True),
    "never_rebases": (rebased(SUMMARY), True, False),
    "rebase_keeps_refs": (after_rebase(refs_kept), (1, ("m1",)), (4, ("m4",))),
    "rebase_keeps_blocks": (after_rebase(lambda s, o: len(s.blocks)), 0, 1),
    "rebase_keeps_fold": (after_rebase(lambda s, o: s.fold.folds), 0, 1),
    "rebase_keeps_pending": (
        after_rebase(lambda s, o: (s.pending is None, o.compress)),
        (True, "failed"),
        (False, "none"),
    ),
    # 9 characters later are 3 tokens.
    "later_messages_ignored": (estimate([*TURNS, ("user", "123456789")]), USAGE + 3, USAGE),
    # "main" and "new", 7 characters.
    "baseline_unanchored": (estimate([("user", "new")]), 2, USAGE),
    "cached_tokens_ignored": (cached, 110, 10),
    # 1,048,576 − 676,541 without the margin.
    "margin_ignored": (lambda s: output_cap(USAGE, switches=s), 338_207, 372_035),
    "cap_rounded_up": (lambda s: output_cap(USAGE, switches=s), 338_207, 338_208),
    "requested_ignored": (lambda s: clamp(5, USAGE, switches=s), 5, 338_207),
    # 4 + 3 + 3 + 5 characters are 4 tokens; 1.05 × 4 = 4.2, which leaves 0.8 of 5.
    "no_room_forwarded": (no_room, "refused", "main"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_switch_changes_what_its_guard_sees(name):
    probe, fixed, broken = CASES[name]
    assert probe(NO_SWITCHES) == fixed
    assert probe(Switches(**{name: True})) == broken


def test_every_switch_has_a_guard_and_legacy_is_the_three_bugs():
    names = [field.name for field in dataclasses.fields(Switches)]
    assert list(CASES) == names
    assert [name for name in names if getattr(LEGACY, name)] == names[:3]


@given(
    wire=st.sampled_from(WIRES),
    settled=st.none() | st.integers(0, 1100),
    size=st.integers(0, 4400),
    limit=st.integers(1, 1200),
    window=st.integers(1, 1000),
)
def test_what_goes_upstream_never_exceeds_the_window(wire, settled, size, limit, window):
    pipeline = Pipeline(window=window)
    first = pipeline.handle(wire, body_of(wire, "", [("user", "x")], limit=1), "s")
    pipeline.settle(first, settled)
    turns = [("user", "x"), ("assistant", "y" * size or ".", []), ("user", "z")]
    sent = pipeline.handle(wire, body_of(wire, "", turns, limit=limit), "s")
    with_margin = Fraction(105, 100) * sent.estimate
    if sent.lane == "refused":
        assert with_margin + 1 > window
        assert sent.body is None
        return
    assert with_margin + sent.max_tokens <= window
    fields = json.loads(sent.body)
    fields |= fields.get("generationConfig", {})
    written = [fields[n] for n in ("max_tokens", "max_output_tokens", "maxOutputTokens") if n in fields]
    assert written == [sent.max_tokens]
    assert sent.max_tokens == limit or with_margin + sent.max_tokens + 1 > window
