"""A labelled set read row by row, for corpora that need not fit in memory."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec
import numpy as np

from recallbench.datasets.hashing import hashed
from recallbench.datasets.jsonl import listed
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.datasets.native import corpora_of
from recallstack.errors import InputError
from recallstack.rows import Memory

SHOWN = 100
"""Skipped rows that are kept with their reason; all are counted."""


@dataclass(eq=False)
class Skips:
    """What is done with a bad row: raised as InputError, or with `allowed` counted and left out.

    reasons: the first SHOWN reasons, one line each; count: all of them.
    """

    allowed: bool = False
    count: int = 0
    reasons: list[str] = field(default_factory=list)

    def bad(self, reason: str) -> None:
        if not self.allowed:
            raise InputError(reason)
        self.count += 1
        if len(self.reasons) < SHOWN:
            self.reasons.append(reason)


@dataclass(frozen=True, eq=False)
class Stream:
    """A labelled set whose memories and questions are read anew at each call, bad rows given to a Skips.

    notes: what a reader mends or leaves out by the rules of its format; filled while it reads questions.
    """

    info: SetInfo
    memories: Callable[[Skips], Iterator[Memory]]
    questions: Callable[[Skips], Iterator[Question]]
    notes: list[str] = field(default_factory=list)


def of_set(labelled: LabelledSet) -> Stream:
    """A loaded set as a stream."""
    return Stream(
        labelled.info,
        lambda _skips: (memory for corpus in labelled.corpora.values() for memory in corpus.memories),
        lambda _skips: iter(labelled.questions),
        list(labelled.notes),
    )


def _key(corpus: str, memory: str) -> int:
    """64 bits of a hash of (corpus, id): eight bytes a row in place of its id."""
    digest = hashlib.blake2b(f"{corpus}\0{memory}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


@dataclass(frozen=True, eq=False)
class Checked:
    """The questions of a stream with labels that all name a memory, and which rows of it to leave out.

    repeated: keys of ids that occur more than once (or, with a chance of about n^2/2^65, share a hash: the
    ids themselves are compared while rows are passed on).
    """

    stream: Stream
    questions: tuple[Question, ...]
    repeated: frozenset[int]
    skips: Skips

    def memories(self) -> Iterator[Memory]:
        """The rows, each id once. What was bad in the first pass was told there and is not told again."""
        quiet = Skips(self.skips.allowed)
        held: set[tuple[str, str]] = set()
        for memory in self.stream.memories(quiet):
            if self.repeated and _key(memory.corpus, memory.id) in self.repeated:
                pair = (memory.corpus, memory.id)
                if pair in held:
                    self.skips.bad(f"memory id {memory.id!r} occurs again in corpus {memory.corpus!r}")
                    continue
                held.add(pair)
            yield memory


def check(stream: Stream, skips: Skips) -> Checked:
    """One pass over the memories and the questions, in memory bounded by the questions and 8 bytes a memory.

    Raises InputError (or counts, if `skips` allows) for a repeated question id, an unknown corpus, and labels
    that name no memory; and in any case where no memory or no question is left.
    """
    asked = list(stream.questions(skips))
    wanted: dict[str, set[str]] = {}
    for one in asked:
        wanted.setdefault(one.corpus, set()).update(one.relevant, one.not_relevant, one.forbidden)
    found: dict[str, set[str]] = {}
    keys = array("Q")
    for memory in stream.memories(skips):
        keys.append(_key(memory.corpus, memory.id))
        have = found.setdefault(memory.corpus, set())
        if memory.id in wanted.get(memory.corpus, ()):
            have.add(memory.id)
    name = stream.info.name
    if not keys:
        raise InputError(f"{name}: holds no memory")
    ordered = np.sort(np.frombuffer(keys, dtype=np.uint64))
    repeated = frozenset(int(one) for one in ordered[1:][ordered[1:] == ordered[:-1]])
    questions: dict[str, Question] = {}
    lost: list[tuple[str, str]] = []
    for one in asked:
        if one.id in questions:
            skips.bad(f"{name}: question id {one.id!r} occurs twice; ids must be unique")
        elif one.corpus not in found:
            skips.bad(f"{name}: question {one.id!r}: no memory is in corpus {one.corpus!r}")
        else:
            questions[one.id] = _keep(one, found[one.corpus], lost)
    if lost and not skips.allowed:
        ids = list(dict.fromkeys(label for _, label in lost))
        raise InputError(
            f"{name}: question {lost[0][0]!r}: {len(ids)} label(s) of this set name no memory: {listed(ids)};"
            f" mend them, or leave them out with --skip-bad"
        )
    for question, label in lost:
        skips.bad(f"{name}: question {question!r}: label {label!r} names no memory")
    if not questions:
        raise InputError(f"{name}: no question is left")
    return Checked(stream, tuple(questions.values()), repeated, skips)


def _keep(question: Question, have: set[str], lost: list[tuple[str, str]]) -> Question:
    """`question` with the labels that `have` holds; the others are added to `lost`."""
    labels = (*question.relevant, *question.not_relevant, *question.forbidden)
    missing = [label for label in labels if label not in have]
    if not missing:
        return question
    lost.extend((question.id, label) for label in missing)
    return msgspec.structs.replace(
        question,
        relevant={label: grade for label, grade in question.relevant.items() if label in have},
        not_relevant=tuple(label for label in question.not_relevant if label in have),
        forbidden=tuple(label for label in question.forbidden if label in have),
    )


def gather(stream: Stream, skips: Skips | None = None) -> LabelledSet:
    """The stream as a labelled set in memory."""
    checked = check(stream, skips or Skips())
    corpora = corpora_of(checked.memories())
    return hashed(stream.info, corpora, checked.questions, [*stream.notes, *checked.skips.reasons])
