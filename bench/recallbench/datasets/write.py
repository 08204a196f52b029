"""A labelled set in the native form, written as a new folder, whole or not at all."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from recallbench.datasets.model import Question, SetInfo
from recallbench.datasets.readers import native
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory


@contextlib.contextmanager
def whole(out: Path) -> Iterator[Path]:
    """A folder beside `out` that gets its name if all goes well, and is deleted if not.

    Raises InputError if `out` exists or cannot be written.
    """
    try:
        there = out.exists() or out.is_symlink()
    except OSError as error:  # a name that is too long
        raise InputError(f"{out}: {error.strerror}; take another name") from None
    if there:
        raise InputError(f"{out}: is there already; name a folder that is not")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        # The folder within has the permissions of any other; that of mkdtemp is closed to all but its owner.
        shell = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".partial", dir=out.parent))
        try:
            folder = shell / "set"
            folder.mkdir()
            yield folder
            if out.exists():
                raise InputError(f"{out}: appeared while it was made; name another folder")
            folder.rename(out)
        finally:
            shutil.rmtree(shell, ignore_errors=True)
    except OSError as error:
        reason = f"{out.parent} is no folder" if out.parent.is_file() else error.strerror or error
        raise InputError(f"{out}: cannot be written: {reason}; nothing was kept") from None


def write_rows(path: Path, rows: Iterable[Any]) -> int:
    """Write msgspec structs (or what JSON has) as JSON Lines, one at a time; how many there were."""
    encode = msgspec.json.Encoder().encode
    count = 0
    with path.open("wb") as file:
        for row in rows:
            file.write(encode(row) + b"\n")
            count += 1
    return count


def write_memories(folder: Path, memories: Iterable[Memory]) -> int:
    """`memories.jsonl`; how many there were."""
    return write_rows(folder / native.MEMORIES, memories)


def write_questions(folder: Path, questions: Iterable[Question]) -> int:
    """`questions.jsonl`; how many there were."""
    return write_rows(folder / native.QUESTIONS, questions)


def write_info(folder: Path, info: SetInfo) -> None:
    """`dataset.toml`: the keys that say more than a default, and the name."""
    values = {}
    for one in dataclasses.fields(info):
        value = getattr(info, one.name)
        if one.name == "name" or value != one.default:
            values[one.name] = list(value) if isinstance(value, tuple) else value
    (folder / native.TOML).write_bytes(tomli_w.dumps(values).encode())
