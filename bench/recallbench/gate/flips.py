"""Which questions changed, and at which stage the memories that went missing were lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallbench.evaluation.evaluate import Evaluation
from recallbench.evaluation.match import first_places
from recallbench.gate.margins import Pair, differences

Places = NDArray[np.intp]
CATEGORIES = 3
UNTRACED = "not returned (the system sends no trace)"


@dataclass(frozen=True, slots=True)
class Moved:
    """A relevant memory that stands lower than before. before, after: ranks, 0 not returned. stage: what lost it."""

    memory: str
    before: int
    after: int
    stage: str


@dataclass(frozen=True, slots=True)
class Flip:
    """A question whose measure changed. change: above 0 is better. moved: where it got worse, the best rank first."""

    question: str
    before: float
    after: float
    change: float
    categories: tuple[str, ...]
    moved: tuple[Moved, ...] = ()


@dataclass(frozen=True, slots=True)
class Flips:
    """What changed in one measure of one system. worse, better: greatest change first. lost_at: stage -> memories.

    where: (language or category, questions of it that got worse, questions of it): every language of a set that has
    several, then the categories that are hit the most (`_where`).
    """

    system: str
    measure: str
    worse: tuple[Flip, ...]
    better: tuple[Flip, ...]
    same: int
    lost_at: tuple[tuple[str, int], ...]
    where: tuple[tuple[str, int, int], ...] = ()


def flips(evaluation: Evaluation, pair: Pair, m: int) -> Flips:
    """Every question whose measure changed, in order of the change; equals in the order of the set."""
    change, counted = differences(evaluation, pair, m)
    cutoff = evaluation.measures[m].cutoff
    places = [int(place) for place in np.flatnonzero(counted & (change != 0))]
    rows = {place: _flip(evaluation, pair, m, place, float(change[place]), cutoff) for place in places}
    worse = [rows[place] for place in sorted(places, key=lambda at: change[at]) if change[place] < 0]
    better = [rows[place] for place in sorted(places, key=lambda at: -change[at]) if change[place] > 0]
    lost = Counter(moved.stage for one in worse for moved in one.moved)
    return Flips(
        pair.system,
        str(evaluation.measures[m]),
        tuple(worse),
        tuple(better),
        int(counted.sum()) - len(places),
        tuple(lost.most_common()),
        _where(evaluation, np.flatnonzero(counted), np.flatnonzero(counted & (change < 0))),
    )


def _where(evaluation: Evaluation, counted: Places, worse: Places) -> tuple[tuple[str, int, int], ...]:
    """Languages by name, then at most CATEGORIES categories by the share of their questions that got worse.

    A category needs two such questions, and a greater share than the whole set has: else it tells nothing.
    """
    if not worse.size:
        return ()
    questions = evaluation.labelled.questions
    languages, hurt_languages = (Counter(questions[at].lang for at in places) for places in (counted, worse))
    out = [(lang, hurt_languages[lang], languages[lang]) for lang in sorted(languages) if lang]
    if len(out) < 2:
        out = []
    categories, hurt = (
        Counter(name for at in places for name in questions[at].categories) for places in (counted, worse)
    )
    rows = [(name, hurt[name], categories[name]) for name in categories if hurt[name] > 1]
    rows = [row for row in rows if row[1] * counted.size > row[2] * worse.size]
    rows.sort(key=lambda row: (-row[1] / row[2], row[0]))
    return (*out, *rows[:CATEGORIES])


def _flip(evaluation: Evaluation, pair: Pair, m: int, place: int, change: float, cutoff: int | None) -> Flip:
    question = evaluation.labelled.questions[place]
    moved: tuple[Moved, ...] = ()
    if change < 0:
        wanted = [name for name, grade in question.relevant.items() if grade > 0]
        moved = _moved(evaluation, pair, place, wanted, cutoff)
    before, after = (float(evaluation.values[side, m, place]) for side in (pair.before, pair.after))
    return Flip(question.id, before, after, change, question.categories, moved)


def _moved(
    evaluation: Evaluation, pair: Pair, place: int, wanted: Sequence[str], cutoff: int | None
) -> tuple[Moved, ...]:
    old, new = (first_places(evaluation.runs[side].ids[place]) for side in (pair.before, pair.after))
    losses = evaluation.runs[pair.after].losses
    out = []
    for name in wanted:
        before, after = old.get(name, 0), new.get(name, 0)
        if not before or (after and after <= before):
            continue
        if after:
            stage = f"ranked down past {cutoff}" if cutoff and before <= cutoff < after else "ranked down"
        else:
            stage = (losses[place].get(name) if losses else None) or UNTRACED
        out.append(Moved(name, before, after, stage))
    return tuple(sorted(out, key=lambda one: (one.before, one.after)))
