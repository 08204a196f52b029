"""Any labelled set that can be read, written in the native form, row by row."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recallbench.datasets.model import SetInfo
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import Stream, check
from recallbench.datasets.write import whole, write_info, write_memories, write_questions

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
    skips = Skips(skip_bad)
    with whole(out) as folder:
        checked = check(_told(stream, "checked", progress), skips)
        told = dataclasses.replace(checked, stream=_told(stream, "written", progress))
        count = write_memories(folder, told.memories())
        write_questions(folder, checked.questions)
        info = dataclasses.replace(stream.info, provenance=_provenance(stream.info, form, skips.count))
        write_info(folder, info)
    return Converted(count, len(checked.questions), skips.count, tuple(skips.listed()), checked.notes)


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
