"""The elements of one JSON document: the same as a parser of whole documents finds, wherever it is cut."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made import BOM, refused

from recallbench.datasets.readers import document
from recallbench.datasets.skips import Skips

# Texts that are full of what the scanner looks at: quotes, backslashes, brackets, line ends.
words = st.text(st.sampled_from('"\\[]{},: \n\té发😀ax'), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=12,
)
fixture_is_fine = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@fixture_is_fine
@given(
    rows=st.lists(values, max_size=5),
    chunk=st.integers(1, 40),
    indent=st.none() | st.integers(0, 2),
    plain=st.booleans(),
    packed=st.booleans(),
    start=st.sampled_from([b"", BOM, b" \r\n"]),
    before=values,
)
def test_elements_are_those_of_json(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: list[Any],
    chunk: int,
    indent: int | None,
    plain: bool,
    packed: bool,
    start: bytes,
    before: Any,
) -> None:
    monkeypatch.setattr(document, "CHUNK", chunk)
    path = tmp_path / ("x.json.gz" if packed else "x.json")
    for key, whole in ((None, rows), ("data", {"version": before, "data": rows, "more": before})):
        data = start + json.dumps(whole, indent=indent, ensure_ascii=plain).encode() + b"\n"
        path.write_bytes(gzip.compress(data) if packed else data)
        pieces = list(document.elements(path, key))
        assert [json.loads(piece.data) for piece in pieces] == rows
        for piece in pieces:
            # The line is where the bytes of the element begin: at that line of the file, they are found.
            rest = b"\n".join(data.split(b"\n")[int(piece.where.rpartition(":")[2]) - 1 :])
            assert piece.data in rest


def elements_of(path: Path, text: str, key: str | None = None) -> list[bytes]:
    path.write_text(text, encoding="utf-8")
    return [piece.data for piece in document.elements(path, key)]


@pytest.mark.parametrize("chunk", [1, 5, 1 << 18])
@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "expected an array ([), found the end of the text"),
        ("{}", 1, "expected an array ([), found '{'"),
        ("[\n1\n2]", 3, "expected , or ] after an element, found '2'"),
        ("[\n1,\n]", 3, "expected a value, found ']'"),
        ('[\n{"a":\n1', 3, "the text ends before this element does"),
        ('[\n{"a":\n"x', 3, "the text ends within a string"),
        ('[\n{"a":\n"x\n}]', 3, "a string that does not end in its line"),
        ("[1]\n\n[", 3, "more text after the end of the JSON document"),
        ("[1", 1, "expected , or ] after an element, found the end of the text"),
    ],
)
def test_broken_text_between_elements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, text: str, line: int, says: str
) -> None:
    monkeypatch.setattr(document, "CHUNK", chunk)
    path = tmp_path / "x.json"
    assert refused(elements_of, path, text) == f"{path}:{line}: broken JSON: {says}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", ":1: broken JSON: expected an object ({), found '['"),
        ("{}", ": holds no array under the key 'data'"),
        ('{"data": {}}', ":1: broken JSON: expected an array ([), found '{'"),
        ('{"a" 1}', ":1: broken JSON: expected : after the key 'a', found '1'"),
        ("{a: 1}", ":1: broken JSON: expected a key, found 'a'"),
        ('{"data": []\n"a": 1}', ":2: broken JSON: expected , or }, found '\"'"),
        ('{"data": [],', ":1: broken JSON: expected a key, found the end of the text"),
    ],
)
def test_broken_text_around_a_key(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "x.json"
    assert refused(elements_of, path, text, "data") == f"{path}{says}"


class Row(msgspec.Struct):
    id: str
    parts: tuple[msgspec.Raw, ...] = ()


class Part(msgspec.Struct):
    n: int


def piece_of(path: Path, text: str) -> document.Piece:
    path.write_text(text, encoding="utf-8")
    (piece,) = document.elements(path)
    return piece


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('[\n\n{"id": 5}]', 3, "Expected `str`, got `int` - at `$.id`"),
        ('[{"id":\n\n  nope }]', 3, "broken JSON: expecting value"),
        ('[{"id": "a",\n "id" "b"}]', 2, "broken JSON: expecting ':' delimiter"),
        ('[{"id": "\\ud800"}]', 1, "broken JSON: a string holds half of a surrogate pair"),
    ],
)
def test_an_element_is_judged_with_its_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    piece = piece_of(tmp_path / "x.json", text)
    assert refused(piece.decode, Row).startswith(f"{tmp_path / 'x.json'}:{line}: {says}")


def test_json_that_is_nested_too_deeply(tmp_path: Path) -> None:
    piece = piece_of(tmp_path / "x.json", '[{"id": "a", "more": ' + "[" * 100_000 + "]" * 100_000 + "}]")
    assert refused(piece.decode, Row) == f"{tmp_path / 'x.json'}:1: the JSON is nested too deeply"


def test_parts_keep_their_own_lines(tmp_path: Path) -> None:
    """Two parts of the same text, and a bad one between them that also stands elsewhere in the element."""
    path = tmp_path / "x.json"
    piece = piece_of(path, '[{"id": "7", "parts": [\n{"n": 1},\n\n{"n": 1}\n,{"n": "x"}\n, {"n": 2}]}]')
    skips = Skips(allowed=True)
    parts = [(number, part.where, value.n) for number, part, value in piece.parts(piece.decode(Row).parts, Part, skips)]
    assert parts == [(1, f"{path}:2", 1), (2, f"{path}:4", 1), (4, f"{path}:6", 2)]
    assert skips.reasons == [f"{path}:5: Expected `int`, got `str` - at `$.n`"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert refused(list, document.elements(path)) == f"{path}: cannot be read: No such file or directory"
    packed = tmp_path / "x.json.gz"
    packed.write_bytes(gzip.compress(b"[1, 2, 3]")[:-8])
    assert refused(list, document.elements(packed)).startswith(f"{packed}: the gzip file is broken: ")


def test_one_element_is_held_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a document of 200 elements no more is read than one element and a chunk beyond what was asked for."""
    monkeypatch.setattr(document, "CHUNK", 64)
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"id": "x" * 100}] * 200))
    read = 0

    class Counting:
        def __init__(self) -> None:
            self.file = path.open("rb")

        def read(self, size: int) -> bytes:
            nonlocal read
            read += size
            return self.file.read(size)

    counting = Counting()
    scanner = document._Scanner("x", counting)  # type: ignore[arg-type]
    for number, _ in enumerate(scanner.array(), 1):
        assert read <= 112 * number + 400
    assert number == 200
    counting.file.close()
