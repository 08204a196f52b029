"""The native form: a folder with `dataset.toml`, `memories.jsonl` or `notes/`, and `questions.jsonl`."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from recallbench.datasets import jsonl
from recallbench.datasets.hashing import hashed
from recallbench.datasets.labels import QuestionRow, Resolver
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.datasets.notes import read_notes
from recallstack.errors import InputError
from recallstack.rows import Corpus, Memory

TOML, MEMORIES, NOTES, QUESTIONS = "dataset.toml", "memories.jsonl", "notes", "questions.jsonl"


def read(folder: Path) -> LabelledSet:
    """Read a labelled set. `memories.jsonl` and `questions.jsonl` may be gzip files (`.gz`).

    Raises InputError, one line with file and line, for whatever is missing, broken or contradictory.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; a labelled set is a folder with {TOML}")
    info = read_info(folder / TOML)
    corpora = read_corpora(folder)
    return hashed(info, corpora, _questions(folder, corpora))


def read_info(path: Path) -> SetInfo:
    """`dataset.toml`; its keys are the fields of SetInfo."""
    if not path.is_file():
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
    if info.depth < 1 or not 1 <= info.default_rel <= 10:
        raise InputError(f"{path}: depth must be at least 1 and default_rel 1 to 10")
    return info


def corpora_of(memories: Iterable[Memory]) -> dict[str, Corpus]:
    """Corpora by name, in the order in which they first appear."""
    parts: dict[str, list[Memory]] = {}
    for memory in memories:
        parts.setdefault(memory.corpus, []).append(memory)
    return {name: Corpus.of(name, part) for name, part in parts.items()}


def read_corpora(folder: Path) -> dict[str, Corpus]:
    """The corpora of `memories.jsonl` or `notes/`."""
    path, notes = jsonl.find(folder, MEMORIES), folder / NOTES
    if path is not None and notes.is_dir():
        raise InputError(f"{folder}: has both {path.name} and {NOTES}/; keep one of them")
    if path is None:
        if not notes.is_dir():
            raise InputError(f"{folder}: has neither {MEMORIES} nor {NOTES}/; one of them must hold the memories")
        return corpora_of(read_notes(notes))
    first: dict[tuple[str, str], int] = {}
    memories = []
    for number, memory in jsonl.rows(path, Memory):
        key = (memory.corpus, memory.id)
        if key in first:
            raise InputError(
                f"{path}:{number}: memory id {memory.id!r} is already at line {first[key]};"
                f" ids must be unique in a corpus"
            )
        first[key] = number
        memories.append(memory)
    if not memories:
        raise InputError(f"{path}: holds no memory")
    return corpora_of(memories)


def _questions(folder: Path, corpora: dict[str, Corpus]) -> list[Question]:
    path = jsonl.find(folder, QUESTIONS)
    if path is None:
        raise InputError(f"{folder}: {QUESTIONS} is missing")
    resolver = Resolver(corpora)
    questions = [resolver.question(row, f"{path}:{n}") for n, row in jsonl.rows(path, QuestionRow)]
    if not questions:
        raise InputError(f"{path}: holds no question")
    resolver.finish()
    return questions
