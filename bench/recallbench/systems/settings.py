"""How a system under test is asked: every key of a `[systems.NAME]` table, with its default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from recallstack.errors import InputError
from recallstack.systems.preretrieval.contract import TOP_K_LIMIT

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Kind = Literal["recipe", "stdio", "http", "mcp", "mcp+http", "run"]
KINDS: tuple[Kind, ...] = ("recipe", "stdio", "http", "mcp", "mcp+http", "run")


class Asking(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every system that is asked live has.

    timeout_s: for one question. repeats: how often each question is asked; the first answer counts, the others
    measure flakiness. warm_up: questions asked before the first one whose time counts. concurrency: questions under
    way at once. restarts: how often, in the whole run, a system that died or hung is started again.
    id_map: a JSON or CSV file of the system's ids and the set's.
    """

    timeout_s: Seconds = 30.0
    repeats: Positive = 1
    warm_up: Count = 1
    concurrency: Annotated[int, Meta(ge=1, le=256)] = 1
    restarts: Count = 3
    id_map: str = ""


class Indexing(Asking, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A system that says hello, and can be given memories.

    start_timeout_s: for hello. index_timeout_s: for each block of memories, or each saved one.
    """

    start_timeout_s: Seconds = 60.0
    index_timeout_s: Seconds = 600.0


class StdioSettings(Indexing, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`stdio:`, a command that is started.

    op: what questions are asked with. block: memories in one message. stdio_fd: the descriptor on which the system
    answers (1, or 3 to 9; not on Windows). stop_s: how long it may take to leave when its input is closed, and again
    after SIGTERM. max_bytes: longest line that is read. folder: where it runs. env: variables beside our own;
    `env:NAME` takes a value from our environment. They are never written.
    """

    op: Literal["search", "inject"] = "search"
    block: Positive = 200
    stdio_fd: Annotated[int, Meta(ge=1, le=9)] = 1
    stop_s: Seconds = 2.0
    max_bytes: Positive = 4_000_000
    folder: str = ""
    env: Mapping[str, str] = msgspec.field(default_factory=dict)


class HttpSettings(Asking, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`http:`. headers: `env:NAME` takes a value from the environment; they are never written.

    sources: the namespaces that are asked; `{corpus}` stands for the corpus of the question.
    max_bytes: largest answer that is read.
    """

    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    sources: tuple[str, ...] = ()
    max_bytes: Positive = 4_000_000


class Tools(Indexing, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Tools and arguments of an MCP server; an empty name is found out where only one can be meant.

    search_tool, query_argument, top_k_argument: of the search; `-` for a search that takes no limit (its answer is
    then cut). arguments: further ones of the search. results: the path to the list of hits, such as
    `result.memories`. id_field, text_field, score_field: names in a hit, or paths; `-` where there is none.
    save_tool: takes one memory a call; empty: the server has its memories already. save_text_argument,
    save_id_argument, save_arguments: of the save tool. saved_id: the path to the id in its answer.
    reset_tool: forgets all memories; empty: each corpus gets a new process.
    """

    search_tool: str = ""
    query_argument: str = ""
    top_k_argument: str = ""
    arguments: Mapping[str, Any] = msgspec.field(default_factory=dict)
    results: str = ""
    id_field: str = ""
    text_field: str = ""
    score_field: str = ""
    save_tool: str = ""
    save_text_argument: str = ""
    save_id_argument: str = ""
    save_arguments: Mapping[str, Any] = msgspec.field(default_factory=dict)
    saved_id: str = ""
    reset_tool: str = ""


class McpSettings(Tools, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`mcp:`, a server that is started. stop_s, max_bytes, folder, env: as of `stdio:`."""

    stop_s: Seconds = 2.0
    max_bytes: Positive = 4_000_000
    folder: str = ""
    env: Mapping[str, str] = msgspec.field(default_factory=dict)


class McpHttpSettings(Tools, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`mcp+http:`, a server that runs already. headers: as of `http:`."""

    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


class RunSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`run:`. missing: what a question without a line is: an error, or a question that nothing was found for."""

    id_map: str = ""
    missing: Literal["error", "empty"] = "error"


Settings = StdioSettings | HttpSettings | McpSettings | McpHttpSettings | RunSettings
_OF: Mapping[str, type[Settings]] = {
    "stdio": StdioSettings,
    "http": HttpSettings,
    "mcp": McpSettings,
    "mcp+http": McpHttpSettings,
    "run": RunSettings,
}


def keys_of(kind: Kind) -> tuple[str, ...]:
    """The keys that a system of this kind takes beside `spec`."""
    return _OF[kind].__struct_fields__ if kind in _OF else ()


def settings_of(kind: Kind, values: Mapping[str, Any], where: str) -> Settings:
    """Settings from plain values. Raises InputError, beginning with `where`, for an unknown key or a bad value."""
    known = keys_of(kind)
    for key in values:
        if key not in known:
            raise InputError(f"{where}: {kind}: takes no {key!r}; it takes {', '.join(known) or 'no settings'}")
    try:
        made = msgspec.convert(dict(values), _OF[kind])
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$.")
        raise InputError(f"{where}: {path.rstrip('`') or kind}: {what}") from None
    if isinstance(made, StdioSettings) and made.stdio_fd == 2:
        raise InputError(f"{where}: stdio_fd: 2 is the system's log; use 1, or 3 to 9")
    return made


def public_values(settings: Settings) -> dict[str, Any]:
    """What the answers can depend on, for a manifest: no header, no environment, no path of this machine."""
    private = ("headers", "env", "folder", "id_map")
    return {key: value for key, value in msgspec.to_builtins(settings).items() if key not in private}


def check_depth(kind: Kind, depth: int) -> None:
    """Raises InputError for a depth that a way to ask cannot express."""
    if kind == "http" and depth > TOP_K_LIMIT:
        raise InputError(f"http: asks for at most {TOP_K_LIMIT} hits (contract v0.2), not {depth}; lower --depth")
