"""The caller's own memories, as a starter set."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from recallbench.datasets import jsonl
from recallbench.datasets.model import SetInfo
from recallbench.datasets.readers import native
from recallbench.datasets.readers.notes import read_notes
from recallbench.datasets.skips import Skips
from recallbench.datasets.write import whole, write_info, write_memories, write_questions
from recallbench.starter.questions import known_items
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory


def memories_of(notes: Path | None, memories: Path | None) -> list[Memory]:
    """The entries of a folder of Markdown notes, or the rows of a JSON Lines file (or of a set's folder).

    Raises InputError for what cannot be read.
    """
    if notes is not None:
        if not notes.is_dir():
            raise InputError(f"{notes}: no such folder; --notes takes a folder of Markdown files")
        return read_notes(notes)
    assert memories is not None
    rows: Iterable[tuple[str, Memory]]
    if memories.is_dir():
        rows = native.memories_of(memories)[0](Skips())
    elif memories.is_file():
        rows = ((str(number), row) for number, row in jsonl.rows(memories, Memory))
    else:
        raise InputError(
            f"{memories}: no such file; --memories takes JSON Lines, such as "
            '{"id": "m-1", "content": "the release is on Friday"}'
        )
    found = [memory for _, memory in rows]
    if not found:
        raise InputError(f"{memories}: holds no memory")
    return found


def write_starter(out: Path, memories: list[Memory], count: int, seed: int, unit: str) -> int:
    """Write the starter set as the new folder `out`, whole or not at all; how many questions it has.

    unit: what one memory is, for `dataset.toml`.
    """
    questions = known_items(memories, count, seed)
    info = SetInfo(
        name=out.name,
        version="1",
        description="Starter set drawn from memories by recallbench init; replace it by questions that people ask",
        languages=tuple(sorted({question.lang for question in questions})),
        provenance=f"Known-item questions from the rarest words or the title of one memory each (seed {seed})",
        primary_measure="nDCG@5",
        memory_unit=unit,
    )
    with whole(out) as folder:
        write_memories(folder, memories)
        write_questions(folder, questions)
        write_info(folder, info)
    return len(questions)
