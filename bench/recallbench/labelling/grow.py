"""A labelled set grown with generated memories, so that scale and pool depth can be studied.

Questions and labels stay as they are. Generated memories (see `grow_text`) have ids that begin with `gen-` and the
tag `generated`; no label names one, and none is half alike to a labelled relevant memory. Nobody has read them: that
they answer nothing is by their making, so Judged@k falls as a set grows. The first rows of a larger set with the
same seed are those of a smaller one.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import msgspec

from recallbench.datasets.model import LabelledSet
from recallbench.datasets.similar import Overlap
from recallbench.datasets.write import whole, write_info, write_memories, write_questions
from recallbench.labelling.grow_text import Dice, Material
from recallstack.errors import InputError
from recallstack.ranking.rows import Corpus, Memory

PREFIX, TAG = "gen-", "generated"
ALIKE = 0.5
"""Overlap coefficient of trigrams with a labelled relevant memory from which a draw is thrown away."""
TRIES = 1_000
"""Draws in a row that may be thrown away before a set is called too poor in words."""
FEW = 30
"""A corpus of fewer memories is filled with the words of the whole set."""
MATERIAL = 20_000
"""At most so many memories of a corpus, evenly spaced, give their words: memory stays bounded."""
VERSION = 1
"""Of the generator: raised whenever the same seed gives other rows."""


@dataclass(frozen=True, slots=True)
class Grown:
    """What was written: memories in all, generated ones among them, draws thrown away as too alike."""

    memories: int
    generated: int
    thrown_away: int


class _Source:
    """What the rows of one corpus are made from."""

    def __init__(self, labelled: LabelledSet, corpus: Corpus) -> None:
        rows = corpus.memories
        if len(rows) < FEW:
            rows = tuple(memory for one in labelled.corpora.values() for memory in one.memories)
        self.corpus = corpus.name
        self.material = Material(rows[:: -(-len(rows) // MATERIAL)])
        relevant = {
            name
            for question in labelled.questions
            if question.corpus == corpus.name
            for name, grade in question.relevant.items()
            if grade > 0
        }
        self.relevant = Overlap(memory.text for memory in corpus.memories if memory.id in relevant)
        moments = [_utc(memory.created_at) for memory in self.material.memories if memory.created_at is not None]
        self.first: dt.datetime | None = min(moments, default=None)
        self.last: dt.datetime | None = max(moments, default=None)


class Generator:
    """The generated memories of a set, in an order that depends on the seed alone. thrown_away: draws so far."""

    def __init__(self, labelled: LabelledSet, seed: int) -> None:
        for corpus in labelled.corpora.values():
            for memory in corpus.memories:
                if TAG in memory.tags or memory.id.startswith(PREFIX):
                    raise InputError(
                        f"set {labelled.info.name!r}: memory {memory.id!r} is a generated one; grow the original set"
                    )
        self._dice = Dice(f"{VERSION} {seed} {labelled.memories_hash} {labelled.labels_hash}")
        self._sources = [_Source(labelled, corpus) for corpus in labelled.corpora.values()]
        self._upto = list(accumulate(len(corpus) for corpus in labelled.corpora.values()))
        self.thrown_away = 0

    def rows(self, count: int) -> Iterator[Memory]:
        """The first `count` of them, corpora by chance in proportion to their sizes.

        Raises InputError where the set has too few different words to be grown.
        """
        for number in range(1, count + 1):
            source = self._sources[bisect(self._upto, self._dice.below(self._upto[-1]))]
            yield self._row(source, number)

    def _row(self, source: _Source, number: int) -> Memory:
        for _ in range(TRIES):
            template, title, content, links = source.material.draw(self._dice)
            if source.relevant.greatest(f"{title} {content}") < ALIKE:
                break
            self.thrown_away += 1
        else:
            raise InputError(
                f"corpus {source.corpus!r}: {TRIES} draws in a row were half alike to a labelled relevant memory;"
                " the set has too few different words to be grown"
            )
        created, updated = self._moments(source, template)
        return msgspec.structs.replace(
            template,
            id=f"{PREFIX}{number:07d}",
            corpus=source.corpus,
            title=title,
            content=content,
            created_at=created,
            updated_at=updated,
            tags=(TAG, *template.tags),
            supersedes=None,
            entities=links,
            source=None,
        )

    def _moments(self, source: _Source, template: Memory) -> tuple[dt.datetime | None, dt.datetime | None]:
        """Made at any time at which the set's memories were, and changed as long after as the template."""
        if template.created_at is None or source.first is None or source.last is None:
            return template.created_at, template.updated_at
        seconds = self._dice.below(int((source.last - source.first).total_seconds()) + 1)
        created = source.first + dt.timedelta(seconds=seconds)
        if template.updated_at is None:
            return created, None
        return created, created + max(dt.timedelta(0), _utc(template.updated_at) - _utc(template.created_at))


def _utc(moment: dt.datetime) -> dt.datetime:
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)


def grow(
    labelled: LabelledSet, out: Path, rows: int, *, seed: int = 0, progress: Callable[[int], None] | None = None
) -> Grown:
    """Write the set, grown to `rows` memories, as the new folder `out`, whole or not at all.

    The originals come first. Rows are generated one by one: the peak is that of the set itself. The same set, rows
    and seed give the same bytes. progress: told the generated rows so far, every 10,000. Raises InputError for fewer
    rows than the set has, a set that was grown before, an `out` that is there or cannot be written.
    """
    held = sum(map(len, labelled.corpora.values()))
    if rows < held:
        raise InputError(f"set {labelled.info.name!r} has {held} memories already; --rows {rows} must be at least that")
    generator = Generator(labelled, seed)

    def memories() -> Iterator[Memory]:
        for corpus in labelled.corpora.values():
            yield from corpus.memories
        for count, memory in enumerate(generator.rows(rows - held), 1):
            if progress and count % 10_000 == 0:
                progress(count)
            yield memory

    with whole(out) as folder:
        count = write_memories(folder, memories())
        write_questions(folder, labelled.questions)
        done = (
            f"grown to {rows} memories with seed {seed} (generator {VERSION}): ids that begin with {PREFIX} and the tag"
            f" {TAG} mark the {rows - held} generated ones, which nobody has judged"
        )
        provenance = f"{labelled.info.provenance}; {done}" if labelled.info.provenance else done
        info = dataclasses.replace(labelled.info, name=f"{labelled.info.name}-{rows}", provenance=provenance)
        write_info(folder, info)
    return Grown(count, rows - held, generator.thrown_away)
