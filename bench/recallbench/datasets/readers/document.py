"""The elements of an array in one large JSON document, one at a time.

The public sets that are single documents reach gigabytes (LongMemEval_M), and a parser of whole documents
names no line in its errors. So the document is cut here into the elements of its main array, and msgspec
decodes (and judges) each of them.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from recallbench.datasets import jsonl
from recallbench.datasets.skips import Skips
from recallstack.errors import InputError

CHUNK = 1 << 18
"""Bytes read at once; more where one element is longer."""
_BOM = b"\xef\xbb\xbf"
_WHITE = b" \t\r\n"
_STRING = re.compile(rb'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+("?)')
"""A string; the group is empty where its end is missing."""
_SKIP = rb'(?:[^"\[\]{}]++|"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+")*+'
_SKIPPED = re.compile(_SKIP)
"""All that is neither a bracket nor a string without its end."""
_BRACKET = re.compile(_SKIP + rb"([\[\]{}])")
_PLAIN = re.compile(rb"[^\s,\]}]*")


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    """JSON text of one element, or of a part of it. line: of its first byte in the file (1-based)."""

    file: str
    line: int
    data: bytes

    @property
    def where(self) -> str:
        """`file:line` of the first byte."""
        return f"{self.file}:{self.line}"

    def decode(self, part_type: type[jsonl.T]) -> jsonl.T:
        """The value. Raises InputError with file and line."""
        try:
            return msgspec.json.decode(self.data, type=part_type)
        except msgspec.ValidationError as error:
            raise InputError(f"{self.where}: {jsonl.invalid(error)}") from None
        except msgspec.DecodeError as error:
            text = self.data.decode("utf-8", "replace")
            reason, at = jsonl.broken(error, text)
            line = self.line + text.count("\n", 0, at)
            raise InputError(f"{self.file}:{line}: broken JSON: {reason.partition(', column')[0]}") from None
        except RecursionError:
            raise InputError(f"{self.where}: the JSON is nested too deeply") from None

    def parts(
        self, raws: Sequence[msgspec.Raw], part_type: type[jsonl.T], skips: Skips
    ) -> Iterator[tuple[int, Piece, jsonl.T]]:
        """(1-based number, place, value) of parts that were left raw, bad ones given to `skips`."""
        at, line = 0, self.line
        for number, raw in enumerate(raws, 1):
            data = bytes(raw)
            begins = max(at, self.data.find(data, at))
            line += self.data.count(b"\n", at, begins)
            part = Piece(self.file, line, data)
            at = begins + len(data)
            line += data.count(b"\n")
            try:
                value = part.decode(part_type)
            except InputError as error:
                skips.bad(str(error))
                continue
            yield number, part, value


def elements(path: Path, key: str | None = None) -> Iterator[Piece]:
    """The elements of the array that the document is, or that stands under `key` of its object.

    `.gz` is unpacked, a BOM dropped. Holds one element at a time. Raises InputError, with file and line, for a
    file that cannot be read, that is not of this shape, or whose JSON is broken between elements; text within
    an element is judged when it is decoded.
    """
    try:
        with jsonl.opened(path) as file:
            scanner = _Scanner(str(path), file)
            yield from scanner.array() if key is None else scanner.under(key)
            if scanner.peek():
                raise scanner.error("more text after the end of the JSON document")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the gzip file is broken: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


class _Scanner:
    """A place in a document that is read in chunks; `_at` is the next byte of `_held`."""

    def __init__(self, name: str, file: BinaryIO | gzip.GzipFile) -> None:
        self._name = name
        self._file = file
        self._held = file.read(max(CHUNK, len(_BOM))).removeprefix(_BOM)
        self._at = 0
        self._line = 1

    def error(self, message: str, offset: int = 0) -> InputError:
        """An error at `offset` bytes from here."""
        line = self._line + self._held.count(b"\n", self._at, self._at + offset)
        return InputError(f"{self._name}:{line}: broken JSON: {message}")

    def _more(self) -> bool:
        """Read on, as much as is held: the work stays linear in the length of a long element."""
        read = self._file.read(max(CHUNK, len(self._held) - self._at))
        self._held = self._held[self._at :] + read
        self._at = 0
        return bool(read)

    def _take(self, count: int) -> bytes:
        taken = self._held[self._at : self._at + count]
        self._line += taken.count(b"\n")
        self._at += count
        return taken

    def peek(self) -> bytes:
        """The next byte that is not white space; empty at the end."""
        while True:
            rest = self._held[self._at : self._at + 1]
            if rest and rest not in _WHITE:
                return rest
            if rest:
                self._take(1)
            elif not self._more():
                return b""

    def _expect(self, mark: bytes, what: str) -> None:
        found = self.peek()
        if found != mark:
            raise self.error(f"expected {what}, found {_shown(found)}")
        self._take(1)

    def _value(self) -> Piece:
        """The JSON value that begins here."""
        first, line = self.peek(), self._line
        if first in (b"{", b"["):
            length = self._brackets()
        elif first == b'"':
            length = self._string()
        else:
            length = self._plain()
            if length == 0:
                raise self.error(f"expected a value, found {_shown(first)}")
        data = self._take(length)
        return Piece(self._name, line, data)

    def _plain(self) -> int:
        while True:
            found = _PLAIN.match(self._held, self._at)
            end = found.end() if found else self._at
            if end < len(self._held) or not self._more():
                return end - self._at

    def _string(self) -> int:
        while True:
            found = _STRING.match(self._held, self._at)
            if found and found[1]:
                return found.end() - self._at
            self._unclosed(found.end() if found else self._at)

    def _unclosed(self, end: int) -> None:
        """A string without its end: read on if the text ends there, else it is broken."""
        if end < len(self._held) - 1:  # a lone backslash may be the last byte held
            raise self.error("a string that does not end in its line", end - self._at)
        if not self._more():
            raise self.error("the text ends within a string", len(self._held.rstrip()))

    def _brackets(self) -> int:
        depth, done = 0, 0  # done: bytes after `_at`
        while True:
            while found := _BRACKET.match(self._held, self._at + done):
                depth += 1 if found[1] in (b"{", b"[") else -1
                done = found.end() - self._at
                if depth == 0:
                    return done
            skipped = _SKIPPED.match(self._held, self._at + done)
            end = skipped.end() if skipped else self._at + done
            done = end - self._at
            if string := _STRING.match(self._held, end):
                self._unclosed(string.end())
            elif not self._more():
                raise self.error("the text ends before this element does", len(self._held.rstrip()))

    def array(self) -> Iterator[Piece]:
        """The elements of the array that begins here."""
        self._expect(b"[", "an array ([)")
        if self.peek() == b"]":
            self._take(1)
            return
        while True:
            yield self._value()
            found = self.peek()
            if found == b"]":
                self._take(1)
                return
            if found != b",":
                raise self.error(f"expected , or ] after an element, found {_shown(found)}")
            self._take(1)

    def under(self, key: str) -> Iterator[Piece]:
        """The elements of the array under `key` of the object that begins here."""
        self._expect(b"{", "an object ({)")
        seen = False
        while self.peek() != b"}":
            if self.peek() != b'"':
                raise self.error(f"expected a key, found {_shown(self.peek())}")
            name = self._value().decode(str)
            self._expect(b":", f": after the key {name!r}")
            if name == key and not seen:
                seen = True
                yield from self.array()
            else:
                self._value()
            if self.peek() != b",":
                break
            self._take(1)
        if self.peek() != b"}":
            raise self.error(f"expected , or }}, found {_shown(self.peek())}")
        self._take(1)
        if not seen:
            raise InputError(f"{self._name}: holds no array under the key {key!r}")


def _shown(found: bytes) -> str:
    return repr(found.decode("latin-1")) if found else "the end of the text"
