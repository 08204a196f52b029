"""Small files of the formats that the readers read, made for one test each."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from recallstack.errors import InputError

BOM = b"\xef\xbb\xbf"


def jsonl(rows: Iterable[Any]) -> str:
    """One line a row; a row that is text already stands as it is."""
    return "".join(f"{row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def files(folder: Path, contents: Mapping[str, str | bytes]) -> Path:
    """Write files below `folder` as UTF-8; names that end in .gz are packed."""
    for name, content in contents.items():
        data = content.encode() if isinstance(content, str) else content
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def windows(data: bytes) -> bytes:
    """The same text as an editor of Windows saves it: a byte-order mark, CRLF, blank lines at the end."""
    return BOM + data.replace(b"\n", b"\r\n") + b"\r\n  \r\n\r\n"


def refused(call: Callable[..., object], *arguments: object) -> str:
    """The message of the InputError that `call` raises: one line."""
    with pytest.raises(InputError) as caught:
        call(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message
