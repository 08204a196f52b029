"""LoCoMo (Maharana et al., ACL 2024): ten long conversations, questions, and the turns that answer them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from recallbench.datasets import jsonl
from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallstack.errors import InputError
from recallstack.rows import Corpus, Memory

FILE = "locomo10.json"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""Names of the numbers, as in the paper's tables and the authors' evaluation script."""
INFO = SetInfo(
    name="locomo",
    version="10",
    description="LoCoMo: questions on ten long conversations between two people",
    languages=("en",),
    licence="CC BY-NC 4.0",
    provenance="https://github.com/snap-research/locomo, data/locomo10.json",
    primary_measure="nDCG@5",
    default_rel=1,
    depth=100,
    memory_unit="a turn of a conversation: speaker: text [image caption]",
)
_SESSION = re.compile(r"session_(\d+)$")
_EVIDENCE = re.compile(r"D:?0*(\d+):0*(\d+)")
_CLEAN = re.compile(r"D[1-9]\d*:[1-9]\d*$")


class _Turn(msgspec.Struct, frozen=True):
    speaker: str
    dia_id: str
    text: str
    blip_caption: str | None = None


class _Asked(msgspec.Struct, frozen=True):
    question: str
    category: int
    evidence: tuple[str, ...] = ()


class _Sample(msgspec.Struct, frozen=True):
    sample_id: str
    conversation: Mapping[str, Any]
    qa: tuple[_Asked, ...]


def read(path: Path) -> LabelledSet:
    """Read `locomo10.json`, or the folder that holds it.

    Each conversation is a corpus and a cluster, each turn a memory with the time of its session. Evidence has
    grade 1. `notes` lists every evidence string that was mended, dropped or absent; a question without any
    that can be read stays, without labels. Raises InputError where the file is not of this form.
    """
    file = jsonl.find(path, FILE) if path.is_dir() else path
    if file is None:
        raise InputError(f"{path}: holds no {FILE}; `recallbench datasets fetch locomo` downloads it")
    samples = jsonl.document(file, list[_Sample])
    if not samples:
        raise InputError(f"{file}: holds no conversation")
    corpora: dict[str, Corpus] = {}
    questions: list[Question] = []
    notes: list[str] = []
    for sample in samples:
        name = sample.sample_id
        if name in corpora:
            raise InputError(f"{file}: conversation {name!r} occurs twice")
        corpora[name] = Corpus.of(name, _turns(sample, f"{file}: conversation {name!r}"))
        for number, asked in enumerate(sample.qa, 1):
            questions.append(_question(asked, f"{name}-q{number}", corpora[name], notes))
    return hashed(INFO, corpora, questions, notes)


def _moment(written: object, where: str) -> dt.datetime:
    """`1:56 pm on 8 May, 2023`, read without the locale and as UTC, for the data names no zone."""
    found = re.fullmatch(r"\s*(\d+):(\d+) ([ap]m) on (\d+) (\w+), (\d+)\s*", str(written))
    month = found and found[5][:3].lower()
    months = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
    if not found or month not in months:
        raise InputError(f"{where} is {written!r}; expected a time such as '1:56 pm on 8 May, 2023'")
    hour = int(found[1]) % 12 + (12 if found[3] == "pm" else 0)
    try:
        return dt.datetime(int(found[6]), months.index(month) + 1, int(found[4]), hour, int(found[2]), tzinfo=dt.UTC)
    except ValueError as error:
        raise InputError(f"{where} is {written!r}: {error}") from None


def _turns(sample: _Sample, where: str) -> list[Memory]:
    out = []
    numbers = sorted(int(found[1]) for key in sample.conversation if (found := _SESSION.match(key)))
    for number in numbers:
        key = f"session_{number}"
        try:
            turns = msgspec.convert(sample.conversation[key], list[_Turn])
        except msgspec.ValidationError as error:
            raise InputError(f"{where}, {key}: {jsonl.one_line(str(error))}") from None
        moment = _moment(sample.conversation.get(f"{key}_date_time"), f"{where}, {key}_date_time")
        for turn in turns:
            caption = f" [{turn.blip_caption}]" if turn.blip_caption else ""
            out.append(
                Memory(
                    id=turn.dia_id,
                    corpus=sample.sample_id,
                    content=f"{turn.speaker}: {turn.text}{caption}",
                    created_at=moment,
                    updated_at=moment,
                )
            )
    return out


def _question(asked: _Asked, name: str, corpus: Corpus, notes: list[str]) -> Question:
    relevant: dict[str, int] = {}
    for written in asked.evidence:
        ids = [f"D{session}:{turn}" for session, turn in _EVIDENCE.findall(written)]
        if not _CLEAN.match(written):
            notes.append(
                f"{name}: evidence {written!r} read as {', '.join(ids)}"
                if ids
                else f"{name}: evidence {written!r} dropped: it names no turn"
            )
        for one in ids:
            if one in corpus.index:
                relevant[one] = 1
            else:
                notes.append(f"{name}: evidence {one!r} dropped: no such turn")
    if not relevant:
        notes.append(f"{name}: no evidence that can be read; the question has no label")
    return Question(
        id=name,
        text=asked.question,
        corpus=corpus.name,
        lang="en",
        categories=(CATEGORIES.get(asked.category, f"category-{asked.category}"),),
        cluster=corpus.name,
        relevant=relevant,
    )
