"""`sweep_set`: choose a fusion recipe on one part of a labelled set and report it on another.

A figure of a recipe on the questions that it was chosen on is too good. So a sweep chooses on the split `dev` and
reports on `test`; without splits it cross-validates over clusters; without clusters it draws a map and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from recallbench.datasets.model import LabelledSet, Question
from recallbench.evaluation.evaluate import depth_for
from recallbench.evaluation.match import labels_of
from recallbench.measures import Measure, parse_measure
from recallbench.sweeps.grid import Grid
from recallbench.sweeps.score import group_sums
from recallbench.systems.recipe import answer_questions
from recallbench.text.display import Displayed, Part
from recallstack.errors import InputError
from recallstack.ranking.candidates import NO_ROW, Candidates
from recallstack.ranking.fusion import Fusion
from recallstack.ranking.kernels.counting import Prepared, prepare
from recallstack.ranking.pipeline import Retrieve
from recallstack.ranking.recipes import SearchRecipe
from recallstack.ranking.specs import CHANNEL_ORDER, ChannelName

if TYPE_CHECKING:
    import pandas as pd

Float = NDArray[np.float64]
How = Literal["dev/test", "cross-validation", "descriptive"]
FOLDS = 10
"""At most so many folds (Kohavi 1995, A Study of Cross-Validation and Bootstrap, recommends ten)."""
SHOWN = 10
"""Recipes of a table that shows itself."""


@dataclass(frozen=True, eq=False, repr=False)
class SweepResult(Displayed):
    """What a sweep found.

    table: one row a recipe (recipe, method, mode, k, a weight a channel, pool, like_override, a mean a measure), in the
    order of the grid; k and weights are NaN where the method does not use them. Means are over the questions that the
    choice was made on. chosen: the best recipe by the first measure; among equals the first in the grid.
    reported: the mean of each measure, over held-out questions unless `how` is `descriptive`. sentence: one line that
    says so. notes: what channels had to say.
    """

    table: pd.DataFrame
    chosen: SearchRecipe
    how: How
    reported: dict[str, float]
    sentence: str
    notes: tuple[str, ...] = ()

    def _parts(self) -> list[Part]:
        from recallbench.text.numbers import number

        names, first = list(self.reported), next(iter(self.reported))
        best = self.table.sort_values(first, ascending=not parse_measure(first).higher_is_better, kind="stable").head(
            SHOWN
        )
        rows = [[str(one["recipe"]), *(number(one[name]) for name in names)] for one in best.to_dict("records")]
        reported = ", ".join(f"{name} {number(value)}" for name, value in self.reported.items())
        about = f"the first {len(rows)} of {len(self.table)} recipes by {first}, on the questions chosen on"
        return [Part("", about, ["recipe", *names], rows, [self.sentence, f"reported: {reported}", *self.notes])]


def sweep_set(
    labelled: LabelledSet,
    retrieve: Retrieve,
    grid: Grid,
    measures: Sequence[Measure],
    *,
    how: How | None = None,
    depth: int | None = None,
) -> SweepResult:
    """Sweep a grid of recipes over a labelled set.

    retrieve: how channel candidates are got (`CandidateCache()` keeps them). measures: the first one chooses.
    how: None takes dev/test if the set has both splits, else cross-validation if it has two clusters, else descriptive.
    depth: rows asked for; None is the set's own or the deepest cutoff.
    Raises InputError for an empty grid or set, no measure, a measure that ranks of labelled memories do not settle,
    or a `how` that the set does not allow.
    """
    if not measures:
        raise InputError("a sweep needs a measure to choose by; name one, for example nDCG@5")
    if not labelled.questions:
        raise InputError(f"data set {labelled.info.name!r} has no question to sweep over")
    recipes = grid.recipes()
    groups, how = _folds(labelled, how)
    rows = depth or depth_for(labelled, measures)
    prepared, grades, notes = gather(labelled, retrieve, grid.base, max(recipe.pool or 1 for recipe in recipes), rows)
    pooled = [(recipe.fusion, recipe.pool or 1) for recipe in recipes]
    sums, counted = group_sums(
        prepared, grades, pooled, measures, groups, limit=rows, default_rel=labelled.info.default_rel
    )
    names = [str(measure) for measure in measures]
    sign = 1.0 if measures[0].higher_is_better else -1.0
    group = np.arange(sums.shape[2])
    shown = group == 0 if how == "dev/test" else group >= 0
    table = _means(sums, counted, shown)
    best = _best(sign * table[:, 0], names[0])
    winners, held_out = [best], [group == 1 if how == "dev/test" else group >= 0]
    if how == "cross-validation":
        held_out = [group == one for one in group]
        winners = [_best(sign * _means(sums, counted, ~part)[:, 0], names[0]) for part in held_out]
    total, count = (
        sum(values[winner][:, part].sum(axis=1) for winner, part in zip(winners, held_out, strict=True))
        for values in (sums, counted)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        reported = dict(zip(names, (total / count).tolist(), strict=True))
    sentence = _sentence(how, names[0], recipes, winners, best, table[best, 0], reported[names[0]], int(count[0]))
    return SweepResult(_table(grid.base, recipes, names, table), recipes[best], how, reported, sentence, notes)


def _means(sums: Float, counted: NDArray[np.int64], part: NDArray[np.bool_]) -> Float:
    """float64 `[R, M]`: means over some groups, NaN where no question counts."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Float = sums[:, :, part].sum(axis=2) / counted[:, :, part].sum(axis=2)
    return means


