"""Reviews: which requests are any, on what evidence, and that they touch nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lane_shapes import WIRES, body_of, review_body

from recallstack.systems.lane.classify import AGENT, REVIEW_POLICY, Classification, classify, is_review
from recallstack.systems.lane.framing import OPEN_TAG, PREAMBLE, is_summary
from recallstack.systems.lane.pipeline import Pipeline
from recallstack.systems.lane.request import Call, Media, Message, Request, Text, Tool
from recallstack.systems.lane.wires import parse

ASK = (Message("user", (Text("history"),)),)
REVIEW = Request(system=REVIEW_POLICY + "\nmore of this review", messages=ASK)


@pytest.mark.parametrize("wire", WIRES)
def test_a_review_is_one_on_every_wire(wire):
    assert is_review(parse(wire, review_body(wire, "history")))


@pytest.mark.parametrize(
    "request_",
    [
        Request(system="You are kind.\n" + REVIEW_POLICY, messages=ASK),
        Request(system=" " + REVIEW_POLICY, messages=ASK),
        Request(system=REVIEW_POLICY[:-1], messages=ASK),
        Request(system=REVIEW_POLICY.replace("policy 1", "policy 2"), messages=ASK),
        Request(system=REVIEW_POLICY.upper(), messages=ASK),
        Request(system=REVIEW_POLICY.replace("\n", "\r\n"), messages=ASK),
        Request(system="", messages=(Message("user", (Text(REVIEW_POLICY),)),)),
        Request(system=REVIEW_POLICY, messages=()),
        Request(system=REVIEW_POLICY, messages=ASK + ASK),
        Request(system=REVIEW_POLICY, messages=(*ASK, Message("assistant", (Text("ALLOW"),)))),
        Request(system=REVIEW_POLICY, messages=(Message("assistant", (Text("history"),)),)),
        Request(system=REVIEW_POLICY, messages=ASK, tools=(Tool("read"),)),
    ],
    ids=lambda one: f"{len(one.system)}-{len(one.messages)}-{len(one.tools)}",
)
def test_whatever_differs_is_a_miss(request_):
    assert not is_review(request_)


@given(place=st.integers(0, len(REVIEW_POLICY) - 1), letter=st.characters(exclude_categories=["Cs"]))
def test_one_changed_letter_of_the_policy_is_a_miss(place, letter):
    system = REVIEW_POLICY[:place] + letter + REVIEW_POLICY[place + 1 :]
    assert is_review(Request(system=system, messages=ASK)) == (system == REVIEW_POLICY)


@pytest.mark.parametrize(
    ("stamp", "bound", "identity", "lane"),
    [
        (AGENT, None, True, True),
        (AGENT, AGENT, True, True),
        (AGENT, "other", True, True),
        (None, AGENT, False, True),
        ("other", AGENT, False, True),
        (None, None, False, False),
        (None, "other", False, False),
        ("other", None, False, False),
        ("other", "other", False, False),
    ],
)
def test_identity_needs_the_stamp_and_lane_takes_stamp_or_binding(stamp, bound, identity, lane):
    assert classify(REVIEW, stamp, bound) == Classification(True, identity, lane)
    assert classify(Request(messages=ASK), stamp, bound) == Classification(False, False, False)


def user(*parts):
    return Message("user", parts)


@pytest.mark.parametrize("start", [PREAMBLE, OPEN_TAG])
def test_a_summary_starts_with_its_framing(start):
    assert is_summary(user(Text(start + "\nwe did this")))
    assert is_summary(user(Text(start), Text("we did this")))
    assert not is_summary(user(Text("He wrote: " + start)))
    assert not is_summary(user(Text("\n" + start)))
    assert not is_summary(user(Text("see"), Text(start)))
    assert not is_summary(user(Media("image"), Text(start)))
    assert not is_summary(Message("assistant", (Text(start),)))
    assert not is_summary(Message("tool", (Call(1, "f", start),)))
    assert not is_summary(user())


def bound_pipeline(wire, texts, tokens, last):
    """A session bound to the client: texts, settled tokens, all messages folded, one `compress` pending."""
    pipeline = Pipeline()
    body = body_of(wire, "main", [("user", text) for text in texts])
    pipeline.settle(pipeline.handle(wire, body, "s", AGENT), tokens)
    pipeline.compress("s", "m1", last, "what was")
    pipeline.settle(pipeline.handle(wire, body, "s"), tokens)
    pipeline.compress("s", "m1", last, "again")
    return pipeline


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(
    wire=st.sampled_from(WIRES),
    texts=st.lists(TEXTS, min_size=1, max_size=4),
    tokens=st.integers(0, 3_000_000),
    blob=TEXTS | st.sampled_from([OPEN_TAG, PREAMBLE, f"quoting {OPEN_TAG}"]),
    tail=TEXTS,
    indent=st.none() | st.integers(0, 3),
    limit=st.integers(1, 2**40),
    stamp=st.sampled_from([None, AGENT, "other"]),
    key=st.sampled_from(["s", "unknown"]),
    usage=st.none() | st.integers(0, 3_000_000),
)
def test_a_review_with_evidence_is_passed_byte_for_byte_and_touches_nothing(
    wire, texts, tokens, blob, tail, indent, limit, stamp, key, usage
):
    pipeline = bound_pipeline(wire, texts, tokens, "m1")
    before = dict(pipeline.sessions)
    sent = json.loads(review_body(wire, blob, REVIEW_POLICY + tail, limit))
    body = json.dumps(sent, indent=indent, ensure_ascii=False).encode()
    outcome = pipeline.handle(wire, body, key, stamp)
    if stamp != AGENT and key == "unknown":
        assert outcome.lane == "main"  # no evidence: a fresh session goes through the whole pipeline
        return
    assert outcome.lane == "side"
    assert outcome.body == body
    assert (outcome.key, outcome.forked, outcome.rebased, outcome.compress) == (key, False, False, "none")
    assert (outcome.refs, outcome.nudge, outcome.estimate, outcome.max_tokens) == ((), False, None, None)
    pipeline.settle(outcome, usage)
    assert dict(pipeline.sessions) == before
