"""`Experiment`: systems, labelled sets and measures in one call, as pandas tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from recallbench.aggregate import Cell, cells, differences
from recallbench.cache import CandidateCache
from recallbench.datasets.model import LabelledSet
from recallbench.evaluation import DEFAULT_MEASURES, Evaluation, depth_for, evaluate, run_system
from recallbench.measures import Measure, parse_measure
from recallbench.systems.base import System
from recallbench.systems.recipe import RecipeSystem, recipe_of
from recallstack.errors import InputError
from recallstack.pipeline import Retrieve
from recallstack.recipes import InjectRecipe, Recipe, SearchRecipe

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ExperimentResult:
    """What came out, as pandas tables. evaluations: one a labelled set."""

    evaluations: tuple[Evaluation, ...]
    baseline: str | None = None

    @property
    def valid(self) -> bool:
        """Whether every trust check of every set passed."""
        return all(one.valid for one in self.evaluations)

    @cached_property
    def per_question(self) -> pd.DataFrame:
        """One row a dataset, system, question and measure: value, and whether it counts."""
        import pandas as pd

        rows = []
        for one in self.evaluations:
            for s, system in enumerate(one.systems):
                for m, measure in enumerate(one.measures):
                    for q, question in enumerate(one.labelled.questions):
                        rows.append(
                            (
                                one.labelled.info.name,
                                question.corpus,
                                system,
                                question.id,
                                question.lang,
                                question.categories,
                                question.cluster,
                                question.split,
                                str(measure),
                                one.values[s, m, q],
                                bool(one.counts[s, m, q]),
                            )
                        )
        names = "dataset corpus system question lang categories cluster split measure value counts"
        return pd.DataFrame(rows, columns=names.split())

    def table(self, by: str | None = None) -> pd.DataFrame:
        """Means with 95 % intervals; `by`: category, lang, corpus or split."""
        return _frame([cell for one in self.evaluations for cell in cells(one, by)])

    def wide(self, by: str | None = None) -> pd.DataFrame:
        """Means alone, a column a measure."""
        import pandas as pd

        table = self.table(by)
        index = ["dataset", "group", "system"]
        order = table[index].drop_duplicates()
        out = table.pivot_table(index=index, columns="measure", values="mean", sort=False, dropna=False)
        measures = list(dict.fromkeys(table["measure"]))
        return out.loc[pd.MultiIndex.from_frame(order), measures].reset_index()

    def compare(self, by: str | None = None) -> pd.DataFrame:
        """Paired differences to the baseline with 95 % intervals; above 0 is better.

        Raises InputError where the experiment has no baseline.
        """
        if self.baseline is None:
            raise InputError("the experiment has no baseline; pass baseline=NAME")
        return _frame([cell for one in self.evaluations for cell in differences(one, self.baseline, by)])

    @cached_property
    def checks(self) -> pd.DataFrame:
        """The findings of the trust checks."""
        import pandas as pd

        rows = [
            (one.labelled.info.name, check.level, check.name, check.system, check.message)
            for one in self.evaluations
            for check in one.checks
        ]
        return pd.DataFrame(rows, columns=["dataset", "level", "name", "system", "message"])


def _frame(found: Sequence[Cell]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        [
            (
                cell.dataset,
                cell.group,
                cell.system,
                cell.measure,
                cell.interval.mean,
                cell.interval.low,
                cell.interval.high,
                cell.interval.n,
                cell.interval.clusters,
            )
            for cell in found
        ],
        columns=["dataset", "group", "system", "measure", "mean", "low", "high", "n", "clusters"],
    )


def measures_for(labelled: LabelledSet, asked: Sequence[str | Measure] = ()) -> tuple[Measure, ...]:
    """The measures of a run: what was asked for, else the set's primary measure and the defaults; each once."""
    named = asked or (labelled.info.primary_measure, *DEFAULT_MEASURES)
    parsed = [parse_measure(one) if isinstance(one, str) else one for one in named]
    return tuple({str(measure): measure for measure in parsed}.values())


def Experiment(
    datasets: LabelledSet | str | Path | Sequence[LabelledSet | str | Path],
    systems: Sequence[System | Recipe | str],
    measures: Sequence[str | Measure] = (),
    *,
    baseline: str | None = None,
    split: str | None = None,
    query: Literal["task", "context"] = "task",
    depth: int | None = None,
    data: Path | None = None,
    cache: Retrieve | None = None,
    allow_zero: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
) -> ExperimentResult:
    """Run systems on labelled sets and measure them.

    datasets: labelled sets, names of built-in ones, or folders. systems: System values, recipes, or specs
    (`rrf-k60`, `recipe:FILE.toml`). measures: in ir-measures' grammar; empty: the set's primary and defaults.
    query: `context` asks with the conversation that a question comes with too, bounded as pre-retrieval does.
    baseline: the system that `compare` sets the others against. depth: rows asked for; None is the set's own
    or the deepest cutoff. data: where a public set lies. cache: how channel candidates are got; None computes
    them once and keeps them in memory.
    Raises InputError for unknown names, bad measures, or a set without questions.
    """
    from recallbench.datasets.conversation import asked_with_context
    from recallbench.datasets.registry import load
    from recallbench.datasets.select import select

    retrieve = cache if cache is not None else CandidateCache()
    sets = [datasets] if isinstance(datasets, (LabelledSet, str, Path)) else list(datasets)
    loaded = [one if isinstance(one, LabelledSet) else load(str(one), data=data) for one in sets]
    if not loaded or not systems:
        raise InputError("an experiment needs at least one data set and one system")
    evaluations = []
    for whole in loaded:
        labelled = select(whole, split=split) if split else whole
        if query == "context":
            labelled = asked_with_context(labelled)
        chosen = measures_for(labelled, measures)
        rows = depth or depth_for(labelled, chosen)
        runs = []
        for one in systems:
            system = as_system(one, retrieve)
            runs.append(run_system(system, labelled, rows))
            if progress:
                progress(system.name)
        evaluations.append(evaluate(labelled, runs, chosen, rows, split=split, allow_zero=allow_zero))
    result = ExperimentResult(tuple(evaluations), baseline)
    if baseline is not None and any(baseline not in one.systems for one in evaluations):
        raise InputError(f"baseline {baseline!r} is not among the systems: {', '.join(evaluations[0].systems)}")
    return result


def as_system(one: System | Recipe | str, retrieve: Retrieve) -> System:
    """A system value from a recipe or a spec. Raises InputError for a spec that names nothing."""
    if isinstance(one, (SearchRecipe, InjectRecipe)):
        return RecipeSystem(one, retrieve)
    if isinstance(one, str):
        return RecipeSystem(recipe_of(one), retrieve)
    return one