def _best(goodness: Float, measure: str) -> int:
    """The first recipe of the best mean."""
    if np.isnan(goodness).all():
        raise InputError(f"no question to choose on counts in {measure}; choose by another measure")
    return int(np.nanargmax(goodness))


def _sentence(
    how: How,
    measure: str,
    recipes: Sequence[SearchRecipe],
    winners: Sequence[int],
    best: int,
    seen: float,
    reported: float,
    count: int,
) -> str:
    name, tried = recipes[best].name, f"{len(recipes)} recipes"
    if how == "descriptive":
        return (
            f"descriptive map: {name} is the best of {tried} with {measure} {reported:.3f}, "
            f"chosen and judged on the same {count} questions; not a held-out figure"
        )
    if how == "dev/test":
        return (
            f"{name} was chosen of {tried} on dev ({measure} {seen:.3f}, in the table) and reaches "
            f"{measure} {reported:.3f} on {count} test questions"
        )
    return (
        f"choosing of {tried} reaches {measure} {reported:.3f} on {count} held-out questions "
        f"({len(winners)} folds of whole clusters, {len(set(winners))} different winners); "
        f"{name} is the best on all of them ({seen:.3f}, in the table)"
    )


def _table(base: SearchRecipe, recipes: Sequence[SearchRecipe], names: Sequence[str], means: Float) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for recipe in recipes:
        fusion = recipe.fusion
        weighs = fusion.weighted or fusion.method == "minmax" or (fusion.method, fusion.mode) == ("blend", "hybrid")
        weights = {
            f"weight_{name}": getattr(fusion.weights, name) if weighs else np.nan
            for name in CHANNEL_ORDER
            if name in base.channels
        }
        rows.append(
            {
                "recipe": recipe.name,
                "method": fusion.method,
                "mode": fusion.mode,
                "k": fusion.k if fusion.method == "rrf" else np.nan,
                **weights,
                "pool": recipe.pool,
                "like_override": fusion.like_override,
            }
        )
    return pd.concat([pd.DataFrame(rows), pd.DataFrame(means, columns=list(names))], axis=1)


def gather(
    labelled: LabelledSet, retrieve: Retrieve, base: SearchRecipe, pool: int, depth: int
) -> tuple[Prepared, NDArray[np.int16], tuple[str, ...]]:
    """Eligible candidates of every question `[Q]`, laid out for counting; int16 `[Q, L]` grades; notes of channels."""
    recipe = replace(base, fusion=Fusion(), pool=pool)
    judged = [labels_of(question) for question in labelled.questions]
    labels = np.full((len(judged), max(map(len, judged))), NO_ROW, np.int32)
    grades = np.full(labels.shape, -1, np.int16)
    names = [name for name in CHANNEL_ORDER if name in base.channels]
    ids = {name: np.full((len(judged), pool), NO_ROW, np.int32) for name in names}
    scores = {name: np.full((len(judged), pool), np.nan) for name in names}
    notes: list[str] = []
    for name, corpus in labelled.corpora.items():
        places = [q for q, question in enumerate(labelled.questions) if question.corpus == name]
        if not places:
            continue
        questions = [labelled.questions[q] for q in places]
        got = answer_questions(corpus, questions, recipe, depth, retrieve, labelled.has_channels)
        notes.extend(got.notes)
        for channel in names:
            found = got.stages[f"{channel}.pool"]
            ids[channel][places, : found.width] = found.ids
            scores[channel][places, : found.width] = found.scores
        for q in places:
            labels[q, : len(judged[q])] = [corpus.index[memory] for memory in judged[q]]
            grades[q, : len(judged[q])] = list(judged[q].values())
    channels: dict[ChannelName, Candidates] = {name: Candidates(ids[name], scores[name]) for name in names}
    return prepare(channels, labels), grades, tuple(dict.fromkeys(notes))


def _folds(labelled: LabelledSet, how: How | None) -> tuple[NDArray[np.int64], How]:
    """The group of each question (int64 `[Q]`): dev 0, test 1, neither 2; or its fold; or 0; and how to report."""
    questions = labelled.questions
    splits = {question.split for question in questions}
    clusters = _clusters(questions)
    named = any(question.cluster is not None for question in questions)
    possible: list[How] = ["descriptive"]
    if named and len(set(clusters)) > 1:
        possible.insert(0, "cross-validation")
    if {"dev", "test"} <= splits:
        possible.insert(0, "dev/test")
    if how is not None and how not in possible:
        need = "questions of both splits, dev and test" if how == "dev/test" else "at least two clusters"
        raise InputError(f"data set {labelled.info.name!r} has not what {how} needs: {need}")
    how = how or possible[0]
    if how == "dev/test":
        number = {"dev": 0, "test": 1, None: 2}
        return np.array([number[question.split] for question in questions], np.int64), how
    if how == "descriptive":
        return np.zeros(len(questions), np.int64), how
    return _spread(clusters), how


def _clusters(questions: Sequence[Question]) -> list[str]:
    """The cluster of each question; one without a cluster is a cluster of its own."""
    return [
        f"question {question.id}" if question.cluster is None else f"cluster {question.cluster}"
        for question in questions
    ]


def _spread(clusters: list[str]) -> NDArray[np.int64]:
    """The fold of each question: whole clusters, the largest first, each into the smallest fold so far."""
    size: dict[str, int] = {}
    for name in clusters:
        size[name] = size.get(name, 0) + 1
    load = [0] * min(FOLDS, len(size))
    fold = {}
    for name in sorted(size, key=lambda name: -size[name]):
        fold[name] = load.index(min(load))
        load[fold[name]] += size[name]
    return np.array([fold[name] for name in clusters], np.int64)
