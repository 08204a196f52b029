"""LongMemEval (Wu et al. 2025): each question has its own haystack of chat sessions."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from recallbench.datasets import jsonl
from recallbench.datasets.model import LabelledSet, Question, SetInfo, Text
from recallbench.datasets.readers.document import elements
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import Stream, gather
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory

Granularity = Literal["session", "turn"]
ABSTENTION = "_abs"
"""End of the id of a question that the haystack does not answer."""
_DATE = re.compile(r"(\d{4})/(\d{2})/(\d{2})(?: \(\w+\))?(?: (\d{2}):(\d{2}))?$")


class _Turn(msgspec.Struct, frozen=True):
    role: str
    content: str
    has_answer: bool | None = None


class _Item(msgspec.Struct, frozen=True):
    question_id: Text
    question: str
    haystack_session_ids: tuple[Text, ...]
    haystack_sessions: tuple[tuple[_Turn, ...], ...]
    question_type: str = ""
    question_date: str | None = None
    haystack_dates: tuple[str, ...] = ()
    answer_session_ids: tuple[str, ...] = ()


def read(path: Path) -> LabelledSet:
    """A file of LongMemEval; one memory a session, evidence from `answer_session_ids`."""
    return gather(stream(path))


def read_turns(path: Path) -> LabelledSet:
    """A file of LongMemEval; one memory a turn, evidence from `has_answer`."""
    return gather(stream_turns(path))


def stream(path: Path) -> Stream:
    """As `read`; one question with its haystack is held at a time."""
    return _stream(path, "session")


def stream_turns(path: Path) -> Stream:
    """As `read_turns`; one question with its haystack is held at a time."""
    return _stream(path, "turn")


def _stream(path: Path, granularity: Granularity) -> Stream:
    """Each question is a corpus of its own. Evidence has grade 1; a question whose id ends in `_abs` expects
    nothing and has no label. A session that a haystack repeats gets the ids `ID~2`, `ID~3`.
    """
    found = sorted(path.glob("longmemeval*.json*")) if path.is_dir() else [path]
    if len(found) != 1:
        raise InputError(f"{path}: holds {len(found)} files longmemeval*.json; name the one to read")
    file, cut = found[0], _by_session if granularity == "session" else _by_turn
    notes: list[str] = []

    def memories(skips: Skips) -> Iterator[tuple[str, Memory]]:
        for where, item, sessions in _items(file, skips, []):
            for memory in cut(item, sessions)[0]:
                yield where, memory

    def questions(skips: Skips) -> Iterator[tuple[str, Question]]:
        notes.clear()
        for where, item, sessions in _items(file, skips.quiet(), notes):  # told while the memories are read
            evidence = cut(item, sessions)[1]
            abstains = item.question_id.endswith(ABSTENTION)
            if not abstains and not evidence:
                notes.append(f"{item.question_id}: no {granularity} is marked as evidence; the question has no label")
            yield (
                where,
                Question(
                    id=item.question_id,
                    text=item.question,
                    corpus=item.question_id,
                    lang="en",
                    categories=(item.question_type,) if item.question_type else (),
                    now=_moment(item.question_date, where),
                    relevant={} if abstains else dict.fromkeys(evidence, 1),
                    expects_empty=abstains,
                ),
            )

    return Stream(_info(file, granularity), memories, questions, str(file), str(file), notes=notes)


def _items(file: Path, skips: Skips, notes: list[str]) -> Iterator[tuple[str, _Item, list[_Session]]]:
    """(file:line, item, its sessions) of each item that can be read."""
    seen: dict[str, str] = {}
    for piece in elements(file):
        where = piece.where
        try:
            item = piece.decode(_Item)
            start = f"{where}: question {item.question_id!r}"
            if item.question_id in seen:
                raise InputError(f"{start} is already at {seen[item.question_id]}; question ids must be unique")
            _moment(item.question_date, start)
            told: list[str] = []
            sessions = _sessions(item, start, told)
        except InputError as error:
            skips.bad(str(error))
            continue
        seen[item.question_id] = where
        notes.extend(told)
        yield where, item, sessions


def _info(file: Path, granularity: Granularity) -> SetInfo:
    return SetInfo(
        name=file.name.split(".")[0] + ("-turns" if granularity == "turn" else ""),
        description="LongMemEval: questions on histories of chat sessions",
        languages=("en",),
        licence="MIT",
        provenance="https://github.com/xiaowu0162/LongMemEval",
        default_rel=1,
        depth=50,
        memory_unit=f"a {granularity}; each line is role: text",
    )


def _moment(written: str | None, where: str) -> dt.datetime | None:
    """`2023/05/20 (Sat) 02:21` as UTC, for the data names no zone."""
    if written is None:
        return None
    found = _DATE.match(written.strip())
    if not found:
        raise InputError(f"{where}: date {written!r}; expected one such as '2023/05/20 (Sat) 02:21'")
    try:
        return dt.datetime(*(int(part or 0) for part in found.groups()), tzinfo=dt.UTC)  # type: ignore[misc,arg-type]
    except ValueError as error:
        raise InputError(f"{where}: date {written!r}: {error}") from None


class _Session(msgspec.Struct, frozen=True):
    id: str
    source: str
    turns: Sequence[_Turn]
    moment: dt.datetime | None


def _sessions(item: _Item, where: str, notes: list[str]) -> list[_Session]:
    ids, sessions, dates = item.haystack_session_ids, item.haystack_sessions, item.haystack_dates
    if len(ids) != len(sessions) or (dates and len(dates) != len(sessions)):
        raise InputError(
            f"{where}: {len(sessions)} sessions, {len(ids)} session ids and {len(dates)} dates; they must be as many"
        )
    lost = [one for one in item.answer_session_ids if one not in ids]
    if lost:
        notes.append(f"{item.question_id}: evidence {jsonl.listed(lost)} dropped: no such session")
    times: Counter[str] = Counter()
    out = []
    for place, (name, turns) in enumerate(zip(ids, sessions, strict=True)):
        times[name] += 1
        mine = name if times[name] == 1 else f"{name}~{times[name]}"
        if mine != name:
            notes.append(f"{item.question_id}: session {name!r} occurs again: named {mine!r}")
        out.append(_Session(mine, name, turns, _moment(dates[place] if dates else None, where)))
    return out


def _memory(name: str, item: _Item, content: str, moment: dt.datetime | None) -> Memory:
    return Memory(id=name, corpus=item.question_id, content=content, created_at=moment, updated_at=moment)


def _by_session(item: _Item, sessions: Sequence[_Session]) -> tuple[list[Memory], list[str]]:
    memories = [
        _memory(one.id, item, "\n".join(f"{t.role}: {t.content}" for t in one.turns), one.moment) for one in sessions
    ]
    return memories, [one.id for one in sessions if one.source in item.answer_session_ids]


def _by_turn(item: _Item, sessions: Sequence[_Session]) -> tuple[list[Memory], list[str]]:
    """Turn ids are `SESSION_NUMBER`, counted from 1 over all turns, as in the authors' retrieval script."""

    def turns() -> Iterator[tuple[str, _Turn, dt.datetime | None]]:
        for one in sessions:
            for number, turn in enumerate(one.turns, 1):
                yield f"{one.id}_{number}", turn, one.moment

    memories = [_memory(name, item, f"{t.role}: {t.content}", moment) for name, t, moment in turns()]
    return memories, [name for name, turn, _ in turns() if turn.has_answer]
