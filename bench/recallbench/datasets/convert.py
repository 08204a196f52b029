"""Any labelled set that can be read, written in the native form, row by row."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from recallbench.datasets import native
from recallbench.datasets.model import SetInfo
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import Checked, Stream, check
from recallstack.errors import InputError

Progress = Callable[[str, int], None]
"""Told (`checked` or `written`, memories so far) every EVERY memories."""
EVERY = 10_000


@dataclass(frozen=True, slots=True)
class Converted:
    """What was written. skipped: bad rows and labels left out; reasons: why, the first of them.

    notes: what the reader mended or left out by the rules of its format.
    """

    memories: int
    questions: int
    skipped: int
    reasons: tuple[str, ...]
    notes: tuple[str, ...]


def convert(
    stream: Stream, out: Path, *, form: str, skip_bad: bool = False, progress: Progress | None = None
) -> Converted:
    """Write the folder `out` with `dataset.toml`, `memories.jsonl` and `questions.jsonl`, whole or not at all.

    Two passes over the source: one to check it, one to write. The memories are never held: the peak is that of
    the questions with their labels and 8 bytes a memory. Labels by snippet or file become ids. form: the name
    of the source's format, for the provenance. Raises InputError if `out` exists or cannot be written, and for
    bad input; with `skip_bad` bad rows and labels are left out and counted.
    """
    if out.exists() or out.is_symlink():
        raise InputError(f"{out}: is there already; name a folder that is not")
    skips = Skips(skip_bad)
    with _whole(out) as folder:
        checked = check(_told(stream, "checked", progress), skips)
        count = _write_memories(dataclasses.replace(checked, stream=_told(stream, "written", progress)), folder)
        encode = msgspec.json.Encoder().encode
        with (folder / native.QUESTIONS).open("wb") as file:
            file.writelines(encode(question) + b"\n" for question in checked.questions)
        info = dataclasses.replace(stream.info, provenance=_provenance(stream.info, form, skips.count))
        (folder / native.TOML).write_bytes(tomli_w.dumps(_values(info)).encode())
    return Converted(count, len(checked.questions), skips.count, tuple(skips.listed()), checked.notes)


def _write_memories(checked: Checked, folder: Path) -> int:
    encode = msgspec.json.Encoder().encode
    count = 0
    with (folder / native.MEMORIES).open("wb") as file:
        for memory in checked.memories():
            file.write(encode(memory) + b"\n")
            count += 1
    return count


def _told(stream: Stream, what: str, progress: Progress | None) -> Stream:
    """The stream, its progress told."""
    if progress is None:
        return stream

    def memories(skips: Skips) -> Iterator[tuple[str, Any]]:
        for count, row in enumerate(stream.memories(skips), 1):
            if count % EVERY == 0:
                progress(what, count)
            yield row

    return dataclasses.replace(stream, memories=memories)


def _provenance(info: SetInfo, form: str, skipped: int) -> str:
    """What the source says of itself, and what was done to it; a native set without a fault is only copied."""
    left_out = f", {skipped} bad rows or labels left out" if skipped else ""
    if form == "native" and not skipped:
        return info.provenance
    done = f"converted from the {form} form{left_out}"
    return f"{info.provenance}; {done}" if info.provenance else done


def _values(info: SetInfo) -> dict[str, Any]:
    """The keys of dataset.toml that say more than a default; the name always."""
    values = {}
    for one in dataclasses.fields(info):
        value = getattr(info, one.name)
        if one.name == "name" or value != one.default:
            values[one.name] = list(value) if isinstance(value, tuple) else value
    return values


@contextlib.contextmanager
def _whole(out: Path) -> Iterator[Path]:
    """A folder beside `out` that gets its name if all goes well, and is deleted if not."""
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
