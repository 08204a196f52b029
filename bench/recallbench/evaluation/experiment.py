"""`Experiment`: systems, labelled sets and measures in one call, as pandas tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from recallbench.cache.candidates import CandidateCache
from recallbench.datasets.model import LabelledSet
from recallbench.evaluation.aggregate import Cell, cells, differences
from recallbench.evaluation.evaluate import DEFAULT_MEASURES, Evaluation, depth_for, evaluate, run_system
from recallbench.measures import Measure, parse_measure
from recallbench.systems.base import System
from recallbench.systems.recipe import RecipeSystem
from recallbench.text.display import Displayed, Part, counted
from recallstack.errors import InputError
from recallstack.ranking.pipeline import Retrieve
from recallstack.ranking.recipes import InjectRecipe, Recipe, SearchRecipe

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentResult(Displayed):
    """What came out, as pandas tables; a notebook shows it as tables of means. evaluations: one a labelled set.

    >>> from recallbench import Experiment
    >>> result = Experiment("mneme-memories", ["rrf-k10", "rrf-k60"], ["nDCG@5", "R@20"], baseline="rrf-k60")
    >>> result.wide().round(3)
              dataset group   system  nDCG@5   R@20
    0  mneme-memories        rrf-k10   0.402  0.516
    1  mneme-memories        rrf-k60   0.399  0.512
    >>> result.compare().round(3)[["system", "measure", "mean", "low", "high"]]
        system measure   mean    low   high
    0  rrf-k10  nDCG@5  0.003 -0.001  0.007
    1  rrf-k10    R@20  0.005 -0.002  0.011
    """

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
        return out.loc[pd.MultiIndex.from_frame(order), measures].reset_index().rename_axis(columns=None)

    def compare(self, by: str | None = None) -> pd.DataFrame:
        """Paired differences to the baseline with 95 % intervals; above 0 is better.

        Raises InputError where the experiment has no baseline.
        """
        if self.baseline is None:
            raise InputError("the experiment has no baseline; pass baseline=NAME")
        return _frame([cell for one in self.evaluations for cell in differences(one, self.baseline, by)])

    @cached_property
    def hits(self) -> pd.DataFrame:
        """What came back: one row a dataset, system, question and memory, with its rank and the system's own score."""
        import pandas as pd

        rows = [
            (one.labelled.info.name, run.system, question.id, rank, memory, score)
            for one in self.evaluations
            for run in one.runs
            for question, ids, scores in zip(one.labelled.questions, run.ids, run.scores, strict=True)
            for rank, (memory, score) in enumerate(zip(ids, scores, strict=True), 1)
        ]
        return pd.DataFrame(rows, columns=["dataset", "system", "question", "rank", "memory", "score"])

    @cached_property
    def losses(self) -> pd.DataFrame:
        """What became of each relevant memory: dataset, system, question, memory, its grade and the stage that lost it.

        `kept` are those that came back. Systems that leave no trace have no row.
        """
        import pandas as pd

        rows = [
            (one.labelled.info.name, run.system, question.id, memory, question.relevant.get(memory, 0), outcome)
            for one in self.evaluations
            for run in one.runs
            if run.losses
            for question, lost in zip(one.labelled.questions, run.losses, strict=True)
            for memory, outcome in lost.items()
        ]
        return pd.DataFrame(rows, columns=["dataset", "system", "question", "memory", "grade", "outcome"])

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

    def _parts(self) -> list[Part]:
        return [_part(one, self.baseline) for one in self.evaluations]


def _part(one: Evaluation, baseline: str | None) -> Part:
    """The means of one evaluation, the primary measure with its interval, and what the checks found."""
    from recallbench.text.numbers import mark, number, spread

    at = {(cell.system, cell.measure): cell.interval for cell in cells(one)}
    names = [str(measure) for measure in one.measures]
    header, rows = ["system", *names], []
    changes = (
        {} if baseline is None else {c.system: c.interval for c in differences(one, baseline) if c.measure == names[0]}
    )
    if baseline is not None:
        header.append(f"{names[0]} against {baseline}")
    for system in one.systems:
        row = [system, spread(at[system, names[0]]), *(number(at[system, name].mean) for name in names[1:])]
        if baseline is not None:
            change = changes.get(system)
            row.append("" if change is None else f"{spread(change, signed=True)} {mark(change)}".strip())
        rows.append(row)
    where = f", {one.split} split" if one.split else ""
    about = f"{counted(len(one.labelled.questions), 'question')}{where}, depth {one.depth}" + (
        "" if one.valid else "; INVALID"
    )
    notes = [f"{check.level}: {check.system + ': ' if check.system else ''}{check.message}" for check in one.checks]
    return Part(f"{one.labelled.info.name} {one.labelled.info.version}", about, header, rows, notes)


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
    (`rrf-k60`, `presets:inject`, `recipe:FILE.toml`, `stdio:node plugin.mjs`, …). measures: in ir-measures' grammar;
    empty: the set's primary and defaults.
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
        for system in (each for one in systems for each in as_systems(one, retrieve)):
            runs.append(run_system(system, labelled, rows))
            if progress:
                progress(system.name)
        evaluations.append(evaluate(labelled, runs, chosen, rows, split=split, allow_zero=allow_zero))
    result = ExperimentResult(tuple(evaluations), baseline)
    if baseline is not None and any(baseline not in one.systems for one in evaluations):
        raise InputError(f"baseline {baseline!r} is not among the systems: {', '.join(evaluations[0].systems)}")
    return result


def as_systems(one: System | Recipe | str, retrieve: Retrieve) -> list[System]:
    """The systems that a value, a recipe or a spec names. Raises InputError for a spec that names nothing."""
    if isinstance(one, (SearchRecipe, InjectRecipe)):
        return [RecipeSystem(one, retrieve)]
    if isinstance(one, str):
        from recallbench.systems.specs import systems_of

        return systems_of([one], retrieve)
    return [one]
