"""Where an MCP server's tools take their arguments and keep their hits, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from recallbench.systems.faults import Fault
from recallbench.systems.mcp_shape import Shape, Tool, rows_of, saved_id, shape_of, value_of
from recallbench.systems.settings import McpSettings

SEARCH = Tool("memory_search", ("query", "top_k"), frozenset({"query"}))
SAVE = Tool("memory_save", ("content", "tags"), frozenset({"content"}))


def test_usual_names_are_found() -> None:
    assert shape_of([SEARCH, SAVE], McpSettings()) == Shape("memory_search", "query", "top_k")
    saving = McpSettings(save_tool="memory_save")
    assert shape_of([SEARCH, SAVE], saving) == Shape("memory_search", "query", "top_k", "memory_save", "content")
    odd = Tool("recall", ("what",), frozenset({"what"}))  # one required argument can only be the query
    assert shape_of([odd, SAVE], McpSettings()) == Shape("recall", "what", "")


def test_settings_go_before_what_is_usual() -> None:
    tool = Tool("memory_search", ("query", "text", "limit", "k"), frozenset({"text"}))
    settings = McpSettings(query_argument="text", top_k_argument="k")
    assert shape_of([tool], settings) == Shape("memory_search", "text", "k")
    assert shape_of([tool], McpSettings(query_argument="text", top_k_argument="-")).limit == ""


@pytest.mark.parametrize(
    ("tools", "settings", "said"),
    [
        ([SAVE], {}, "no tool that is named as a search; set search_tool to one of memory_save"),
        ([SEARCH, Tool("web_search", ())], {}, "several tools that may be the search: memory_search, web_search"),
        (
            [Tool("search", ("a", "b"), frozenset("ab"))],
            {},
            "a tool search with the arguments a, b; set query_argument",
        ),
        (
            [Tool("search", ("query", "user"), frozenset({"query", "user"}))],
            {},
            "a tool search that also requires user; give them in arguments",
        ),
        (
            [SEARCH, Tool("save", ("text", "user"), frozenset({"text", "user"}))],
            {"save_tool": "save"},
            "a tool save that also requires user; give them in save_arguments",
        ),
        ([SEARCH], {"save_tool": "save"}, "has no tool 'save' (save_tool); its tools: memory_search"),
        ([SEARCH, SAVE], {"save_tool": "memory_save", "reset_tool": "wipe"}, "has no tool 'wipe' (reset_tool)"),
    ],
)
def test_what_cannot_be_found_is_asked_for(tools: list[Tool], settings: dict[str, Any], said: str) -> None:
    with pytest.raises(Fault) as caught:
        shape_of(tools, McpSettings(**settings))
    assert said in str(caught.value)


def test_arguments_of_its_own_are_enough() -> None:
    tool = Tool("search", ("query", "user"), frozenset({"query", "user"}))
    assert shape_of([tool], McpSettings(arguments={"user": "me"})).query == "query"


HIT = {"id": "1", "text": "a", "score": 0.5}


@pytest.mark.parametrize(
    "value",
    [
        [HIT],
        {"results": [HIT]},
        {"result": {"memories": [HIT]}},
        {"count": 1, "hits": [HIT]},
        {"memories": [{"memory_id": "1", "content": "a", "similarity": 0.5}]},
        HIT,  # one hit, sent as itself
    ],
)
def test_usual_shapes_of_an_answer(value: Any) -> None:
    assert rows_of(value, McpSettings()) == [HIT]


def test_texts_alone() -> None:
    assert rows_of(["a", "b"], McpSettings()) == [{"text": "a"}, {"text": "b"}]
    assert rows_of({"result": "a and b"}, McpSettings()) == [{"text": "a and b"}]
    assert rows_of("  ", McpSettings()) == []
    assert rows_of([], McpSettings()) == []


def test_paths_go_before_what_is_usual() -> None:
    value = {"data": {"rows": [{"memory": {"id": 7, "body": {"text": "a"}}, "rank": 1.5}]}}
    settings = McpSettings(results="data.rows", id_field="memory.id", text_field="memory.body.text", score_field="rank")
    assert rows_of(value, settings) == [{"id": 7, "text": "a", "score": 1.5}]
    assert rows_of([HIT], McpSettings(id_field="-", score_field="-")) == [{"id": None, "text": "a", "score": None}]


@pytest.mark.parametrize(
    ("value", "settings", "said"),
    [
        ({"count": 3}, {}, "answered an object with count where a list of hits was looked for; set results"),
        (3, {}, "answered a number where a list of hits was looked for"),
        ({"a": {"b": 1}}, {"results": "a.c"}, "answered an object with b without 'c' (results is 'a.c')"),
        ([HIT], {"id_field": "key"}, "without 'key' (hits[0]: id_field is 'key')"),
    ],
)
def test_another_shape_is_said_by_its_names(value: Any, settings: dict[str, str], said: str) -> None:
    with pytest.raises(Fault) as caught:
        rows_of(value, McpSettings(**settings))
    assert said in str(caught.value)


def test_an_answer_is_its_structure_or_else_its_texts() -> None:
    assert value_of({"a": 1}, ["{}"]) == {"a": 1}
    assert value_of(None, ['{"a": 1}']) == {"a": 1}
    assert value_of(None, ['{"a": 1}', "plain"]) == [{"a": 1}, "plain"]
    assert value_of(None, ["plain"]) == "plain"


def test_the_id_of_what_was_saved() -> None:
    assert saved_id({"id": "m1"}, McpSettings()) == "m1"
    assert saved_id({"result": {"memory_id": 7}}, McpSettings()) == "7"
    assert saved_id("saved", McpSettings()) is None
    assert saved_id({"a": {"b": "x"}}, McpSettings(saved_id="a.b")) == "x"
    with pytest.raises(Fault, match="true or false at saved_id"):
        saved_id({"a": True}, McpSettings(saved_id="a"))
