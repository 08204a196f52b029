"""Lines and rows of text files, plain or gzip, with errors that name file and line."""

from __future__ import annotations

import difflib
import gzip
import json
import re
import types
import typing
import zlib
from collections.abc import Collection, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

import msgspec

from recallbench.datasets.skips import Skips
from recallstack.errors import InputError

T = TypeVar("T")
_BOM = b"\xef\xbb\xbf"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_CHOICE = re.compile(r"Invalid enum value '([^']*)'(?: - at `\$(.*)`)?")


def nearest(name: str, known: Collection[str]) -> str:
    """What to add to an error on an unknown `name`: the nearest of the known names, else (the first 20 of) them."""
    close = difflib.get_close_matches(name, list(known), n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    more = f" and {len(known) - 20} more" if len(known) > 20 else ""
    return f"known: {', '.join(list(known)[:20])}{more}"


def listed(names: Collection[str], most: int = 5) -> str:
    """At most `most` names, quoted, then `and N more`."""
    shown = ", ".join(repr(name) for name in list(names)[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def one_line(text: str) -> str:
    """`text` with every run of white space as one blank, so that a message stays one line."""
    return " ".join(text.split())


def find(folder: Path, *names: str) -> Path | None:
    """The first of the named files of `folder` that exists, plain or with `.gz`."""
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    return None


def opened(path: Path) -> BinaryIO | gzip.GzipFile:
    """The bytes of a file, `.gz` unpacked."""
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    return path.open("rb")


def raw_lines(path: Path) -> Generator[bytes, None, None]:
    """Each line as bytes with its end, BOM dropped, `.gz` unpacked; raises InputError as `lines` does."""
    number = 0
    try:
        with opened(path) as file:
            for number, raw in enumerate(file, 1):
                yield raw[len(_BOM) :] if number == 1 and raw.startswith(_BOM) else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the gzip file is broken after line {number}: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def lines(path: Path, skips: Skips | None = None) -> Iterator[tuple[int, str]]:
    """(1-based number, text) of each line that is not blank; `.gz` is unpacked, BOM and CRLF are accepted.

    Raises InputError for a file that cannot be read or a broken gzip file, and for a line that is not UTF-8
    (left out if `skips` allows).
    """
    for number, raw in enumerate(raw_lines(path), 1):
        if not raw.strip():
            continue
        try:
            line = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            (skips or Skips()).bad(f"{path}:{number}: byte {error.start + 1} is not UTF-8; save the file as UTF-8")
            continue
        yield number, line


def text(path: Path) -> str:
    """The whole file as text; BOM dropped, `.gz` unpacked. Raises InputError as `lines` does."""
    try:
        with opened(path) as file:
            data = file.read()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the gzip file is broken: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8; save the file as UTF-8") from None


def decode(row: str, where: str, decoder: msgspec.json.Decoder[T], fields: Collection[str] = ()) -> T:
    """One JSON value. `where` (file:line) begins the InputError; `fields` serve to name the nearest field."""
    try:
        return decoder.decode(row)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {invalid(error, fields, decoder.type)}") from None
    except msgspec.DecodeError as error:
        raise InputError(f"{where}: broken JSON: {broken(error, row)[0]}") from None
    except RecursionError:
        raise InputError(f"{where}: the JSON is nested too deeply") from None


def invalid(error: msgspec.ValidationError, fields: Collection[str] = (), kind: Any = None) -> str:
    """What is wrong with values of another shape; the nearest of `fields` where one is unknown, and of the values that
    `kind` (what was expected) allows where another was given."""
    message = one_line(str(error))
    unknown = _UNKNOWN.search(message)
    if unknown and fields:
        return f"{message}; {nearest(unknown[1], fields)}"
    chosen = _CHOICE.search(message)
    known = _choices(kind, re.findall(r"\.([^.\[\]]+)|(\[)", chosen[2] or "")) if chosen and kind is not None else []
    return f"{message}; {nearest(chosen[1], known)}" if chosen and known else message


def _choices(kind: Any, steps: Sequence[tuple[str, str]]) -> list[str]:
    """The texts that a field allows, found along the path of an error; none where it is no choice."""
    for name, _ in steps:
        if name:
            kind = next(
                (typing.get_type_hints(one).get(name) for one in _inner(kind) if hasattr(one, "__annotations__")), None
            )
        else:
            kind = next((typing.get_args(one)[0] for one in _inner(kind) if typing.get_args(one)), None)
    return [str(value) for one in _inner(kind) if typing.get_origin(one) is Literal for value in typing.get_args(one)]


def _inner(kind: Any) -> list[Any]:
    """The kinds that a union is of; a kind alone."""
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return [one for part in typing.get_args(kind) for one in _inner(part)] if union else [kind]


def broken(error: msgspec.DecodeError, row: str) -> tuple[str, int]:
    """(what is wrong with broken JSON, characters before the place).

    The standard library's parser names the place exactly; msgspec may be past it, and calls half of a
    surrogate pair a truncation.
    """
    try:
        json.loads(row)
    except json.JSONDecodeError as exact:
        return f"{exact.msg[:1].lower()}{exact.msg[1:]}, column {exact.colno}", exact.pos
    except RecursionError:
        return one_line(str(error)), 0
    if _SURROGATE.search(row):
        return "a string holds half of a surrogate pair (\\ud800 to \\udfff)", 0
    return one_line(str(error)), 0


def rows(path: Path, row_type: type[T], skips: Skips | None = None) -> Iterator[tuple[int, T]]:
    """(line number, value) of each line of a JSON Lines file, checked against a msgspec Struct.

    Raises InputError, `file:line: …`, for broken JSON, a wrong type or range, or an unknown field; if `skips`
    allows, such a line is left out.
    """
    skips = skips or Skips()
    decoder = msgspec.json.Decoder(row_type)
    fields: tuple[str, ...] = getattr(row_type, "__struct_fields__", ())
    for number, line in lines(path, skips):
        try:
            row = decode(line, f"{path}:{number}", decoder, fields)
        except InputError as error:
            skips.bad(str(error))
            continue
        yield number, row
