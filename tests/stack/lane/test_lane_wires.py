"""Four wire shapes, one value: hand-written values, random conversations, bad bodies, limits, usage."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lane_shapes import WIRES, body_of

from recallstack.systems.lane.request import (
    Call,
    Media,
    Message,
    Request,
    Result,
    Text,
    Tool,
    characters,
    message_ids,
    request_characters,
)
from recallstack.systems.lane.wires import parse

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TURNS = [
    ("user", "look at a and b"),
    ("assistant", "I will.", [("read", {"path": "a", "from": 1}), ("read", {"path": "b"})]),
    ("results", ["text of a", "text of b"]),
    ("user", "and now?"),
    ("assistant", "Done.", []),
    ("user", "谢谢 🙂"),
]
VALUE = Request(
    system="You are an agent.",
    messages=(
        Message("user", (Text("look at a and b"),)),
        Message(
            "assistant", (Text("I will."), Call(1, "read", '{"from":1,"path":"a"}'), Call(2, "read", '{"path":"b"}'))
        ),
        Message("tool", (Result(1, "text of a"),)),
        Message("tool", (Result(2, "text of b"),)),
        Message("user", (Text("and now?"),)),
        Message("assistant", (Text("Done."),)),
        Message("user", (Text("谢谢 🙂"),)),
    ),
    tools=(
        Tool("read", "Read a file.", '{"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"}'),
    ),
    max_tokens=4096,
)


@pytest.mark.parametrize("wire", WIRES)
def test_one_conversation_has_one_value(wire):
    body = body_of(wire, "You are an agent.", TURNS, [("read", "Read a file.", SCHEMA)], 4096)
    assert parse(wire, body) == VALUE


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SAID = TEXT.filter(bool)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.lists(st.tuples(st.sampled_from(["read", "write"]), st.dictionaries(TEXT, JSON, max_size=3)), max_size=3)


@st.composite
def conversations(draw):
    """Turns, and the messages that they are: built from the draw, not by the parsers."""
    turns, messages, number = [("user", draw(SAID))], [], 0
    messages.append(Message("user", (Text(turns[0][1]),)))
    for _ in range(draw(st.integers(0, 4))):
        text, calls = draw(TEXT), draw(CALLS)
        if not text and not calls:
            text = "."
        turns.append(("assistant", text, calls))
        parts = [Text(text)] if text else []
        first = number + 1
        for name, arguments in calls:
            number += 1
            written = json.dumps(arguments, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
            parts.append(Call(number, name, written))
        messages.append(Message("assistant", tuple(parts)))
        if calls:
            answers = [draw(TEXT) for _ in calls]
            turns.append(("results", answers))
            messages += [Message("tool", (Result(first + i, text),)) for i, text in enumerate(answers)]
        for said in draw(st.lists(SAID, min_size=0 if calls else 1, max_size=1)):
            turns.append(("user", said))
            messages.append(Message("user", (Text(said),)))
    return turns, tuple(messages)


@given(drawn=conversations(), system=TEXT, limit=st.integers(1, 2**40))
def test_any_conversation_has_one_value_on_all_wires(drawn, system, limit):
    turns, messages = drawn
    expected = Request(system=system, messages=messages, max_tokens=limit)
    for wire in WIRES:
        assert parse(wire, body_of(wire, system, turns, limit=limit)) == expected, wire


def test_gemini_reads_snake_case_and_leaves_arguments_alone():
    body = {
        "system_instruction": {"parts": [{"text": "s"}]},
        "contents": [
            {"role": "model", "parts": [{"function_call": {"name": "f_g", "args": {"snake_key": {"in_ner": 1}}}}]},
            {"role": "user", "parts": [{"function_response": {"name": "f_g", "response": {"a_b": 2}}}]},
            {"parts": [{"inline_data": {"mime_type": "image/png", "data": "AAAA"}}, {"text": "see"}]},
        ],
        "tools": [{"google_search": {}}],
        "generation_config": {"max_output_tokens": 7},
    }
    assert parse("gemini", json.dumps(body).encode()) == Request(
        system="s",
        messages=(
            Message("assistant", (Call(1, "f_g", '{"snake_key":{"in_ner":1}}'),)),
            Message("tool", (Result(1, '{"a_b":2}'),)),
            Message("user", (Media("AAAA"), Text("see"))),
        ),
        tools=(Tool("googleSearch"),),
        max_tokens=7,
    )


def test_gemini_answers_meet_calls_by_id_where_there_are_ids():
    call = {"name": "f", "args": {}}
    answer = {"name": "f", "response": {"output": "y"}}
    body = {
        "contents": [
            {"role": "model", "parts": [{"functionCall": call | {"id": i}} for i in "ab"]},
            {"role": "user", "parts": [{"functionResponse": answer | {"id": i}} for i in "ba"]},
        ]
    }
    results = [m.parts[0].number for m in parse("gemini", json.dumps(body).encode()).messages[1:]]
    assert results == [2, 1]


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (
            "openai-chat",
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}]},
        ),
        ("openai-responses", {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "u"}]}]}),
        (
            "anthropic",
            {
                "max_tokens": 1,
                "messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "u"}}]}],
            },
        ),
        ("gemini", {"contents": [{"parts": [{"fileData": {"fileUri": "u"}}]}]}),
    ],
)
def test_an_image_is_the_same_on_all_wires(wire, body):
    assert parse(wire, json.dumps(body).encode()).messages == (Message("user", (Media("u"),)),)


def test_older_functions_and_developer_texts_of_chat():
    body = {
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "one"}]},
            {"role": "user", "content": "q"},
            {"role": "system", "content": "two"},
            {"role": "assistant", "content": None, "refusal": "no"},
        ],
        "functions": [{"name": "f"}],
    }
    value = parse("openai-chat", json.dumps(body).encode())
    assert (value.system, [t.name for t in value.tools]) == ("one\ntwo", ["f"])
    assert value.messages[1] == Message("assistant", (Text("no"),))


def test_custom_calls_keep_what_the_model_wrote():
    chat = [
        {
            "role": "assistant",
            "tool_calls": [{"id": "x", "type": "custom", "custom": {"name": "sh", "input": "ls  -l"}}],
        },
        {"role": "tool", "tool_call_id": "x", "content": "a"},
    ]
    items = [
        {"type": "custom_tool_call", "call_id": "x", "name": "sh", "input": "ls  -l"},
        {"type": "custom_tool_call_output", "call_id": "x", "output": "a"},
    ]
    expected = (Message("assistant", (Call(1, "sh", "ls  -l"),)), Message("tool", (Result(1, "a"),)))
    assert parse("openai-chat", json.dumps({"messages": chat}).encode()).messages == expected
    assert parse("openai-responses", json.dumps({"input": items}).encode()).messages == expected


@pytest.mark.parametrize("written", ["{half", '{"a": "\\ud800"}'])
def test_arguments_that_are_no_json_stay_as_written(written):
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": written}}
    body = json.dumps({"messages": [{"role": "assistant", "tool_calls": [call]}]}).encode()
    value = parse("openai-chat", body)
    assert value.messages[0].parts == (Call(1, "f", written),)
    message_ids(value.messages)


def test_ids_are_of_role_and_content_and_number_repeats():
    user, said = Message("user", (Text("ok"),)), Message("assistant", (Text("ok"),))
    a, b, c, d = message_ids([user, said, user, user])
    assert len({a, b, c, d}) == 4
    assert (c, d) == (f"{a}#2", f"{a}#3")
    # Parts are not glued together: one text of two letters is not two texts of one.
    two, one = Message("user", (Text("a"), Text("b"))), Message("user", (Text("ab"),))
    assert message_ids([two])[0] != message_ids([one])[0]


def test_a_message_keeps_its_id_when_older_calls_are_dropped():
    whole = parse("openai-chat", body_of("openai-chat", "", [*TURNS[:3], *TURNS[1:]]))
    rest = parse("openai-chat", body_of("openai-chat", "", TURNS[3:]))
    assert set(message_ids(rest.messages)) <= set(message_ids(whole.messages))
    later = msgspec.structs.replace(VALUE.messages[1], parts=(Text("I will."), Call(3, "read", "{}")))
    assert message_ids([later]) == message_ids([Message("assistant", (Text("I will."), Call(1, "read", "{}")))])


def test_characters_are_counted_by_hand():
    # "look at a and b" 15; "I will." 7, read 4 + {"from":1,"path":"a"} 21, read 4 + {"path":"b"} 12;
    # 9; 9; "and now?" 8; "Done." 5; "谢谢 🙂" 4 code points.
    assert characters(VALUE.messages) == 15 + 7 + 25 + 16 + 9 + 9 + 8 + 5 + 4
    # "You are an agent." 17; read 4, "Read a file." 12, the schema with no spaces 77.
    schema = '{"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"}'
    assert request_characters(VALUE) == 98 + 17 + 4 + 12 + len(schema)
    assert characters([Message("user", (Media("x" * 99),))]) == 6400


def test_a_call_id_that_is_used_again_means_the_latest_call():
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turn = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "x", "content": "a"}]
    body = json.dumps({"messages": [*turn, *turn, {"role": "tool", "tool_call_id": "y", "content": "b"}]}).encode()
    numbers = [m.parts[0].number for m in parse("openai-chat", body).messages]
    assert numbers == [1, 1, 2, 2, 0]


def test_what_stands_before_a_result_comes_before_it():
    anthropic = [
        {"type": "text", "text": "a"},
        {"type": "tool_result", "tool_use_id": "x", "content": "b"},
        {"type": "tool_result", "tool_use_id": "y"},
        {"type": "text", "text": "c"},
    ]
    gemini = [
        {"text": "a"},
        {"functionResponse": {"name": "f", "response": {"output": "b"}}},
        {"functionResponse": {"name": "f", "response": {"output": ""}}},
        {"text": "c"},
    ]
    expected = (
        Message("user", (Text("a"),)),
        Message("tool", (Result(0, "b"),)),
        Message("tool", (Result(0, ""),)),
        Message("user", (Text("c"),)),
    )
    body = {"max_tokens": 1, "messages": [{"role": "user", "content": anthropic}]}
    assert parse("anthropic", json.dumps(body).encode()).messages == expected
    assert parse("gemini", json.dumps({"contents": [{"parts": gemini}]}).encode()).messages == expected
