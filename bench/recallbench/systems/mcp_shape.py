"""Where an MCP server's search takes its query, and where its hits are: by settings, else where one can be meant."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recallbench.systems.faults import Fault, one_line
from recallbench.systems.settings import McpHttpSettings, McpSettings
from recallbench.systems.wire import kind

SEARCHES = ("search", "recall", "retrieve", "query", "find")
QUERIES = ("query", "q", "question", "text", "search", "search_query", "prompt", "input")
LIMITS = (
    "top_k",
    "topK",
    "k",
    "limit",
    "n",
    "max_results",
    "maxResults",
    "num_results",
    "n_results",
    "count",
    "size",
)
LISTS = ("results", "hits", "memories", "result", "items", "documents", "matches", "data")
IDS = ("id", "memory_id", "memoryId", "doc_id", "uuid", "key", "_id")
TEXTS = ("text", "content", "memory", "snippet", "body", "document", "value")
SCORES = ("score", "similarity", "relevance")
NOTHING = "-"
"""A setting that says that there is no such argument or field."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of the server. arguments: the properties of its input; required: those that it must be given."""

    name: str
    arguments: tuple[str, ...]
    required: frozenset[str] = frozenset()

    @classmethod
    def of(cls, name: str, schema: Mapping[str, Any]) -> Tool:
        properties, required = schema.get("properties"), schema.get("required")
        return cls(
            name,
            tuple(properties) if isinstance(properties, dict) else (),
            frozenset(required) if isinstance(required, list) else frozenset(),
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """How a server is asked. limit: empty where its search takes none."""

    search: str
    query: str
    limit: str
    save: str = ""
    save_text: str = ""


def shape_of(tools: Sequence[Tool], settings: McpSettings | McpHttpSettings) -> Shape:
    """The tools and arguments to use. Raises Fault that says which setting is needed."""
    search = _search_tool(tools, settings.search_tool)
    query = _argument(search, settings.query_argument, QUERIES, "query_argument")
    limit = ""
    if settings.top_k_argument != NOTHING:
        known = [name for name in LIMITS if name in search.arguments]
        limit = settings.top_k_argument or (known[0] if known else "")
        _has(search, limit, "top_k_argument")
    missing = search.required - {query, limit, *settings.arguments}
    if missing:
        raise Fault(f"has a tool {search.name} that also requires {_listed(sorted(missing))}; give them in arguments")
    if not settings.save_tool:
        return Shape(search.name, query, limit)
    save = _named(tools, settings.save_tool, "save_tool")
    text = _argument(save, settings.save_text_argument, TEXTS, "save_text_argument")
    _has(save, settings.save_id_argument, "save_id_argument")
    missing = save.required - {text, settings.save_id_argument, *settings.save_arguments}
    if missing:
        raise Fault(
            f"has a tool {save.name} that also requires {_listed(sorted(missing))}; give them in save_arguments"
        )
    if settings.reset_tool:
        _named(tools, settings.reset_tool, "reset_tool")
    return Shape(search.name, query, limit, save.name, text)


def _search_tool(tools: Sequence[Tool], wanted: str) -> Tool:
    if wanted:
        return _named(tools, wanted, "search_tool")
    for word in SEARCHES:
        found = [tool for tool in tools if word in tool.name.lower()]
        if len(found) == 1:
            return found[0]
        if found:
            raise Fault(
                f"has several tools that may be the search: {_listed([t.name for t in found])}; set search_tool"
            )
    raise Fault(f"has no tool that is named as a search; set search_tool to one of {_listed([t.name for t in tools])}")


def _named(tools: Sequence[Tool], name: str, key: str) -> Tool:
    for tool in tools:
        if tool.name == name:
            return tool
    raise Fault(f"has no tool {name!r} ({key}); its tools: {_listed([tool.name for tool in tools])}")


def _argument(tool: Tool, wanted: str, usual: Sequence[str], key: str) -> str:
    if wanted:
        _has(tool, wanted, key)
        return wanted
    found = [name for name in usual if name in tool.arguments]
    if not found and len(tool.required) == 1:
        found = list(tool.required)
    if not found:
        raise Fault(f"has a tool {tool.name} with the arguments {_listed(tool.arguments)}; set {key} to one of them")
    return found[0]


def _has(tool: Tool, name: str, key: str) -> None:
    if name and tool.arguments and name not in tool.arguments:
        raise Fault(f"has a tool {tool.name} without the argument {name!r} ({key}); it takes {_listed(tool.arguments)}")


def _listed(names: Sequence[str]) -> str:
    return one_line(", ".join(names), 300) or "none"


def value_of(structured: Any, texts: Sequence[str]) -> Any:
    """The answer of a tool as one value: its structured content, else its texts read as JSON, else its texts."""
    if structured is not None:
        return structured
    read = [_json(text) for text in texts]
    return read[0] if len(read) == 1 else read


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def rows_of(value: Any, settings: McpSettings | McpHttpSettings) -> list[Any]:
    """The hits in the answer of the search, as rows of the protocol. Raises Fault where no list can be found."""
    found = at_path(value, settings.results, "results") if settings.results else _list(value)
    if isinstance(found, str):
        found = [found] if found.strip() else []
    if isinstance(found, dict) and any(isinstance(found.get(name), (str, int)) for name in (*IDS, *TEXTS)):
        found = [found]  # a list of one hit, which servers send as that hit
    if not isinstance(found, list):
        raise Fault(f"answered {_seen(value)} where a list of hits was looked for; set results to the path of the list")
    return [_row(one, settings, f"hits[{place}]") for place, one in enumerate(found)]


def _list(value: Any, depth: int = 2) -> Any:
    """The list in a value, at most two names deep."""
    if not isinstance(value, dict) or not depth:
        return value
    for name in LISTS:
        if name in value:
            found = _list(value[name], depth - 1)
            if isinstance(found, (list, str)):
                return found
    return value


def _row(one: Any, settings: McpSettings | McpHttpSettings, where: str) -> Any:
    if not isinstance(one, dict):
        return {"text": one} if isinstance(one, str) else one
    row = {
        "id": _field(one, settings.id_field, IDS, f"{where}: id_field"),
        "text": _field(one, settings.text_field, TEXTS, f"{where}: text_field"),
        "score": _field(one, settings.score_field, SCORES, f"{where}: score_field"),
    }
    if isinstance(row["text"], (dict, list)) and not settings.text_field:
        row["text"] = None
    return {**row, **({"source_ids": one["source_ids"]} if "source_ids" in one else {})}


def _field(one: Mapping[str, Any], wanted: str, usual: Sequence[str], what: str) -> Any:
    if wanted == NOTHING:
        return None
    if wanted:
        return at_path(one, wanted, what)
    return next((one[name] for name in usual if one.get(name) is not None), None)


def saved_id(value: Any, settings: McpSettings | McpHttpSettings) -> str | None:
    """The id that the server gave a saved memory, None where its answer names none."""
    found = at_path(value, settings.saved_id, "saved_id") if settings.saved_id else None
    if not settings.saved_id and isinstance(value, dict):
        inner = value.get("result")
        found = _field(inner if isinstance(inner, dict) else value, "", IDS, "")
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    if settings.saved_id and not isinstance(found, str):
        raise Fault(f"answered the save with {kind(found)} at saved_id; it must be an id")
    return found if isinstance(found, str) and found else None


def at_path(value: Any, path: str, key: str) -> Any:
    """What stands at `name.name.0`. Raises Fault, with the setting, where nothing does."""
    found = value
    for name in path.split("."):
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            raise Fault(f"answered {_seen(found)} without {name!r} ({key} is {path!r})")
    return found


def _seen(value: Any) -> str:
    """What came, by its names only: its texts are private."""
    if isinstance(value, dict):
        return f"an object with {_listed([one_line(name, 40) for name in value][:12])}"
    return kind(value)
