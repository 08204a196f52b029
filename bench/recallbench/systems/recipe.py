"""`recipe:NAME` and `recipe:FILE.toml`: the reference stack in process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recallbench.datasets.model import LabelledSet, Question
from recallbench.datasets.scope import scope_of
from recallbench.systems.base import SystemRun, TraceRow
from recallstack.errors import InputError
from recallstack.ranking.pipeline import Answer, Query, Retrieve, answer
from recallstack.ranking.presets import preset
from recallstack.ranking.recipes import InjectRecipe, Recipe, from_file, to_dict
from recallstack.ranking.rows import Corpus
from recallstack.ranking.trace import LOSSES, stage_ranks, waterfall


def recipe_of(spec: str) -> Recipe:
    """The recipe that a spec names: `NAME`, `recipe:NAME`, `FILE.toml`, `recipe:FILE.toml`.

    Raises InputError for an unknown name, an unreadable file or a bad recipe.
    """
    name = spec.removeprefix("recipe:")
    if not name:
        raise InputError(f"--system {spec!r} names no recipe; see `recallbench recipes list`")
    return from_file(Path(name)) if name.endswith(".toml") else preset(name)


def answer_questions(
    corpus: Corpus, questions: Sequence[Question], recipe: Recipe, depth: int, retrieve: Retrieve, mapped: bool
) -> Answer:
    """One batch: questions of one corpus through one recipe. mapped: as in `datasets.scope`."""
    queries = [Query(question.text, scope_of(question, mapped)) for question in questions]
    return answer(corpus, queries, recipe, depth, retrieve)


class RecipeSystem:
    """A recipe as a system under test. `retrieve` computes channel candidates or takes them from a cache."""

    def __init__(self, recipe: Recipe, retrieve: Retrieve, progress: Callable[[str], None] | None = None) -> None:
        self.recipe = recipe
        self.name = recipe.name
        self._retrieve = retrieve
        self._progress = progress

    @property
    def spec(self) -> dict[str, Any]:
        """The recipe as plain values."""
        return to_dict(self.recipe)

    def run(self, labelled: LabelledSet, depth: int) -> SystemRun:
        """Answer every question of the set, corpus by corpus."""
        count = len(labelled.questions)
        ids: list[tuple[str, ...]] = [()] * count
        scores: list[tuple[float, ...]] = [()] * count
        losses: list[dict[str, str]] = [{} for _ in range(count)]
        semantic = np.zeros(count, np.int32)
        trace: list[TraceRow] = []
        notes: list[str] = []
        mapped = labelled.has_channels
        for name, corpus in labelled.corpora.items():
            places = [i for i, question in enumerate(labelled.questions) if question.corpus == name]
            if not places:
                continue
            questions = [labelled.questions[i] for i in places]
            got = answer_questions(corpus, questions, self.recipe, depth, self._retrieve, mapped)
            notes.extend(got.notes)
            semantic[places] = got.semantic.sum(axis=1)
            lost, traced = _follow(corpus, questions, places, got)
            trace.extend(traced)
            for row, place in enumerate(places):
                length = int(got.final.present[row].sum())
                ids[place] = tuple(corpus.ids[got.final.ids[row, :length]])
                scores[place] = tuple(got.final.scores[row, :length].tolist())
                losses[place] = lost[row]
            if self._progress:
                self._progress(name)
        capacity = self.recipe.max_items if isinstance(self.recipe, InjectRecipe) else None
        return SystemRun(
            self.name,
            self.spec,
            tuple(ids),
            tuple(scores),
            semantic,
            np.zeros(count, np.bool_),
            tuple(losses),
            tuple(sorted(trace, key=lambda row: row.question)),
            capacity,
            tuple(dict.fromkeys(notes)),
        )


def _follow(
    corpus: Corpus, questions: Sequence[Question], places: Sequence[int], got: Answer
) -> tuple[list[dict[str, str]], list[TraceRow]]:
    """For each question the stage that lost each relevant memory, and where each stood after each stage."""
    wanted = [[m for m, grade in question.relevant.items() if grade > 0] for question in questions]
    labels = np.full((len(questions), max(map(len, wanted), default=0)), -1, np.int32)
    for row, one in enumerate(wanted):
        labels[row, : len(one)] = [corpus.index[m] for m in one]
    codes = waterfall(got.stages, got.final, labels)
    losses = [
        {m: LOSSES[code] for m, code in zip(one, row, strict=False)} for one, row in zip(wanted, codes, strict=True)
    ]
    trace = []
    for stage, rows in (*got.stages.items(), ("final", got.final)):
        ranks = stage_ranks(rows, labels)
        for row, column in zip(*np.nonzero(ranks), strict=True):
            trace.append(TraceRow(places[row], stage, int(ranks[row, column]), wanted[row][column]))
    return losses, trace
