"""Lines of text files, plain or gzip, with errors that name file and line."""

from __future__ import annotations

import difflib
import gzip
import re
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from recallstack.errors import InputError

T = TypeVar("T")
_BOM = b"\xef\xbb\xbf"
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")


def nearest(name: str, known: Collection[str]) -> str:
    """What to add to an error on an unknown `name`: the nearest of the known names, else all of them."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


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


def _open(path: Path) -> BinaryIO | gzip.GzipFile:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    return path.open("rb")


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """(1-based number, text) of each line that is not blank; `.gz` is unpacked, BOM and CRLF are accepted.

    Raises InputError for a file that cannot be read, a broken gzip file, or a line that is not UTF-8.
    """
    number = 0
    try:
        with _open(path) as file:
            for number, raw in enumerate(file, 1):
                if number == 1 and raw.startswith(_BOM):
                    raw = raw[len(_BOM) :]
                if not raw.strip():
                    continue
                try:
                    yield number, raw.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise InputError(
                        f"{path}:{number}: byte {error.start + 1} is not UTF-8; save the file as UTF-8"
                    ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the gzip file is broken after line {number}: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def text(path: Path) -> str:
    """The whole file as text; BOM dropped, `.gz` unpacked. Raises InputError as `lines` does."""
    try:
        with _open(path) as file:
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
        message = one_line(str(error))
        unknown = _UNKNOWN.search(message)
        hint = f"; {nearest(unknown[1], fields)}" if unknown and fields else ""
        raise InputError(f"{where}: {message}{hint}") from None
    except msgspec.DecodeError as error:
        raise InputError(f"{where}: broken JSON: {one_line(str(error))}") from None
    except RecursionError:
        raise InputError(f"{where}: the JSON is nested too deeply") from None


def rows(path: Path, row_type: type[T]) -> Iterator[tuple[int, T]]:
    """(line number, value) of each line of a JSON Lines file, checked against a msgspec Struct.

    Raises InputError, `file:line: …`, for broken JSON, a wrong type or range, or an unknown field.
    """
    decoder = msgspec.json.Decoder(row_type)
    fields: tuple[str, ...] = getattr(row_type, "__struct_fields__", ())
    for number, line in lines(path):
        yield number, decode(line, f"{path}:{number}", decoder, fields)


def document(path: Path, document_type: type[T]) -> T:
    """One JSON document in a file (plain or gzip), checked against a type."""
    fields: tuple[str, ...] = getattr(document_type, "__struct_fields__", ())
    return decode(text(path), str(path), msgspec.json.Decoder(document_type), fields)
