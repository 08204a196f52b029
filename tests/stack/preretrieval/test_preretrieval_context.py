"""What is sent to the knowledge base: cuts at whole characters, bounds of the conversation, the head of a task.

The bounds are those of the design (scenarios, pre-retrieval): 2,000 characters in all, 800 an entry, 200 a tool
entry, 800 of the task in mode rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recallstack.ranking.text import clean, cut
from recallstack.systems.preretrieval.context import fold, rule_query
from recallstack.systems.preretrieval.contract import ContextEntry
from recallstack.systems.preretrieval.log import Event, message_text
from recallstack.systems.preretrieval.switches import Switches

CHARACTERS = {
    "letter": "a",
    "newline": "\n",
    "ideograph": "库",
    "beyond the BMP": "𠮷",
    "accent": "e\u0301",
    "two accents": "o\u0302\u0323",
    "enclosing mark": "1\ufe0f\u20e3",
    "spacing vowel sign": "क\u093f",
    "variation selector": "❤\ufe0f",
    "skin tone": "👍🏽",
    "family": "👩\u200d👩\u200d👧",
    "profession with a skin tone": "👩🏿\u200d🚀",
    "flag": "🇩🇪",
    "another flag": "🇫🇷",
    "flag of a region": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
}
"""One visible character each, in one or more code points."""
ANY_TEXT = st.text(st.characters(exclude_categories=()))
"""Lone surrogates too, as a JavaScript host can hand them over."""
WHOLE = st.lists(st.sampled_from(list(CHARACTERS.values())))


def whole_head(characters: list[str], limit: int) -> str:
    """The model of `cut`: characters are taken while they fit."""
    out = ""
    for one in characters:
        if len(out) + len(one) > limit:
            break
        out += one
    return out


@given(WHOLE, st.integers(-2, 40))
def test_cut_keeps_the_most_whole_characters(characters: list[str], limit: int) -> None:
    assert cut("".join(characters), limit) == whole_head(characters, limit)


@pytest.mark.parametrize("character", CHARACTERS.values(), ids=CHARACTERS.keys())
def test_cut_never_leaves_a_part_of_a_character(character: str) -> None:
    text = "x" + character + character + "y"
    ends = {1, 1 + len(character), 1 + 2 * len(character), len(text)}
    for limit in range(1, len(text) + 1):
        assert cut(text, limit) == text[: max(end for end in ends if end <= limit)]


@given(ANY_TEXT, st.integers(-2, 40))
@example("\ud83d\ude00", 1)  # one emoji as two halves: one character
@example("a\ud83d", 5)
@example("\u0301\u0301\u0301", 2)  # nothing but accents: no whole character fits
def test_cut_is_a_prefix_that_fits_and_can_be_encoded(text: str, limit: int) -> None:
    kept = cut(text, limit)
    assert len(kept) <= max(0, limit)
    assert clean(text).startswith(kept)
    assert kept.encode("utf-8").decode("utf-8") == kept
    assert cut(kept, limit) == kept


@given(ANY_TEXT)
@example("\ud83d\ude00\ude00\ud83d")
def test_clean_joins_halves_and_replaces_lone_ones(text: str) -> None:
    # JSON escapes speak UTF-16 as well, so that its reader joins the halves of a pair.
    assert clean(text) == re.sub("[\ud800-\udfff]", "\ufffd", json.loads(json.dumps(text)))


def message(role: str, text: str, **more: Any) -> Event:
    kinds = {"user": "user/message", "assistant": "assistant/message", "tool": "tool/result"}
    return Event(kinds[role], {"text": text, **more})


OWN = {"kind": "plugin", "plugin": "pre-retrieval"}


def test_the_conversation_is_sent_oldest_first_and_pending_messages_last() -> None:
    log = [
        Event("turn/start", {"turn": 1}),
        message("user", " which port \n"),
        message("assistant", "I look it up"),
        message("tool", "5432", name="grep"),
        message("user", "what the plugin found", source=OWN),
        message("user", "what another plugin found", source={"kind": "plugin", "plugin": "other"}),
        message("user", "mine", source={"kind": "user"}),
        message("assistant", "  "),
        Event("turn/end", {"turn": 1}),
    ]
    assert fold(log, ["and the host", " ", "please"]) == (
        ContextEntry("user", "which port"),
        ContextEntry("assistant", "I look it up"),
        ContextEntry("tool", "5432", "grep"),
        ContextEntry("user", "mine"),
        ContextEntry("user", "and the host"),
        ContextEntry("user", "please"),
    )


def test_nothing_said_is_nothing_sent() -> None:
    assert fold([], []) == ()
    assert fold([Event("turn/start", {"turn": 1}), message("user", " ")], ["", " \n"]) == ()


def test_bounds_of_an_entry_a_tool_result_and_the_whole() -> None:
    # 800 + 200 + 800 are 1,800 of 2,000; the fourth newest has 200 left, the fifth nothing.
    log = [
        message("user", "e" * 10),
        message("assistant", "d" * 801),
        message("user", "c" * 801),
        message("tool", "b" * 201),
    ]
    found = fold(log, ["a" * 801])
    assert [one.text for one in found] == ["d" * 200, "c" * 800, "b" * 200, "a" * 800]


def test_entries_at_their_bounds_stay_whole() -> None:
    log = [message("user", "c" * 200), message("assistant", "b" * 800), message("tool", "t" * 200)]
    assert [len(one.text) for one in fold(log, ["a" * 800])] == [200, 800, 200, 800]
    assert [len(one.text) for one in fold([], ["b" * 5, "a" * 5], limit=10)] == [5, 5]
    assert [one.text for one in fold([], ["b" * 5, "a" * 5], limit=5)] == ["a" * 5]


def test_nothing_older_comes_behind_a_cut_entry() -> None:
    # Three characters are left and the accented one does not fit: one stays free, and "z" must not take it.
    log = [message("user", "z"), message("assistant", "ab" + CHARACTERS["accent"])]
    assert fold(log, ["1234567"], limit=10) == (ContextEntry("assistant", "ab"), ContextEntry("user", "1234567"))


def test_a_character_that_does_not_fit_ends_the_context() -> None:
    # Two characters are left for the entry before, whose first character takes five: nothing older comes instead.
    log = [message("user", "old"), message("assistant", CHARACTERS["family"])]
    assert fold(log, ["12345678"], limit=10) == (ContextEntry("user", "12345678"),)


CONVERSATION = [message("tool", "t" * 900), message("user", "u" * 900, source=OWN), message("user", "q" * 900)]


@pytest.mark.parametrize(
    ("switch", "lengths"),
    [
        (None, [200, 800, 800]),  # the tool result, the user's message, the pending one; 1,800 in all
        ("tool_entry_ignored", [400, 800, 800]),  # what is left of 2,000
        ("context_entry_ignored", [200, 900, 900]),
        ("own_injection_in_context", [400, 800, 800]),  # the injection in place of the tool result
    ],
)
def test_bounds_and_their_mutants(switch: str | None, lengths: list[int]) -> None:
    switches = Switches(**({switch: True} if switch else {}))
    assert [len(one.text) for one in fold(CONVERSATION, ["p" * 900], switches=switches)] == lengths


def test_the_bound_of_the_whole_and_its_mutant() -> None:
    pending = ["a" * 700, "b" * 700, "c" * 700]
    assert [len(one.text) for one in fold([], pending)] == [600, 700, 700]
    assert [len(one.text) for one in fold([], pending, switches=Switches(context_total_ignored=True))] == [700] * 3


TURNS = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.integers(1, 900).map(lambda n: "x" * n)), max_size=8
)


@given(TURNS, st.lists(st.integers(1, 900).map(lambda n: "y" * n), max_size=3), st.integers(1, 2500))
def test_fold_against_a_plain_model(turns: list[tuple[str, str]], pending: list[str], limit: int) -> None:
    # Letters only, so that a cut is a slice.
    room, expected = limit, []
    for role, text in reversed([*turns, *(("user", text) for text in pending)]):
        bounded = text[: 200 if role == "tool" else 800]
        if room:
            expected.insert(0, (role, bounded[:room]))
            room -= len(bounded[:room])
    found = fold([message(role, text) for role, text in turns], pending, limit)
    assert [(one.role, one.text) for one in found] == expected


@given(st.lists(ANY_TEXT, max_size=5), st.lists(WHOLE.map("".join), max_size=3), st.integers(1, 60))
def test_fold_of_any_text_fits_and_quotes(said: list[str], pending: list[str], limit: int) -> None:
    found = fold([message("user", text) for text in said], pending, limit)
    assert sum(len(one.text) for one in found) <= limit
    texts = [text for text in (clean(one.strip()) for one in [*said, *pending]) if text]
    for entry, text in zip(reversed(found), reversed(texts), strict=False):
        assert text.startswith(entry.text)
        assert entry.text
    for older in found[1:]:  # only the oldest entry may be cut, short of the bounds of an entry
        assert older.text in texts


def test_a_tool_name_is_sent_where_it_can_be() -> None:
    log = [message("tool", "a", name="x" * 300), message("tool", "b", name=7), message("user", "c", name="me")]
    assert fold(log, []) == (ContextEntry("tool", "a", "x" * 200), ContextEntry("tool", "b"), ContextEntry("user", "c"))
    assert fold([message("tool", "a", name="\ud83d\ude00\ud83d")], [])[0].name == "😀\ufffd"


def test_rule_sends_the_head_of_the_task() -> None:
    assert rule_query([" restart the gateway", "and say why \n"]) == "restart the gateway\nand say why"
    assert rule_query(["a" * 801]) == "a" * 800
    assert rule_query(["ab" + CHARACTERS["flag"]], 3) == "ab"
    assert rule_query([" ", ""]) == ""


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"text": " a \n"}, "a"),
        ({"content": "a"}, "a"),
        ({"message": "a"}, "a"),
        (
            {"message": {"content": [{"type": "text", "text": "a"}, {"type": "image", "data": ""}, {"text": "b"}]}},
            "a\nb",
        ),
        ({"content": [{"type": "tool-call", "text": "no"}, "no", None]}, ""),
        ({"content": None}, ""),
        ({"text": 7}, ""),
        ({"message": None}, ""),
        ({}, ""),
    ],
)
def test_text_of_a_message_whatever_the_host_wrote(data: Mapping[str, Any], text: str) -> None:
    assert message_text(data) == text
