"""The native form: a folder with `dataset.toml`, `memories.jsonl` or `notes/`, and `questions.jsonl`."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from recallbench.datasets import jsonl
from recallbench.datasets.jsonl import find
from recallbench.datasets.labels import QuestionRow
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.datasets.readers.notes import iterate
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import Stream, gather
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory

TOML, MEMORIES, NOTES, QUESTIONS = "dataset.toml", "memories.jsonl", "notes", "questions.jsonl"


def read(folder: Path) -> LabelledSet:
    """Read a labelled set. `memories.jsonl` and `questions.jsonl` may be gzip files (`.gz`).

    Raises InputError, one line with file and line, for whatever is missing, broken or contradictory.
    """
    return gather(stream(folder))


def stream(folder: Path) -> Stream:
    """The folder as a stream. Raises InputError for what is missing."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; a labelled set is a folder with {TOML}")
    info = read_info(folder / TOML)
    memories, memories_in = memories_of(folder)
    asked = jsonl.find(folder, QUESTIONS)
    if asked is None:
        raise InputError(f"{folder}: {QUESTIONS} is missing")

    def questions(skips: Skips) -> Iterator[tuple[str, Question]]:
        return ((f"{asked}:{line}", row) for line, row in jsonl.rows(asked, QuestionRow, skips))

    return Stream(info, memories, questions, memories_in, str(asked))


def read_info(path: Path) -> SetInfo:
    """`dataset.toml`; its keys are the fields of SetInfo."""
    if not path.is_file():
        csv = find(path.parent, "questions.csv")
        if csv is not None:
            raise InputError(
                f"{path.parent}: a set of {csv.name}; ask it with --dataset csv --data {path.parent}, or write it as a"
                f" native set: recallbench datasets convert {path.parent} OUT"
            )
        raise InputError(f'{path}: no such file; a labelled set needs it, with at least: name = "…"')
    try:
        values = tomllib.loads(jsonl.text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: broken TOML: {jsonl.one_line(str(error))}") from None
    keys = [field.name for field in dataclasses.fields(SetInfo)]
    for key in values:
        if key not in keys:
            raise InputError(f"{path}: unknown key {key!r}; {jsonl.nearest(key, keys)}")
    try:
        info = msgspec.convert(values, SetInfo)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {jsonl.one_line(str(error))}") from None
    if not info.name.strip():
        raise InputError(f"{path}: name is empty")
    if info.depth > 1_000_000:
        raise InputError(f"{path}: depth is {info.depth}; at most 1,000,000")
    if info.depth < 1 or not 1 <= info.default_rel <= 10:
        raise InputError(f"{path}: depth must be at least 1 and default_rel 1 to 10")
    return info


def memories_of(folder: Path) -> tuple[Callable[[Skips], Iterator[tuple[str, Memory]]], str]:
    """(rows of `memories.jsonl` or `notes/`, which of them it is), as a Stream has them."""
    path, notes = jsonl.find(folder, MEMORIES), folder / NOTES
    if path is not None and notes.is_dir():
        raise InputError(f"{folder}: has both {path.name} and {NOTES}/; keep one of them")
    if path is not None:
        return lambda skips: ((f"{path}:{line}", row) for line, row in jsonl.rows(path, Memory, skips)), str(path)
    if not notes.is_dir():
        raise InputError(f"{folder}: has neither {MEMORIES} nor {NOTES}/; one of them must hold the memories")
    return lambda skips: iterate(notes, skips), str(notes)
