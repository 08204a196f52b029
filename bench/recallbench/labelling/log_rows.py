"""The rows of a log of past recalls: JSON Lines, or a table of an SQLite database."""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from recallbench.datasets import jsonl
from recallbench.datasets.model import Text
from recallbench.datasets.skips import Skips
from recallstack.errors import InputError

FIELDS = ("query", "returned", "used", "time", "session")
"""What a row may tell; only `query` and `returned` must be there. Other fields of the log are not looked at."""
_MAGIC = b"SQLite format 3\0"


class LoggedHit(msgspec.Struct, frozen=True):
    """One memory that was returned, with its text (`content` or `text`) where the log has it."""

    id: Text
    text: str = ""
    title: str = ""
    content: str = ""

    @property
    def words(self) -> str:
        return self.content or self.text


class Scope(msgspec.Struct, frozen=True):
    """What of a session a question keeps; other fields of it are not looked at."""

    agent_scope: str | None = None
    workspace_scope: str | None = None
    channel: str | None = None


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """One past recall. returned: ids, or hits with texts, best first. used: ids that went into an answer."""

    query: str
    returned: tuple[str | LoggedHit, ...]
    used: tuple[str, ...] = ()
    time: dt.datetime | None = None
    session: Scope = Scope()

    def hits(self) -> Iterator[LoggedHit]:
        """The returned memories, those without a text too."""
        return (LoggedHit(one) if isinstance(one, str) else one for one in self.returned)


def recalls(
    path: Path, skips: Skips, names: Mapping[str, str], table: str | None = None
) -> Iterator[tuple[str, Recall]]:
    """(where, row) of each recall of a log.

    names: what the log calls a field, for those of FIELDS that it calls otherwise. table: of an SQLite log; without
    it the only table there is. In a table `returned`, `used` and `session` are JSON. Raises InputError with file and
    line or row; with `skips` that allow it, bad rows are left out.
    """
    try:
        with path.open("rb") as file:
            is_database = file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    if table is not None and not is_database:
        raise InputError(f"{path}: --table is for SQLite logs, and this file is none")
    rows = _of_database(path, table, names, skips) if is_database else _of_lines(path, skips)
    for where, values in rows:
        try:
            yield where, _recall(values, names, where)
        except InputError as error:
            skips.bad(str(error))


def _recall(values: Any, names: Mapping[str, str], where: str) -> Recall:
    if not isinstance(values, dict):
        raise InputError(f"{where}: a row is an object with query and returned")
    told = {field: values[name] for field in FIELDS if (name := names.get(field, field)) in values}
    for field in ("query", "returned"):
        if field not in told:
            name = names.get(field, field)
            raise InputError(
                f"{where}: no field {name!r}; name the log's own with --field {field}=NAME"
                f" ({jsonl.nearest(name, list(values))})"
            )
    told = {field: value for field, value in told.items() if value is not None}
    for field in ("returned", "used"):
        if isinstance(told.get(field), list):
            told[field] = [_with_text_id(one) for one in told[field]]
    if isinstance(told.get("session"), str | int):
        del told["session"]  # the id of a session says nothing of what it may see
    if not str(told.get("query", "")).strip():
        raise InputError(f"{where}: the query is empty")
    try:
        return msgspec.convert(told, Recall, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {jsonl.one_line(str(error))}") from None


def _with_text_id(hit: Any) -> Any:
    """Ids that are whole numbers, as tables have them, become texts."""
    if isinstance(hit, int) and not isinstance(hit, bool):
        return str(hit)
    if isinstance(hit, dict) and isinstance(hit.get("id"), int):
        return {**hit, "id": str(hit["id"])}
    return hit


def _of_lines(path: Path, skips: Skips) -> Iterator[tuple[str, Any]]:
    decoder = msgspec.json.Decoder(Any)
    for number, line in jsonl.lines(path, skips):
        where = f"{path}:{number}"
        try:
            values = jsonl.decode(line, where, decoder)
        except InputError as error:
            skips.bad(str(error))
            continue
        yield where, values


def _of_database(path: Path, table: str | None, names: Mapping[str, str], skips: Skips) -> Iterator[tuple[str, Any]]:
    try:
        # Read only: a log in use is neither locked for writing nor changed.
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            found = table or _only_table(path, connection)
            quoted = '"' + found.replace('"', '""') + '"'
            connection.text_factory = bytes
            cursor = connection.execute(f"SELECT * FROM {quoted}")
            columns = [name for name, *_ in cursor.description]
            for number, row in enumerate(cursor, 1):
                where = f"{path}: table {found}, row {number}"
                try:
                    cells = [cell.decode() if isinstance(cell, bytes) else cell for cell in row]
                except UnicodeDecodeError:
                    skips.bad(f"{where}: a text is not UTF-8")
                    continue
                yield where, _parsed(dict(zip(columns, cells, strict=True)), names)
    except sqlite3.Error as error:
        raise InputError(f"{path}: cannot be read as an SQLite log: {error}") from None


def _only_table(path: Path, connection: sqlite3.Connection) -> str:
    tables = [
        str(name)
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
    ]
    if len(tables) != 1:
        known = f"it has {', '.join(tables)}" if tables else "it has none"
        raise InputError(f"{path}: name the table of recalls with --table; {known}")
    return tables[0]


def _parsed(values: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The JSON columns parsed; what is no JSON stays a text, and is refused as the wrong type with its row."""
    for field in ("returned", "used", "session"):
        name = names.get(field, field)
        if isinstance(values.get(name), str | bytes):
            with contextlib.suppress(msgspec.DecodeError):
                values[name] = msgspec.json.decode(values[name])
    return values
