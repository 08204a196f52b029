"""What an evaluation would say if the returned memories that nobody judged had the best or the worst label.

A labelled set knows the answers that its makers found. A memory that comes back and carries no label counts as not
relevant, which favours the system whose answers the labels were made from. For each question and measure, two
extremes are scored: every unjudged memory that stands higher in the new list than in the old one is relevant (best for
the new one), or every one that stands lower is (worst). If they give different verdicts, labels are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from recallbench.datasets.model import LabelledSet
from recallbench.evaluation.match import PADDING, first_places, labels_of
from recallbench.measures import Binary, Measure
from recallbench.measures.ndcg import NDCG
from recallbench.measures.ranked import RankedLabels
from recallbench.systems.base import SystemRun

_NOWHERE = 2**31 - 1
Ranks = NDArray[np.int32]


class Unjudged(NamedTuple):
    """A memory that one list holds higher than the other, and that nobody judged. before, after: ranks, 0 not there."""

    question: str
    memory: str
    before: int
    after: int


@dataclass(frozen=True, eq=False, slots=True)
class Deciding:
    """Unjudged memories whose labels decide a rule. chosen: bool `[P, W]`, places in the names of `lists`."""

    lists: Lists
    chosen: NDArray[np.bool_]

    def __len__(self) -> int:
        return int(self.chosen.sum())


@dataclass(frozen=True, eq=False, slots=True)
class Bounds:
    """Changes float64 `[Q]` under the worst and the best labels, and what moved: bool `[P, W]`, as of `lists`."""

    worst: NDArray[np.float64]
    best: NDArray[np.float64]
    lists: Lists
    moved: NDArray[np.bool_]

    def deciding(self, places: NDArray[np.intp]) -> Deciding:
        """What moved in the lists of these questions."""
        return Deciding(self.lists, self.moved & np.isin(self.lists.places, places)[:, None])


class Listed(Sequence[Unjudged]):
    """Each memory of each pair of lists once, highest ranks first; equals in the order of the set.

    Made when asked for: where most lists differ they are hundreds of thousands, of which a report shows a few.
    """

    def __init__(self, deciding: Sequence[Deciding]) -> None:
        chosen: dict[Lists, NDArray[np.bool_]] = {}
        for one in deciding:
            chosen[one.lists] = one.chosen | chosen.get(one.lists, np.False_)
        self._lists = list(chosen)
        places = [np.nonzero(mask) for mask in chosen.values()]
        best = [
            np.minimum(*(np.where(ranks > 0, ranks, _NOWHERE)[at] for ranks in (lists.old, lists.new)))
            for lists, at in zip(self._lists, places, strict=True)
        ]
        table = [np.stack([np.full(len(at[0]), number), *at]) for number, at in enumerate(places)]
        order = np.argsort(np.concatenate([np.zeros(0, np.int32), *best]), kind="stable")
        self._at = np.concatenate([np.zeros((3, 0), np.intp), *table], axis=1)[:, order]

    def __len__(self) -> int:
        return int(self._at.shape[1])

    @overload
    def __getitem__(self, index: int) -> Unjudged: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Unjudged, ...]: ...
    def __getitem__(self, index: int | slice) -> Unjudged | tuple[Unjudged, ...]:
        if isinstance(index, slice):
            return tuple(self._one(*at) for at in self._at[:, index].T.tolist())
        return self._one(*self._at[:, index].tolist())

    def __iter__(self) -> Iterator[Unjudged]:
        return iter(self[:])

    def _one(self, number: int, row: int, column: int) -> Unjudged:
        lists = self._lists[number]
        old, new = (int(ranks[row, column]) for ranks in (lists.old, lists.new))
        return Unjudged(lists.questions[row], lists.names[row][column], old, new)


class Lists:
    """Two runs of one set, where their lists differ: ranks of the labelled memories and of those that nobody judged.

    Read once for all measures of a gate. places: int `[P]`, the questions whose lists differ; questions: their ids.
    names: for each, the unjudged memories that either list holds, in the order of the new list and then of the old.
    old, new: int32 `[P, W]`, ranks of these, 0 not returned. labelled: int32 `[2, P, L]`, ranks of the labels, old and
    new; grades: int16 `[P, L]`.
    """

    def __init__(self, labelled: LabelledSet, before: SystemRun, after: SystemRun) -> None:
        pairs = zip(before.ids, after.ids, strict=True)
        self.places = np.array([place for place, (old, new) in enumerate(pairs) if old != new], np.intp)
        self.questions, self.names = [], []
        unjudged: tuple[list[list[int]], list[list[int]]] = [], []
        ranks: tuple[list[list[int]], list[list[int]]] = [], []
        grades: list[list[int]] = []
        lengths: list[list[int]] = []
        for place in self.places.tolist():
            question = labelled.questions[place]
            judged = labels_of(question)
            sides = [first_places(run.ids[place]) for run in (before, after)]
            lengths.append([len(found) for found in sides])
            names = [name for name in {**sides[1], **sides[0]} if name not in judged]
            self.questions.append(question.id)
            self.names.append(names)
            grades.append([max(grade, 0) for grade in judged.values()])
            for side, found in enumerate(sides):
                unjudged[side].append(list(map(found.get, names, repeat(0))))
                ranks[side].append(list(map(found.get, judged, repeat(0))))
        self.old, self.new = (_padded(one, 0) for one in unjudged)
        self.labelled = np.stack([_padded(one, 0) for one in ranks])
        self.grades = _padded(grades, PADDING).astype(np.int16)
        self.lengths = np.array(lengths, np.int32).reshape(-1, 2).T
        self.failed = np.stack([run.failed[self.places] for run in (before, after)])
        self.top_grade = max(
            [labelled.info.default_rel, *(grade for one in labelled.questions for grade in one.relevant.values())]
        )
        self.default_rel = labelled.info.default_rel


def label_bounds(
    lists: Lists, measure: Measure, change: NDArray[np.float64], counted: NDArray[np.bool_]
) -> Bounds | None:
    """The bounds of a measure's change; None where no label is missing, or the measure takes none.

    change: float64 `[Q]`, as labelled, above 0 is better. counted: bool `[Q]`, questions in the denominator.
    """
    if not isinstance(measure, (Binary, NDCG)) or not len(lists.places):
        return None

    cutoff = measure.cutoff or _NOWHERE

    def within(ranks: Ranks) -> Ranks:
        return np.where(ranks > cutoff, np.int32(0), ranks)

    mine = counted[lists.places][:, None]
    old, new = (np.where(mine, within(ranks), np.int32(0)) for ranks in (lists.old, lists.new))
    moved = old != new
    rows = np.flatnonzero(moved.any(axis=1))
    if not len(rows):
        return None
    rises = np.where(new > 0, new, _NOWHERE) < np.where(old > 0, old, _NOWHERE)
    worst, best = change.copy(), change.copy()
    for bound, upwards in ((best, True), (worst, False)):
        given = np.where(moved & (rises == upwards), np.int16(lists.top_grade), np.int16(PADDING))
        grades = np.concatenate([lists.grades, given], axis=1)[rows]
        values = [
            measure.compute(
                RankedLabels(
                    np.concatenate([within(lists.labelled[side]), ranks], axis=1)[rows],
                    grades,
                    np.minimum(lists.lengths[side], cutoff)[rows],
                    lists.failed[side][rows],
                    default_rel=lists.default_rel,
                )
            )
            for side, ranks in enumerate((old, new))
        ]
        bound[lists.places[rows]] = values[1] - values[0]
    return Bounds(worst, best, lists, moved)


def _padded(rows: Sequence[Sequence[int]], padding: int) -> Ranks:
    """int32 `[len(rows), longest]`, filled up with `padding`."""
    lengths = np.fromiter(map(len, rows), np.intp, len(rows))
    out = np.full((len(rows), int(lengths.max(initial=0))), padding, np.int32)
    out[np.arange(out.shape[1]) < lengths[:, None]] = np.fromiter(
        chain.from_iterable(rows), np.int32, int(lengths.sum())
    )
    return out
