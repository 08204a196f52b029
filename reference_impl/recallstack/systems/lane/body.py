"""Bodies: decoding with one plain line for a bad one, and lowering a limit without touching the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from recallstack.errors import InputError

T = TypeVar("T")
_OBJECTS = msgspec.json.Decoder(dict[str, Any])
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENCODER = msgspec.json.Encoder()


def decode_object(body: bytes, what: str) -> dict[str, Any]:
    """The JSON object that a body holds. Raises InputError: empty, no JSON, no object, nested too deeply."""
    if not body.strip():
        raise InputError(f"{what}: the body is empty; send a JSON object")
    try:
        return _OBJECTS.decode(body)
    except msgspec.ValidationError as error:
        raise InputError(f"{what}: {plain(error)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{what}: the body is not valid JSON: {error}") from None
    except RecursionError:
        raise InputError(f"{what}: the JSON is nested too deeply") from None


def convert(value: Any, shape: type[T], what: str) -> T:
    """The value in its shape. Raises InputError that names the first field that does not fit."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise InputError(f"{what}: {plain(error)}") from None


def plain(error: msgspec.ValidationError) -> str:
    """What is wrong, in one line, the place first."""
    said, _, path = str(error).partition(" - at `$")
    place = path.rstrip("`").lstrip(".")
    return f"{place}: {said}" if place else said


Path = tuple[str, ...]


def limits(body: dict[str, Any], paths: Sequence[Path], what: str) -> Iterator[tuple[Path, int]]:
    """Each limit that a body sets, with its path. Raises InputError for one that is no whole number from 1."""
    for path in paths:
        value: Any = body
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(f"{what}: {'.'.join(path)} must be a whole number from 1, not {str(value)[:40]}")
        yield path, value


def with_limit(body: bytes, path: Path, value: int) -> bytes:
    """The body with one limit set to `value`; every other field keeps its bytes."""
    fields = _RAW.decode(body)
    name, rest = path[0], path[1:]
    fields[name] = msgspec.Raw(with_limit(bytes(fields[name]), rest, value) if rest else str(value).encode())
    return _ENCODER.encode(fields)
