"""SQuAD style reading comprehension (SQuAD, CMRC 2018, DRCD): the paragraph is the memory to find."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from recallbench.datasets import jsonl
from recallbench.datasets.model import LabelledSet, Question, SetInfo, Text
from recallbench.datasets.readers.document import Piece, elements
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import Stream, gather
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory

CMRC_FILE = "cmrc2018_trial.json"


class _Asked(msgspec.Struct, frozen=True):
    id: Text
    question: str
    is_impossible: bool = False


class _Paragraph(msgspec.Struct, frozen=True):
    context: Text
    qas: tuple[msgspec.Raw, ...]
    id: str = ""


class _Article(msgspec.Struct, frozen=True):
    paragraphs: tuple[msgspec.Raw, ...]


def read(path: Path) -> LabelledSet:
    """A SQuAD style JSON file, or the folder that holds only it. The set has the name of the file."""
    return gather(stream(path))


def read_cmrc(path: Path) -> LabelledSet:
    """CMRC 2018 (Cui et al. 2019): the file, or the folder with `cmrc2018_trial.json`."""
    return gather(stream_cmrc(path))


def stream(path: Path) -> Stream:
    """As `read`. Raises InputError where a folder holds no file or several."""
    file = path
    if path.is_dir():
        found = sorted(one for end in ("*.json", "*.json.gz") for one in path.glob(end))
        if len(found) != 1:
            raise InputError(f"{path}: holds {len(found)} .json files; name the one to read")
        file = found[0]
    info = SetInfo(
        name=file.name.split(".")[0],
        description="SQuAD style reading comprehension",
        memory_unit="a paragraph",
    )
    return _stream(file, info, "")


def stream_cmrc(path: Path) -> Stream:
    """As `read_cmrc`."""
    file = jsonl.find(path, CMRC_FILE) if path.is_dir() else path
    if file is None:
        raise InputError(f"{path}: holds no {CMRC_FILE}")
    info = SetInfo(
        name="cmrc2018",
        description="CMRC 2018: Chinese reading comprehension, questions written from the paragraphs",
        languages=("zh",),
        licence="CC BY-SA 4.0",
        provenance="https://github.com/ymcui/cmrc2018",
        memory_unit="a paragraph",
    )
    return _stream(file, info, "zh")


def _stream(file: Path, info: SetInfo, lang: str) -> Stream:
    """Paragraphs of the same text are one memory; the paragraph of a question has grade 2.

    An impossible question (SQuAD 2.0) expects nothing. The cluster of a question is its article.
    """
    notes: list[str] = []

    def memories(skips: Skips) -> Iterator[tuple[str, Memory]]:
        for one in _paragraphs(file, skips):
            if one.name == one.memory:
                yield one.piece.where, Memory(id=one.memory, content=one.paragraph.context)

    def questions(skips: Skips) -> Iterator[tuple[str, Question]]:
        notes.clear()
        for one in _paragraphs(file, skips.quiet()):  # bad paragraphs are told while the memories are read
            if one.name != one.memory:
                notes.append(f"paragraph {one.name!r} has the text of {one.memory!r}: one memory")
            for _, piece, asked in one.piece.parts(one.paragraph.qas, _Asked, skips):
                yield (
                    piece.where,
                    Question(
                        id=asked.id,
                        text=asked.question,
                        lang=lang,
                        cluster=f"article-{one.article}",
                        relevant={} if asked.is_impossible else {one.memory: 2},
                        expects_empty=asked.is_impossible,
                    ),
                )

    return Stream(info, memories, questions, str(file), str(file), notes=notes)


class _Place(NamedTuple):
    """A paragraph: `memory` is the name of the first one of its text."""

    article: int
    piece: Piece
    name: str
    memory: str
    paragraph: _Paragraph


def _paragraphs(file: Path, skips: Skips) -> Iterator[_Place]:
    """Every paragraph. Texts are known again by their hashes, so that none is kept."""
    first: dict[bytes, str] = {}
    names: set[str] = set()
    for number, element in enumerate(elements(file, "data"), 1):
        try:
            article = element.decode(_Article)
        except InputError as error:
            skips.bad(str(error))
            continue
        for place, piece, paragraph in element.parts(article.paragraphs, _Paragraph, skips):
            name = paragraph.id or f"{number}-{place}"
            memory = first.setdefault(hashlib.sha256(paragraph.context.encode()).digest(), name)
            if memory == name and name in names:
                skips.bad(f"{piece.where}: paragraph id {name!r} occurs twice; ids must be unique")
                continue
            names.add(name)
            yield _Place(number, piece, name, memory, paragraph)
