"""One question through one recipe: what every stage left, and where each relevant memory was lost."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from recallbench.cache.candidates import CandidateCache
from recallbench.datasets.model import LabelledSet, Question
from recallbench.systems.recipe import answer_questions
from recallbench.text.display import Displayed, Part
from recallstack.errors import InputError
from recallstack.ranking.candidates import Candidates
from recallstack.ranking.pipeline import Answer, Retrieve
from recallstack.ranking.recipes import Recipe
from recallstack.ranking.trace import LOSSES, stage_ranks, waterfall


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Displayed):
    """A question, what came of it, and the corpus that its rows point into. It shows itself by ids, without texts."""

    labelled: LabelledSet
    question: Question
    recipe: Recipe
    depth: int
    answer: Answer

    def to_values(self, include_text: bool = False) -> dict[str, Any]:
        """Plain values for JSON. Texts are private: they are left out unless asked for."""
        corpus = self.labelled.corpora[self.question.corpus]
        stages = {**self.answer.stages, "final": self.answer.final}
        graded = [(memory, grade) for memory, grade in self.question.relevant.items() if grade > 0]
        labels = np.array([[corpus.index[memory] for memory, _ in graded]], np.int32).reshape(1, -1)
        outcome = waterfall(self.answer.stages, self.answer.final, labels)[0]
        ranks = {name: stage_ranks(rows, labels)[0] for name, rows in stages.items()}

        def hits(rows: Candidates) -> list[dict[str, Any]]:
            return [
                {
                    "memory": str(corpus.ids[position]),
                    "score": score if math.isfinite(score) else None,
                    **({"text": corpus.memories[position].text.strip()} if include_text else {}),
                }
                for position, score in rows.to_lists()[0]
            ]

        return {
            "dataset": self.labelled.info.name,
            "question": self.question.id,
            "corpus": self.question.corpus,
            "recipe": self.recipe.name,
            "depth": self.depth,
            **({"text": self.question.text} if include_text else {}),
            "labels": [
                {
                    "memory": memory,
                    "grade": grade,
                    "outcome": LOSSES[outcome[place]],
                    "ranks": {name: int(found[place]) for name, found in ranks.items() if found[place]},
                }
                for place, (memory, grade) in enumerate(graded)
            ],
            "stages": {name: hits(rows) for name, rows in stages.items()},
            "notes": list(self.answer.notes),
        }

    def _parts(self) -> list[Part]:
        values = self.to_values()
        stages = [name for name in values["stages"] if any(name in one["ranks"] for one in values["labels"])]
        rows = [
            [one["memory"], str(one["grade"]), one["outcome"], *(str(one["ranks"].get(name, "–")) for name in stages)]
            for one in values["labels"]
        ]
        title, about = f"{self.question.id} through {self.recipe.name}", "rank of each relevant memory after each stage"
        header = ["memory", "grade", "outcome", *stages]
        return [Part(title, about if rows else "no memory is relevant", header, rows, list(self.answer.notes))]


def explain(
    labelled: LabelledSet,
    question: str,
    recipe: Recipe,
    depth: int | None = None,
    retrieve: Retrieve | None = None,
) -> Explanation:
    """Run one question of a set through a recipe. Raises InputError for an unknown question id."""
    known = {one.id: one for one in labelled.questions}
    if question not in known:
        near = difflib.get_close_matches(question, known, 3)
        hint = f"did you mean {', '.join(near)}?" if near else f"ids look like {next(iter(known))}"
        raise InputError(f"{labelled.info.name}: no question {question!r}; {hint}")
    one, rows = known[question], depth or labelled.info.depth
    got = answer_questions(
        labelled.corpora[one.corpus],
        [one],
        recipe,
        rows,
        retrieve or CandidateCache(),
        labelled.has_channels,
    )
    return Explanation(labelled, one, recipe, rows, got)
