"""LoCoMo (Maharana et al., ACL 2024): ten long conversations, questions, and the turns that answer them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import msgspec

from recallbench.datasets import jsonl
from recallbench.datasets.model import LabelledSet, Question, SetInfo, Text
from recallbench.datasets.readers.document import Piece, elements
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import Stream, gather
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory

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
_CLEAN = re.compile(r"D[1-9]\d*:[1-9]\d*")


class _Turn(msgspec.Struct, frozen=True):
    speaker: str
    dia_id: Text
    text: str
    blip_caption: str | None = None


class _Asked(msgspec.Struct, frozen=True):
    question: str
    category: int
    evidence: tuple[str, ...] = ()


class _Sample(msgspec.Struct, frozen=True):
    sample_id: Text
    conversation: Mapping[str, msgspec.Raw]
    qa: tuple[msgspec.Raw, ...]


def read(path: Path) -> LabelledSet:
    """Read `locomo10.json`, or the folder that holds it.

    Each conversation is a corpus and a cluster, each turn a memory with the time of its session. Evidence has
    grade 1. `notes` lists every evidence string that was mended, dropped or absent; a question without any
    that can be read stays, without labels. Raises InputError where the file is not of this form.
    """
    return gather(stream(path))


def stream(path: Path) -> Stream:
    """As `read`; one conversation is held at a time."""
    file = jsonl.find(path, FILE) if path.is_dir() else path
    if file is None:
        raise InputError(f"{path}: holds no {FILE}; `recallbench datasets fetch locomo` downloads it")
    notes: list[str] = []

    def memories(skips: Skips) -> Iterator[tuple[str, Memory]]:
        for piece, sample in _samples(file, skips):
            yield from _turns(piece, sample, skips)

    def questions(skips: Skips) -> Iterator[tuple[str, Question]]:
        notes.clear()
        quiet = skips.quiet()  # bad conversations and turns are told while the memories are read
        for piece, sample in _samples(file, quiet):
            turns = {memory.id for _, memory in _turns(piece, sample, quiet)}
            for number, place, asked in piece.parts(sample.qa, _Asked, skips):
                yield place.where, _question(asked, f"{sample.sample_id}-q{number}", sample.sample_id, turns, notes)

    return Stream(INFO, memories, questions, str(file), str(file), notes=notes)


def _samples(file: Path, skips: Skips) -> Iterator[tuple[Piece, _Sample]]:
    seen: dict[str, str] = {}
    for piece in elements(file):
        try:
            sample = piece.decode(_Sample)
        except InputError as error:
            skips.bad(str(error))
            continue
        if sample.sample_id in seen:
            name = sample.sample_id
            skips.bad(f"{piece.where}: conversation {name!r} is already at {seen[name]}; ids must be unique")
            continue
        seen[sample.sample_id] = piece.where
        yield piece, sample


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


def _turns(piece: Piece, sample: _Sample, skips: Skips) -> Iterator[tuple[str, Memory]]:
    """The turns of a conversation, sessions in the order of their numbers."""
    parts = sample.conversation
    numbers = sorted(int(found[1]) for key in parts if (found := _SESSION.match(key)))
    for number in numbers:
        key = f"session_{number}"
        where = f"{piece.where}: conversation {sample.sample_id!r}, {key}"
        try:
            raws = msgspec.json.decode(parts[key], type=tuple[msgspec.Raw, ...])
            written = msgspec.json.decode(parts[f"{key}_date_time"]) if f"{key}_date_time" in parts else None
            moment = _moment(written, f"{where}_date_time")
        except msgspec.ValidationError as error:
            skips.bad(f"{where}: {jsonl.invalid(error)}")
            continue
        except InputError as error:
            skips.bad(str(error))
            continue
        for _, place, turn in piece.parts(raws, _Turn, skips):
            caption = f" [{turn.blip_caption}]" if turn.blip_caption else ""
            yield (
                place.where,
                Memory(
                    id=turn.dia_id,
                    corpus=sample.sample_id,
                    content=f"{turn.speaker}: {turn.text}{caption}",
                    created_at=moment,
                    updated_at=moment,
                ),
            )


def _question(asked: _Asked, name: str, corpus: str, turns: Collection[str], notes: list[str]) -> Question:
    relevant: dict[str, int] = {}
    for written in asked.evidence:
        ids = [f"D{session}:{turn}" for session, turn in _EVIDENCE.findall(written)]
        if not _CLEAN.fullmatch(written):
            notes.append(
                f"{name}: evidence {written!r} read as {', '.join(ids)}"
                if ids
                else f"{name}: evidence {written!r} dropped: it names no turn"
            )
        for one in ids:
            if one in turns:
                relevant[one] = 1
            else:
                notes.append(f"{name}: evidence {one!r} dropped: no such turn")
    if not relevant:
        notes.append(f"{name}: no evidence that can be read; the question has no label")
    return Question(
        id=name,
        text=asked.question,
        corpus=corpus,
        lang="en",
        categories=(CATEGORIES.get(asked.category, f"category-{asked.category}"),),
        cluster=corpus,
        relevant=relevant,
    )
