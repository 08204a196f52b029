"""The query of a step: hand-made sequences from the design and the seed, and random logs against a plain model."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from recallstack.errors import InputError
from recallstack.systems.session.host import Host, message
from recallstack.systems.session.log import CLAIMED, PRE_STEP, REWOUND, SPLICED, TURN_END, USER, SessionLog
from recallstack.systems.session.query import LIVE_KEPT, LiveQueries, last_user_query, step_query
from recallstack.systems.session.switches import Switches

LEGACY = Switches(query_from_visible_messages=True)


def query(log: SessionLog, switches: Switches = Switches()) -> str:  # noqa: B008 (a frozen value)
    return last_user_query(log.events, log.visible, switches)


def host_of(*done: str, log: SessionLog | None = None) -> Host:
    """A host after a few operations: `+A` splices A, `-` cancels the newest, `claim`, `append`, `end`, `back N`."""
    host = Host(log or SessionLog())
    for one in done:
        if one.startswith("+"):
            host.splice(*one[1:].split("+"))
        elif one == "-":
            host.cancel()
        elif one.startswith("back"):
            host.rewind(int(one.split()[1]))
        else:
            {"claim": host.claim, "append": host.append_claimed, "end": host.end_turn}[one]()
    return host


TURN = ("claim", "append", "end")


@pytest.mark.parametrize(
    ("done", "fixed", "legacy"),
    [
        # Seed 000, point 1: turn 1, step 1 reads "" and turn N the message of turn N - 1.
        (("+A", "claim"), "A", ""),
        (("+A", *TURN, "+B", "claim"), "B", "A"),
        # Once the message is appended both read it.
        (("+A", "claim", "append"), "A", "A"),
        # Design: "after A, B, cancel of B the answer is not A's pending text".
        (("+A", "+B", "-"), "", ""),
        (("+A", *TURN, "+B", "+C", "-"), "A", "A"),
        # A message spliced after a withdrawal is pending again.
        (("+A", "-", "+B"), "B", ""),
        # Events 0 splice A, 1 A, 2 end, 3 splice B, 4 B: B is rewound, and its splice (in front of it) is over.
        (("+A", *TURN, "+B", "claim", "append", "back 4"), "A", "A"),
        # The end of a turn ends what was never appended.
        (("+A", "claim", "end"), "", ""),
        # The newest of several texts in one splice.
        (("+A+B",), "B", ""),
        # B waits for the next turn: while A is worked on, A's own message ends the walk.
        (("+A", "+B", "claim", "append"), "A", "A"),
        ((), "", ""),
    ],
)
def test_known_sequences(done: tuple[str, ...], fixed: str, legacy: str) -> None:
    log = host_of(*done).log
    assert (query(log), query(log, LEGACY)) == (fixed, legacy)


def test_a_withdrawal_is_known_by_its_outcome_or_by_its_count() -> None:
    for data in ({"outcome": "canceled"}, {"removedCount": 1}, {"removedCount": 1, "outcome": "canceled"}):
        log = host_of("+A").log
        log.receive(SPLICED, {"inserted": [], **data})
        assert query(log) == ""
    log = host_of("+A").log
    log.receive(SPLICED, {"inserted": [], "removedCount": 0, "outcome": None})
    assert query(log) == "A"


def test_an_edit_withdraws_and_its_new_text_answers_only_once_it_is_claimed() -> None:
    log = SessionLog()
    host, live = Host(log), LiveQueries()
    log.listen(live.notice)
    host.splice("A")
    host.replace("A, but better")
    assert step_query(log, live) == ""
    host.claim()
    assert step_query(log, live) == "A, but better"


def test_only_the_users_own_text_is_a_query() -> None:
    log = host_of("+A").log
    log.receive(SPLICED, {"inserted": [message("from a plugin", plugin="notes")]})
    log.receive(SPLICED, {"inserted": [{"role": "assistant", "text": "hello"}, {"role": "user", "text": "  "}]})
    assert query(log) == "A"
    # A plugin's message on the surface ends what was pending, and answers nothing itself.
    Host(log).inject("snapshot", plugin="memory")
    assert query(log) == ""


@pytest.mark.parametrize("shape", [{"text": "A"}, {"content": "A"}, {"content": [{"type": "text", "text": "A"}]}])
def test_every_shape_of_a_message(shape: dict[str, Any]) -> None:
    log = SessionLog()
    log.receive(SPLICED, {"inserted": [shape]})
    assert query(log) == "A"
    log.receive(USER, shape)
    assert query(log, LEGACY) == "A"


MUTANTS: list[tuple[str, tuple[str, ...], str, str]] = [
    ("visible_ignored", ("+A", *TURN, "+B", "claim", "append", "back 4"), "A", "B"),
    ("cancel_ignored", ("+A", "+B", "-"), "", "B"),
    ("turn_end_ignored", ("+A", "claim", "end"), "", "A"),
    # Events 0 splice A, 1 A (rewound): its own splice is left.
    ("any_user_message_ignored", ("+A", "claim", "append", "back 1"), "", "A"),
    ("oldest_splice", ("+A", "+B"), "B", "A"),
    ("oldest_splice", ("+A", *TURN, "+B+C"), "C", "B"),
]


@pytest.mark.parametrize(("mutant", "done", "right", "wrong"), MUTANTS)
def test_each_mutant_of_the_walk_back_is_seen(mutant: str, done: tuple[str, ...], right: str, wrong: str) -> None:
    log = host_of(*done).log
    assert (query(log), query(log, Switches(**{mutant: True}))) == (right, wrong)


def test_the_mutants_that_need_other_events() -> None:
    log = host_of("+A").log
    log.receive(SPLICED, {"inserted": [], "removedCount": 1})
    assert (query(log), query(log, Switches(removed_count_ignored=True))) == ("", "A")
    log.receive(SPLICED, {"inserted": [message("planted", plugin="notes")]})
    assert (query(log), query(log, Switches(plugin_text_counts=True))) == ("", "planted")


# The live step query.


def live_session(switches: Switches = Switches(), durable: bool = False) -> tuple[Host, LiveQueries]:  # noqa: B008
    log = SessionLog()
    live = LiveQueries(switches)
    log.listen(live.notice)
    return Host(log, durable), live


def queued(switches: Switches = Switches()) -> tuple[Host, LiveQueries]:  # noqa: B008
    """Turn 1 (A) is over; B was queued in it and is claimed for turn 2: only the live query knows B."""
    host, live = live_session(switches)
    host_of("+A", "claim", "append", "+B", "end", log=host.log)
    host.inbox.append(message("B"))
    host.claim()
    return host, live


def test_the_live_query_wins_where_the_log_cannot_tell() -> None:
    host, live = queued()
    assert query(host.log) == "A"  # the end of turn 1 ended B's splice
    assert step_query(host.log, live) == "B"
    host.pre_step("enter")
    assert step_query(host.log, live) == "B"
    # Appended: the fingerprint has changed, and the log itself says B.
    host.append_claimed()
    assert live.query(host.log) == ""
    assert step_query(host.log, live) == "B"


def test_a_claim_that_is_written_as_a_removal_needs_the_live_query() -> None:
    host, live = live_session(durable=True)
    host.splice("A")
    host.claim()
    assert query(host.log) == ""
    assert step_query(host.log, live) == "A"
    host.pre_step("reject")
    assert step_query(host.log, live) == ""


def test_the_live_query_is_void_once_the_number_of_events_changes() -> None:
    host, live = queued()
    host.log.receive("note", {})  # an event of no other meaning, not on the surface
    assert step_query(host.log, live) == "A"


def test_the_live_query_is_void_once_the_size_of_visible_changes() -> None:
    host, live = queued()
    host.rewind(1)  # A
    assert step_query(host.log, live) == ""


def test_a_void_live_query_stays_void() -> None:
    host, live = queued()
    size = len(host.log.visible)
    host.log.visible.add(99)
    assert live.query(host.log) == ""
    host.log.visible.remove(99)
    assert len(host.log.visible) == size
    assert live.query(host.log) == ""


def test_a_decision_other_than_enter_clears_the_live_query() -> None:
    for kind in ("reject", "defer"):
        host, live = queued()
        host.log.receive(PRE_STEP, {"decision": kind})
        assert step_query(host.log, live) == "A"


def test_only_an_explicit_new_message_of_the_user_is_recorded() -> None:
    host, live = live_session()
    host.log.receive(PRE_STEP, {"decision": "enter"})
    host.log.receive(CLAIMED, {"message": message("planted", plugin="notes")})
    host.log.receive(CLAIMED, {"message": {"role": "user", "text": " "}})
    assert len(live) == 0
    host.log.receive(PRE_STEP, {"decision": {"kind": "enter", "messages": [message("A"), message("x", plugin="p")]}})
    assert live.query(host.log) == "A"
    assert host.log.events == []  # notifications are never appended


def test_at_most_eight_sessions_are_kept_and_the_oldest_goes() -> None:
    times = [0.0, 1.0, 2.0, -1.0, 4.0, 5.0, 6.0, 7.0, 8.0]  # session 3 is the one recorded first, by the clock
    live, unbounded = LiveQueries(), LiveQueries(Switches(live_query_unbounded=True))
    logs = []
    for number, at in enumerate(times):
        log = SessionLog(f"s{number}", lambda at=at: at)  # type: ignore[misc]
        log.listen(live.notice)
        log.listen(unbounded.notice)
        log.receive(CLAIMED, {"message": message(f"Q{number}")})
        logs.append(log)
    assert LIVE_KEPT == 8
    assert [live.query(log) for log in logs] == ["Q0", "Q1", "Q2", "", "Q4", "Q5", "Q6", "Q7", "Q8"]
    assert (len(live), len(unbounded)) == (8, 9)


def test_each_mutant_of_the_live_query_is_seen() -> None:
    def after(mutant: str, kind: str, data: dict[str, Any]) -> tuple[str, str]:
        out = []
        for switches in (Switches(), Switches(**{mutant: True})):
            host, live = queued(switches)
            host.log.receive(kind, data)
            out.append(step_query(host.log, live, switches))
        return out[0], out[1]

    assert after("live_query_ignores_events", "note", {}) == ("A", "B")
    assert after("live_query_ignores_visible", REWOUND, {"from": 1}) == ("", "B")
    assert after("live_query_survives_reject", PRE_STEP, {"decision": "reject"}) == ("A", "B")
    planted = {"message": message("planted", plugin="notes")}
    assert after("live_query_from_any_notification", CLAIMED, planted) == ("B", "planted")


def test_a_step_without_a_new_message_does_not_revive_the_live_query() -> None:
    for switches, said in ((Switches(), "A"), (Switches(live_query_from_any_notification=True), "B")):
        host, live = queued(switches)
        host.log.receive("note", {})
        host.log.receive(PRE_STEP, {"decision": "enter"})
        assert step_query(host.log, live, switches) == said


def test_the_legacy_query_has_no_live_query() -> None:
    host, live = queued(LEGACY)
    assert step_query(host.log, live, LEGACY) == "A"


# The log.


def test_splices_are_never_visible_and_sequence_numbers_have_no_gap() -> None:
    log = host_of("+A", "claim", "append", "+B", "end", "claim").log
    assert [(event.seq, event.type) for event in log.events] == [(0, SPLICED), (1, USER), (2, SPLICED), (3, TURN_END)]
    assert log.visible == {1}
    assert log.turn == 2


def test_events_carry_the_time_of_the_clock() -> None:
    times = iter([5.0, 7.0])
    log = SessionLog(now_ms=lambda: next(times))
    log.receive("a", {})
    log.receive("b", {})
    assert [event.time_ms for event in log.events] == [5.0, 7.0]


@pytest.mark.parametrize(
    ("kind", "data", "says"),
    [
        (SPLICED, {"inserted": "A"}, "data.inserted must be a list of messages"),
        (SPLICED, {"inserted": ["A"]}, "data.inserted must be a list of messages"),
        (SPLICED, {"inserted": [{"content": None}]}, "data.inserted must be a list of messages"),
        (SPLICED, {"inserted": [], "removedCount": -1}, "removedCount is -1"),
        (SPLICED, {"inserted": [], "removedCount": True}, "removedCount is True"),
        (USER, {"content": 7}, "data must be a message"),
        (USER, {"message": {"content": 7}}, "data must be a message"),
        (CLAIMED, {}, "data.message must be a message"),
        (PRE_STEP, {}, "data.decision must be enter or reject"),
        (PRE_STEP, {"decision": {"kind": "enter", "messages": ["A"]}}, "data.decision must be enter or reject"),
        (REWOUND, {}, "data.seqs"),
        (REWOUND, {"seqs": [True]}, "data.seqs"),
        (REWOUND, {"seqs": [0]}, "rewind of event 0"),
        (REWOUND, {"from": 3}, "rewind of event 3"),
        (REWOUND, {"from": -1}, "rewind of event -1"),
    ],
)
def test_an_event_of_another_shape_is_one_clear_line(kind: str, data: dict[str, Any], says: str) -> None:
    log = SessionLog("s-1")
    with pytest.raises(InputError) as caught:
        log.receive(kind, data)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert log.events == []


def test_a_host_cannot_do_what_there_is_nothing_to_do_with() -> None:
    host = Host(SessionLog("s-1"))
    for operation, word in ((host.claim, "claim"), (host.cancel, "withdraw"), (lambda: host.replace("B"), "edit")):
        with pytest.raises(InputError, match=f"'s-1': nothing waits in the inbox at .* to {word}"):
            operation()


def test_every_switch_is_off_by_default() -> None:
    assert not any(dataclasses.asdict(Switches()).values())


# Random logs.


class AnyHost(RuleBasedStateMachine):
    """A host in any order that it allows, with two independent views of what the answer may be.

    `fate`: what has become of each text, each of which occurs once. `newest`, `shown`: the plain model, which
    goes forward (the code walks back) and keeps the pending text, if any, and the user messages on the surface.
    `explicit`: what was claimed, and how large the log and its surface were then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.fate: dict[str, str] = {}
        self.newest: str | None = None
        self.explicit: tuple[str, int, int] | None = None
        self.shown: list[tuple[int, str]] = []

    @initialize(durable=st.booleans())
    def start(self, durable: bool) -> None:
        self.durable = durable
        self.log = SessionLog()
        self.host = Host(self.log, durable)
        self.live = LiveQueries()
        self.log.listen(self.live.notice)

    def new(self) -> str:
        self.number += 1
        self.fate[f"text {self.number}"] = "waiting"
        return f"text {self.number}"

    def now_is(self, taken: Any, fate: str) -> str:
        """Note what has become of a message of the user; its text, or nothing for a plugin's."""
        text = str(taken["content"][0]["text"])
        if text not in self.fate:
            return ""
        self.fate[text] = fate
        return text

    @rule(count=st.integers(1, 3))
    def splice(self, count: int) -> None:
        texts = [self.new() for _ in range(count)]
        self.host.splice(*texts)
        self.newest = texts[-1]

    @rule()
    def plugin_splice(self) -> None:
        self.host.splice(message(f"plugin {self.number}", plugin="notes"))

    @precondition(lambda self: self.host.inbox)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        place = data.draw(st.integers(-len(self.host.inbox), len(self.host.inbox) - 1))
        self.now_is(self.host.cancel(place), "withdrawn")
        self.newest = None

    @precondition(lambda self: self.host.inbox)
    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        place = data.draw(st.integers(-1, len(self.host.inbox) - 1))
        self.now_is(self.host.replace(self.new(), place), "withdrawn")
        self.newest = None

    @precondition(lambda self: self.host.inbox)
    @rule()
    def claim(self) -> None:
        text = self.now_is(self.host.claim(), "claimed")
        if text:
            self.explicit = (text, *self.size())
        if self.durable:
            self.newest = None

    @rule(kind=st.sampled_from(["enter", "reject"]))
    def pre_step(self, kind: Any) -> None:
        if kind == "reject":
            self.explicit = None
        texts = [text for one in self.host.claimed if (text := self.now_is(one, "claimed"))]
        self.host.pre_step(kind)
        if kind == "reject":
            # The log cannot know of it; that is what clearing the live query and the end of the turn are for.
            self.fate.update(dict.fromkeys(texts, "rejected"))
        elif texts:
            self.explicit = (texts[-1], *self.size())

    def size(self) -> tuple[int, int]:
        return len(self.log.events), len(self.log.visible)

    def drop_claimed(self, fate: str) -> None:
        for one in self.host.claimed:
            self.now_is(one, fate)

    @precondition(lambda self: self.host.claimed)
    @rule()
    def append(self) -> None:
        texts = [self.now_is(one, "appended") for one in self.host.claimed]
        events = self.host.append_claimed()
        self.shown += [(event.seq, text) for event, text in zip(events, texts, strict=True) if text]
        self.newest = None

    @rule()
    def answer(self) -> None:
        self.host.assistant("an answer")
        self.host.tool("a result")

    @rule()
    def injected(self) -> None:
        self.host.inject("a snapshot", plugin="memory")
        self.newest = None

    @rule()
    def step(self) -> None:
        """What a host mostly does, in one go, so that random logs get beyond their first turn."""
        self.splice(1)
        self.claim()
        self.pre_step("enter")
        self.append()
        self.answer()

    @precondition(lambda self: self.shown)
    @rule(data=st.data())
    def rewind_a_message(self, data: st.DataObject) -> None:
        self.rewind_to(data.draw(st.sampled_from([seq for seq, _ in self.shown])))

    @precondition(lambda self: self.log.events)
    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        self.rewind_to(data.draw(st.integers(0, len(self.log.events) - 1)))

    def rewind_to(self, seq: int) -> None:
        self.host.rewind(seq)
        for one, text in self.shown:
            if one >= seq:
                self.fate[text] = "withdrawn"
        self.shown = [(one, text) for one, text in self.shown if one < seq]

    @rule()
    def end(self) -> None:
        self.drop_claimed("finished")
        self.host.end_turn()
        self.newest = None

    @invariant()
    def the_answer_is_the_plain_models(self) -> None:
        expected = self.newest or (self.shown[-1][1] if self.shown else "")
        assert query(self.log) == expected

    @invariant()
    def nothing_withdrawn_or_finished_answers(self) -> None:
        for answer in (query(self.log), step_query(self.log, self.live)):
            assert self.fate.get(answer) not in ("withdrawn", "finished")
            assert answer == "" or answer in self.fate  # and never a plugin's text

    @invariant()
    def legacy_is_the_newest_visible_message(self) -> None:
        assert query(self.log, LEGACY) == (self.shown[-1][1] if self.shown else "")

    @invariant()
    def what_is_claimed_is_what_the_step_asks_with(self) -> None:
        """Until the log or its surface has another size the step asks with what was claimed, whatever else waits."""
        if self.explicit and self.explicit[1:] != self.size():
            self.explicit = None
        assert self.live.query(self.log) == (self.explicit[0] if self.explicit else "")
        if self.explicit:
            assert self.fate[self.explicit[0]] == "claimed"
            assert step_query(self.log, self.live) == self.explicit[0]


AnyHost.TestCase.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
TestAnyHost = AnyHost.TestCase
