"""A log of past recalls as an unlabelled set, masked, ready to be judged.

Each different query (after masking, white space evened out) of a session becomes a question, however often it was
asked. The memories are those of a file, or what the log itself has of them. What was returned and used labels
nothing: it is what one system showed, and a system must not be its own judge. It says which pairs to read first.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from recallbench.datasets.jsonl import nearest, one_line, rows
from recallbench.datasets.model import Question, Session, SetInfo
from recallbench.datasets.readers import native
from recallbench.datasets.skips import Skips
from recallbench.datasets.write import whole, write_info, write_memories, write_questions
from recallbench.labelling.judging import Judgement, write
from recallbench.labelling.log_rows import FIELDS, LoggedHit, recalls
from recallbench.labelling.masking import Masker
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory

POOL = "pool.csv"


@dataclass(frozen=True, slots=True)
class FromLog:
    """What came of a log. recalls: rows read; questions: different ones kept; memories: rows written; pairs: to judge;
    masked: different values by kind; skipped: bad rows and returned ids without a text."""

    recalls: int
    questions: int
    memories: int
    pairs: int
    masked: Mapping[str, int]
    skipped: int
    reasons: tuple[str, ...]


@dataclass(eq=False)
class _Asked:
    """One question as it was asked, once or often."""

    session: Session
    times: int = 0
    first: dt.datetime | None = None
    returned: set[str] = field(default_factory=set)
    used: Counter[str] = field(default_factory=Counter)


def from_log(
    log: Path,
    out: Path,
    masker: Masker,
    *,
    memories: Path | None = None,
    names: Mapping[str, str] | None = None,
    table: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    skip_bad: bool = False,
) -> FromLog:
    """Write the new folder `out`: a native set without labels, and `pool.csv` with the pairs that were returned.

    memories: a JSON Lines file of memory rows, or the folder of a set; without it the log's hits must hold texts.
    names, table: see `log_rows.recalls`. sample: so many questions, drawn with `seed`, in the order of the log.
    Raises InputError for bad rows (with `skip_bad` they are counted), an id that has no memory, an `out` that is there.
    """
    skips = Skips(skip_bad)
    known = {memory.id: memory for memory in _memories(memories, skips)} if memories is not None else {}
    asked, seen = _asked(log, masker, skips, names or {}, table, known, memories is None)
    if not asked:
        raise InputError(f"{log}: no recall in it")
    if not known:
        raise InputError(f"{log}: its recalls returned no memory; give --memories FILE")
    kept = list(asked)
    if sample is not None and sample < len(kept):
        places = sorted(random.Random(seed).sample(range(len(kept)), sample))
        kept = [kept[place] for place in places]
    ids = _masked_ids(known, masker)
    questions, pairs = [], []
    for number, key in enumerate(kept, 1):
        row = asked[key]
        used = ", ".join(f"{ids[name]} ({count})" for name, count in row.used.most_common() if name in ids)
        question = Question(
            id=f"log-{number:04d}",
            text=key[0],
            session=row.session,
            now=row.first,
            note=("asked once" if row.times == 1 else f"asked {row.times} times") + (f"; used: {used}" if used else ""),
        )
        questions.append(question)
        held = sorted({ids[name] for name in (*row.returned, *row.used) if name in ids})
        random.Random(f"{seed} {question.id}").shuffle(held)
        pairs += [Judgement(question.id, name) for name in held]
    with whole(out) as folder:
        count = write_memories(folder, (_masked(memory, ids, masker) for memory in known.values()))
        write_questions(folder, questions)
        told = ", ".join(f"{number} {kind}" for kind, number in sorted(masker.counts.items())) or "nothing"
        info = SetInfo(
            name=out.name,
            version="0.1",
            provenance=f"from a log of {seen} recalls; masked: {told}; not judged",
        )
        write_info(folder, info)
        write(folder / POOL, native.read(folder), pairs)
    return FromLog(
        seen, len(questions), count, len(pairs), dict(sorted(masker.counts.items())), skips.count, tuple(skips.listed())
    )


def _memories(source: Path, skips: Skips) -> Iterator[Memory]:
    if source.is_dir():
        found, _ = native.memories_of(source)
        lines = found(skips)
    else:
        lines = ((f"{source}:{line}", row) for line, row in rows(source, Memory, skips))
    first: dict[str, str] = {}
    for where, memory in lines:
        if memory.id in first:
            skips.bad(f"{where}: memory id {memory.id!r} is already at {first[memory.id]}")
            continue
        first[memory.id] = where
        yield msgspec.structs.replace(memory, source=None, corpus="main")  # a log knows no corpora; a source is a path


def _asked(
    log: Path,
    masker: Masker,
    skips: Skips,
    names: Mapping[str, str],
    table: str | None,
    known: dict[str, Memory],
    learn: bool,
) -> tuple[dict[tuple[str, Session], _Asked], int]:
    """The different questions in the order of the log, and how many recalls there were. Learns memories if asked."""
    asked: dict[tuple[str, Session], _Asked] = {}
    seen = 0
    for where, recall in recalls(log, skips, names, table):
        hits = list(recall.hits())
        if learn:
            for hit in hits:
                _learn(known, hit)
        missing = [hit.id for hit in hits if hit.id not in known]
        missing += [name for name in recall.used if name not in known]
        if missing:
            skips.bad(
                f"{where}: no text of memory {missing[0]!r}; give --memories FILE, or hits as objects with id and text"
            )
        seen += 1
        told = recall.session
        session = Session(
            agent_scope=_scope(told.agent_scope, masker),
            workspace_scope=_scope(told.workspace_scope, masker),
            channel=_scope(told.channel, masker),
        )
        key = one_line(masker(recall.query)), session
        row = asked.setdefault(key, _Asked(session))
        row.times += 1
        row.first = row.first or recall.time
        row.returned.update(hit.id for hit in hits if hit.id in known)
        row.used.update(recall.used)
    return asked, seen


def _learn(known: dict[str, Memory], hit: LoggedHit) -> None:
    """The newest text counts: a memory may have been edited between two recalls."""
    if hit.words or hit.title:
        known[hit.id] = Memory(id=hit.id, title=hit.title, content=hit.words)


def _scope(value: str | None, masker: Masker) -> str | None:
    """A scope is often a path or an address; equal ones stay equal, since a value keeps its mark."""
    return None if value is None else masker(value)


def _masked_ids(known: Mapping[str, Memory], masker: Masker) -> dict[str, str]:
    """An id may be a path or an address; masked ones stay different, since marks are numbered."""
    out = {name: masker(name) for name in known}
    if len(set(out.values())) != len(out):
        raise InputError("two memory ids are equal once masked; give --also patterns that are less wide")
    return out


def _masked(memory: Memory, ids: Mapping[str, str], masker: Masker) -> Memory:
    return msgspec.structs.replace(
        memory,
        id=ids[memory.id],
        title=masker(memory.title),
        content=masker(memory.content),
        agent_scope=_scope(memory.agent_scope, masker),
        workspace_scope=_scope(memory.workspace_scope, masker),
        tags=tuple(masker(tag) for tag in memory.tags),
        supersedes=ids.get(memory.supersedes) if memory.supersedes else None,
        entities={masker(name): link for name, link in memory.entities.items()},
    )


def field_names(pairs: Sequence[str]) -> dict[str, str]:
    """`--field query=q` as a mapping. Raises InputError for a field that there is not."""
    out = {}
    for pair in pairs:
        name, _, own = pair.partition("=")
        if name not in FIELDS or not own:
            raise InputError(f"--field {pair}: write FIELD=NAME; {nearest(name, FIELDS)}")
        out[name] = own
    return out
