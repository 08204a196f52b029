"""Everything that a report shows of one run, as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recallbench.datasets.model import Question
from recallbench.evaluation.aggregate import GROUPINGS, Cell, cells
from recallbench.reports.costs import Cost, costs
from recallbench.reports.inputs import Sweep
from recallbench.reports.losses import Waterfall, waterfalls
from recallbench.reports.standing import Resolution, Standing, needed, resolutions, standing
from recallbench.reports.verdict import Verdict, verdict
from recallbench.runs.load import StoredRun
from recallbench.runs.publish import public
from recallbench.scenarios.sessions import NONE, system_name
from recallstack.errors import InputError

GROUPED = ("category", "lang", "split", "corpus")


@dataclass(frozen=True, eq=False)
class Section:
    """One run of a report. groups: grouping -> cells of all systems and measures, if there are two groups or more."""

    run: StoredRun
    held: Standing
    verdict: Verdict
    groups: dict[str, list[Cell]]
    costs: list[Cost]
    waterfalls: list[Waterfall]
    resolutions: list[Resolution]
    needed: list[tuple[str, float, int]]
    sweep: Sweep | None

    @property
    def name(self) -> str:
        return self.run.name

    @property
    def shown(self) -> tuple[str, ...]:
        """The measures shown by group: the primary one, nDCG@5 and R@20, where they were measured."""
        names = [str(measure) for measure in self.run.evaluation.measures]
        return tuple(name for name in dict.fromkeys((names[0], "nDCG@5", "R@20")) if name in names)

    def text_of(self, place: int) -> str:
        """The text of a question; empty where the run holds none."""
        question: Question = self.run.evaluation.labelled.questions[place]
        return self.run.texts.get(("question", question.corpus, question.id), "")


def sections(
    runs: Sequence[StoredRun],
    *,
    baseline: str | None = None,
    include_text: bool = False,
    publish: bool = False,
    sweeps: Sequence[Sweep] = (),
) -> list[Section]:
    """What a report shows of these runs.

    baseline: None takes that of each run. Raises InputError for a baseline that no run has, for texts asked of a run
    without, and for a sweep of a set that is not among the runs.
    """
    if publish and include_text:
        raise InputError("--publish hides ids and --include-text shows texts; give one of them")
    known = {run.name for run in runs}
    for sweep in sweeps:
        if sweep.dataset not in known:
            raise InputError(f"{sweep.path}: a sweep of {sweep.dataset!r}; the runs are of {', '.join(sorted(known))}")
    if baseline is not None and not any(baseline in run.evaluation.systems for run in runs):
        names = dict.fromkeys(name for run in runs for name in run.evaluation.systems)
        raise InputError(f"--baseline {baseline}: not among the systems: {', '.join(names)}")
    return [_section(run, baseline, include_text, publish, sweeps) for run in runs]


def _section(
    run: StoredRun, baseline: str | None, include_text: bool, publish: bool, sweeps: Sequence[Sweep]
) -> Section:
    if include_text and not run.texts:
        raise InputError(f"{run.folders[0]}: the run holds no texts; make it with `recallbench run … --include-text`")
    if publish:
        run = public(run)
    elif not include_text:
        run = run.without_texts()
    # A replay sets every bug against the stack without one.
    wanted = (baseline, run.manifest["settings"].get("baseline"), system_name(NONE, 1))
    chosen = next((name for name in wanted if name in run.evaluation.systems), None)
    held = standing(run.evaluation, chosen)
    grouped = {by: cells(run.evaluation, by) for by in GROUPED if by in GROUPINGS}
    sweep = next((one for one in sweeps if one.dataset == run.name), None)
    return Section(
        run,
        held,
        verdict(held),
        {by: found for by, found in grouped.items() if len({cell.group for cell in found}) > 1},
        costs(run, held),
        waterfalls(run.evaluation),
        resolutions(held),
        needed(held),
        sweep,
    )
