"""SQuAD style reading comprehension (SQuAD, CMRC 2018, DRCD): the paragraph is the memory to find."""

from __future__ import annotations

from pathlib import Path

import msgspec

from recallbench.datasets import jsonl
from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallstack.errors import InputError
from recallstack.rows import Corpus, Memory

CMRC_FILE = "cmrc2018_trial.json"


class _Asked(msgspec.Struct, frozen=True):
    id: str
    question: str
    is_impossible: bool = False


class _Paragraph(msgspec.Struct, frozen=True):
    context: str
    qas: tuple[_Asked, ...]
    id: str = ""


class _Article(msgspec.Struct, frozen=True):
    paragraphs: tuple[_Paragraph, ...]
    title: str = ""


class _File(msgspec.Struct, frozen=True):
    data: tuple[_Article, ...]


def _only_file(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = sorted(one for end in ("*.json", "*.json.gz") for one in path.glob(end))
    if len(found) != 1:
        raise InputError(f"{path}: holds {len(found)} .json files; name the one to read")
    return found[0]


def read(path: Path) -> LabelledSet:
    """A SQuAD style JSON file, or the folder that holds only it. The set has the name of the file."""
    file = _only_file(path)
    info = SetInfo(
        name=file.name.split(".")[0],
        description="SQuAD style reading comprehension",
        memory_unit="a paragraph",
    )
    return _read(file, info, "")


def read_cmrc(path: Path) -> LabelledSet:
    """CMRC 2018 (Cui et al. 2019): the file, or the folder with `cmrc2018_trial.json`."""
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
    return _read(file, info, "zh")


def _read(file: Path, about: SetInfo, lang: str) -> LabelledSet:
    """Paragraphs of the same text are one memory; the paragraph of a question has grade 2.

    An impossible question (SQuAD 2.0) expects nothing. The cluster of a question is its article.
    """
    memories: dict[str, Memory] = {}
    where: dict[str, str] = {}
    questions: dict[str, Question] = {}
    notes: list[str] = []
    for number, article in enumerate(jsonl.document(file, _File).data, 1):
        for place, paragraph in enumerate(article.paragraphs, 1):
            name = paragraph.id or f"{number}-{place}"
            if paragraph.context in where:
                notes.append(f"paragraph {name!r} has the text of {where[paragraph.context]!r}: one memory")
                name = where[paragraph.context]
            elif name in memories:
                raise InputError(f"{file}: paragraph id {name!r} occurs twice with different texts")
            where[paragraph.context] = name
            memories[name] = Memory(id=name, content=paragraph.context)
            for asked in paragraph.qas:
                if asked.id in questions:
                    raise InputError(f"{file}: question id {asked.id!r} occurs twice")
                questions[asked.id] = Question(
                    id=asked.id,
                    text=asked.question,
                    lang=lang,
                    cluster=f"article-{number}",
                    relevant={} if asked.is_impossible else {name: 2},
                    expects_empty=asked.is_impossible,
                )
    if not questions:
        raise InputError(f"{file}: holds no question")
    return hashed(about, {"main": Corpus.of("main", memories.values())}, list(questions.values()), notes)
