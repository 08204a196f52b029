"""A labelled set read row by row, for corpora that need not fit in memory."""

from __future__ import annotations

import dataclasses
import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.datasets.resolve import Place, Resolver
from recallbench.datasets.skips import Skips
from recallstack.errors import InputError
from recallstack.ranking.rows import Corpus, Memory


@dataclass(frozen=True, eq=False)
class Stream:
    """A labelled set whose memories and questions are read anew at each call, bad rows given to a Skips.

    memories, questions: (where, row); `where` is `file:line` or as near as the format allows, and begins the
    errors on that row. Labels of a question are as written (QuestionRow) or ids. memories_in, questions_in: the
    files, for errors on a set without any. place: where a label is written, if not in the question's row.
    notes: what a reader mends or leaves out by the rules of its format; filled while it reads questions.
    """

    info: SetInfo
    memories: Callable[[Skips], Iterator[tuple[str, Memory]]]
    questions: Callable[[Skips], Iterator[tuple[str, Question]]]
    memories_in: str
    questions_in: str
    place: Place | None = None
    notes: list[str] = field(default_factory=list)


def _key(memory: Memory) -> int:
    """64 bits of a hash of (corpus, id): eight bytes a row in place of its id."""
    digest = hashlib.blake2b(f"{memory.corpus}\0{memory.id}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


@dataclass(frozen=True, eq=False)
class Checked:
    """The questions of a stream with labels that all name a memory, and which rows of it to leave out.

    rows: memories of the first pass. repeated: keys of ids that occur more than once (or, with a chance of
    about rows^2/2^65, share a hash: the ids themselves are compared while rows are passed on). notes: those of
    the reader, and the questions without text (the CMRC 2018 trial has two: they are read, and told). snippets: the
    words by which labels name memories, as in `LabelledSet`.
    """

    stream: Stream
    questions: tuple[Question, ...]
    rows: int
    repeated: frozenset[int]
    skips: Skips
    notes: tuple[str, ...] = ()
    snippets: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    def memories(self) -> Iterator[Memory]:
        """The rows, each id once. What was bad in the first pass was told there and is not told again.

        Raises InputError if the files changed since the first pass.
        """
        held: dict[tuple[str, str], str] = {}
        count = 0
        for where, memory in self.stream.memories(self.skips.quiet()):
            count += 1
            if self.repeated and _key(memory) in self.repeated:
                pair = (memory.corpus, memory.id)
                if pair in held:
                    self.skips.bad(
                        f"{where}: memory id {memory.id!r} is already at {held[pair]}; ids must be unique in a corpus"
                    )
                    continue
                held[pair] = where
            yield memory
        if count != self.rows:
            raise InputError(f"{self.stream.memories_in}: has changed while it was read; read it again")


def check(stream: Stream, skips: Skips) -> Checked:
    """One pass over the questions and the memories, in memory bounded by the labels and 8 bytes a memory.

    Raises InputError (or counts, if `skips` allows) for bad rows, a repeated question id, an unknown corpus, and
    labels that name no memory; and in any case where no memory or no question is left.
    """
    asked = list(stream.questions(skips))
    if not asked:
        skipped = [f"{skips.count} skipped, the first: {skips.reasons[0]}"] if skips.reasons else []
        why = "; ".join(["", *stream.notes, *skipped])
        raise InputError(f"{stream.questions_in}: holds no question{why}")
    resolver = Resolver(stream.place)
    for _, row in asked:
        resolver.ask(row)
    keys = array("Q")
    for _, memory in stream.memories(skips):
        keys.append(_key(memory))
        resolver.see(memory)
    if not keys:
        raise InputError(f"{stream.memories_in}: holds no memory")
    questions = []
    for where, row in asked:
        try:
            questions.append(resolver.question(row, where))
        except InputError as error:
            skips.bad(str(error))
    resolver.finish(skips)
    if not questions:
        raise InputError(f"{stream.questions_in}: no question is left")
    ordered = np.sort(np.frombuffer(keys, dtype=np.uint64))
    repeated = frozenset(int(one) for one in ordered[1:][ordered[1:] == ordered[:-1]])
    notes = [*stream.notes, *(f"question {one.id!r} has no text" for one in questions if not one.text.strip())]
    return Checked(stream, tuple(questions), len(keys), repeated, skips, tuple(notes), resolver.snippets())


def corpora_of(memories: Iterable[Memory]) -> dict[str, Corpus]:
    """Corpora by name, in the order in which they first appear."""
    parts: dict[str, list[Memory]] = {}
    for memory in memories:
        parts.setdefault(memory.corpus, []).append(memory)
    return {name: Corpus.of(name, part) for name, part in parts.items()}


def gather(stream: Stream, skips: Skips | None = None) -> LabelledSet:
    """The stream as a labelled set in memory; its files are read once. Raises InputError as `check` does."""
    skips = skips or Skips()
    held: list[tuple[str, Memory]] = []

    def once(told: Skips) -> Iterator[tuple[str, Memory]]:
        if not held:
            held.extend(stream.memories(told))
        return iter(held)

    checked = check(dataclasses.replace(stream, memories=once), skips)
    corpora = corpora_of(checked.memories())
    return hashed(stream.info, corpora, checked.questions, [*checked.notes, *skips.listed()], checked.snippets)
