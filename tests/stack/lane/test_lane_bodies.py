"""Bodies of the four wires: bad ones give one line, a limit is set without touching the rest, usage is read."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lane_shapes import WIRES, body_of

from recallstack.errors import InputError
from recallstack.systems.lane.request import Request
from recallstack.systems.lane.wires import input_tokens, parse, set_limit

TURNS = [("user", "read a"), ("assistant", "I will.", [("read", {"path": "a"})]), ("results", ["text of a"])]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)

BAD = [
    ("openai-chat", b"", "the body is empty"),
    ("openai-chat", b"{", "not valid JSON"),
    ("openai-chat", b"[]", "Expected `object`"),
    ("openai-chat", b"{}", "`messages`"),
    ("openai-chat", b'{"messages": []}', "messages: Expected `array` of length >= 1"),
    ("openai-chat", b'{"messages": [{"role": "user", "content": 3}]}', "messages[0].content"),
    ("openai-chat", b'{"messages": [{"role": "robot", "content": "x"}]}', "messages[0].role"),
    ("openai-chat", b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": 0}', "max_tokens must be"),
    ("openai-chat", b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": true}', "max_tokens must be"),
    ("openai-chat", b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": 1.5}', "max_tokens must be"),
    ("openai-responses", b'{"input": "x", "previous_response_id": "r"}', "previous_response_id keeps part"),
    ("openai-responses", b'{"input": [{"type": "odd"}]}', "input[0].type"),
    ("anthropic", b'{"messages": [{"role": "user", "content": "x"}]}', "`max_tokens`"),
    ("anthropic", b'{"max_tokens": 1, "messages": [{"role": "system", "content": "x"}]}', "messages[0].role"),
    ("gemini", b'{"contents": [{"parts": [{"executableCode": {}}]}]}', "contents[0].parts"),
    ("gemini", b'{"contents": [{"parts": [{"text": "x"}]}], "cachedContent": "c"}', "cachedContent keeps part"),
    ("gemini", b'{"contents": [{"parts": [{"text": "x"}]}], "generationConfig": {"maxOutputTokens": "9"}}', "must be"),
    ("gemini", b'{"contents":' + b"[" * 100_000, "nested too deeply"),
    # The decoder reads this one, the parser does not.
    ("gemini", b'{"x":' + b"[" * 700 + b"]" * 700 + b"}", "nested too deeply"),
    ("telnet", b"{}", "wire is 'telnet'; use one of openai-chat, openai-responses, anthropic, gemini"),
]


@pytest.mark.parametrize(("wire", "body", "says"), BAD)
def test_a_bad_body_gives_one_clear_line(wire, body, says):
    with pytest.raises(InputError) as caught:
        parse(wire, body)
    line = str(caught.value)
    assert says in line
    assert "\n" not in line
    assert wire in line


@given(
    wire=st.sampled_from(WIRES),
    key=st.sampled_from(["messages", "input", "contents", "tools", "system", "max_tokens", "generationConfig"]),
    value=JSON,
    base=st.booleans(),
    raw=st.binary(max_size=20),
)
def test_any_body_is_read_or_refused(wire, key, value, base, raw):
    fields = json.loads(body_of(wire, "s", TURNS)) if base else {}
    for body in (json.dumps(fields | {key: value}).encode(), raw):
        with contextlib.suppress(InputError):
            assert isinstance(parse(wire, body), Request)


def test_a_limit_is_set_and_no_other_byte_is_touched():
    body = b'{ "messages":[ {"role":"user", "content":"\\u4f60 1.50"} ],"max_tokens": 9, "x": 1.500e3 }'
    changed = set_limit("openai-chat", body, lambda value: value - 4)
    assert changed == b'{"messages":[ {"role":"user", "content":"\\u4f60 1.50"} ],"max_tokens":5,"x":1.500e3}'
    assert set_limit("openai-chat", body, lambda value: value) == body


@pytest.mark.parametrize("config", ["generationConfig", "generation_config"])
@pytest.mark.parametrize("name", ["maxOutputTokens", "max_output_tokens"])
def test_a_limit_inside_geminis_settings(config, name):
    body = json.dumps({"contents": [{"parts": [{"text": "x"}]}], config: {"topP": 0.5, name: 9}}).encode()
    assert json.loads(set_limit("gemini", body, lambda _: 3))[config] == {"topP": 0.5, name: 3}


def test_both_limits_of_chat_are_lowered_and_the_higher_counts():
    body = b'{"messages":[{"role":"user","content":"x"}],"max_tokens":50,"max_completion_tokens":8}'
    assert parse("openai-chat", body).max_tokens == 50
    lowered = json.loads(set_limit("openai-chat", body, lambda value: min(value, 20)))
    assert (lowered["max_tokens"], lowered["max_completion_tokens"]) == (20, 8)


@pytest.mark.parametrize(
    ("wire", "usage"),
    [
        ("openai-chat", {"usage": {"prompt_tokens": 110, "prompt_tokens_details": {"cached_tokens": 90}}}),
        ("openai-responses", {"usage": {"input_tokens": 110, "input_tokens_details": {"cached_tokens": 90}}}),
        (
            "anthropic",
            {"usage": {"input_tokens": 10, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 70}},
        ),
        ("gemini", {"usageMetadata": {"promptTokenCount": 110, "cachedContentTokenCount": 90}}),
    ],
)
def test_input_tokens_are_the_same_however_a_wire_counts_its_cache(wire, usage):
    assert input_tokens(wire, json.dumps(usage).encode()) == 110
    assert input_tokens(wire, b'{"error": {"message": "too long"}}') is None
    with pytest.raises(InputError, match="response"):
        input_tokens(wire, json.dumps(usage).replace("110", '"x"').replace("10,", '"x",').encode())
