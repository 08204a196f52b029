"""Charts of an experiment and of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recallbench.plots.style import GREEN, LABEL, ORANGE, RED, ROW, WIDTH, altair, data, one_of, whiskers
from recallstack.errors import InputError
from recallstack.ranking.trace import LOSSES

if TYPE_CHECKING:
    import pandas as pd
    from altair import Chart, LayerChart

    from recallbench.evaluation.compared import Compared
    from recallbench.evaluation.experiment import ExperimentResult

TONES = (
    "#2f9e67",
    "#8a94a3",
    "#b9812d",
    "#d1493f",
    "#d9771e",
    "#3b7dd8",
    "#7a5fc0",
    "#c05f9a",
    "#5b6472",
)
"""Of the outcomes in LOSSES, in their order."""


def plot_means(
    result: ExperimentResult, measure: str | None = None, by: str | None = None, systems: Sequence[str] = ()
) -> LayerChart:
    """The mean of each system with its 95 % interval, best first. measure: None is the first.

    by: category, lang, corpus or split: one row a group, its systems side by side. systems: empty is all.
    Raises InputError for an unknown name.

    >>> from recallbench import Experiment
    >>> result = Experiment("mneme-memories", ["keyword-only", "rrf-k60"], ["nDCG@5"])
    >>> type(plot_means(result)).__name__
    'LayerChart'
    """
    table = result.table(by)
    measure = one_of(measure, list(dict.fromkeys(table["measure"])), "measure")
    table = _of_systems(table[table["measure"] == measure], systems)
    higher = _higher(result, measure)
    if by is None:
        rows = table.assign(row=_names(table, "system")).sort_values("mean", ascending=not higher, kind="stable")
        return whiskers(rows, "row", rows["row"].tolist(), title=measure)
    table = table[table["n"] > 0]
    names = _names(table, "group") + " (" + table.groupby(["dataset", "group"])["n"].transform("max").astype(str) + ")"
    rows = table.assign(row=names)
    order = list(dict.fromkeys(rows.sort_values("n", ascending=False, kind="stable")["row"]))
    colors = list(dict.fromkeys(rows["system"]))
    return whiskers(rows, "row", order, title=measure, color="system", colors=colors)


def plot_differences(
    result: ExperimentResult | Compared, measure: str | None = None, by: str | None = None, systems: Sequence[str] = ()
) -> LayerChart:
    """Paired differences with 95 % intervals; above 0 (to the right) is better.

    result: an experiment with a baseline: one row a system, or a group and system with `by`; or what `compare` gave:
    one row a line of its table (`by` is then given to `compare`). measure: None is the first, or all of `compare`.

    >>> from recallbench import Experiment
    >>> result = Experiment("mneme-memories", ["rrf-k1", "rrf-k60"], ["nDCG@5"], baseline="rrf-k60")
    >>> plot_differences(result, by="lang").to_dict()["layer"][1]["encoding"]["x"]["title"]
    'nDCG@5 minus rrf-k60'
    """
    from recallbench.evaluation.compared import Compared

    if isinstance(result, Compared):
        if by is not None or systems:
            raise InputError("give `by` to compare(...): what it gave has its groups and systems already")
        rows = result.table.rename(columns={"difference": "mean"})
        named = [measure] if measure is not None else list(dict.fromkeys(rows["measure"]))
        for name in named:
            one_of(name, list(dict.fromkeys(rows["measure"])), "measure")
        rows = rows[rows["measure"].isin(named)]
        shown = [column for column in ("dataset", "group", "measure") if rows[column].nunique() > 1] or ["measure"]
        names = [" · ".join(str(one) for one in each if one) for each in rows[shown].to_numpy().tolist()]
        sizes = [f" ({n})" if group else "" for n, group in zip(rows["n"], rows["group"], strict=True)]
        rows = rows.assign(row=[name + size for name, size in zip(names, sizes, strict=True)])
        return whiskers(rows, "row", rows["row"].tolist(), title=f"{result.new} minus {result.old}", zero=True)
    table = result.compare(by)
    measure = one_of(measure, list(dict.fromkeys(table["measure"])), "measure")
    table = _of_systems(table[table["measure"] == measure], systems)
    title = f"{measure} minus {result.baseline}"
    if by is None:
        rows = table.assign(row=_names(table, "system"))
        return whiskers(rows, "row", rows["row"].tolist(), title=title, zero=True)
    table = table[table["n"] > 0]
    rows = table.assign(row=_names(table, "group") + " (" + table["n"].astype(str) + ")")
    order = list(dict.fromkeys(rows.sort_values("n", ascending=False, kind="stable")["row"]))
    colors = list(dict.fromkeys(rows["system"]))
    return whiskers(rows, "row", order, title=title, color="system", colors=colors, zero=True)


def plot_flips(compared: Compared, measure: str | None = None) -> Chart:
    """The questions that changed, one bar each, the greatest gain first: how many questions a difference rests on.

    measure: None is the first. Raises InputError where no question changed.
    """
    alt = altair()
    measure = one_of(measure, list(dict.fromkeys(compared.questions["measure"])), "measure")
    mine = compared.questions[(compared.questions["measure"] == measure) & (compared.questions["difference"] != 0)]
    if not len(mine):
        raise InputError(f"no question changed in {measure} between {compared.old!r} and {compared.new!r}")
    rows = mine.sort_values("difference", ascending=False, kind="stable")
    rows = rows.assign(place=range(1, len(rows) + 1))[["place", "question", "old", "new", "difference"]]
    same = int((compared.questions["measure"] == measure).sum()) - len(rows)
    chart: Chart = (
        alt.Chart(data(rows))
        .mark_bar()
        .encode(
            x=alt.X("place:O", axis=None, title=None),
            y=alt.Y("difference:Q", title=f"{measure}: {compared.new} minus {compared.old}"),
            color=alt.when(alt.datum.difference > 0).then(alt.value(GREEN)).otherwise(alt.value(ORANGE)),
            tooltip=["question:N", "old:Q", "new:Q", alt.Tooltip("difference:Q", format="+.3f")],
        )
        .properties(width=WIDTH + 160, height=170, title=f"{len(rows)} questions changed, {same} did not")
    )
    return chart


def plot_losses(result: ExperimentResult, systems: Sequence[str] = (), rel: int | None = None) -> Chart:
    """What became of the relevant memories: the share that each stage lost, and the share that was kept.

    systems: empty is all that leave a trace. rel: the least grade that counts; None is each set's own.
    """
    alt = altair()
    frame = _of_systems(result.losses, systems)
    least = {one.labelled.info.name: one.labelled.info.default_rel for one in result.evaluations}
    frame = frame[frame["grade"] >= (frame["dataset"].map(least) if rel is None else rel)]
    if not len(frame):
        raise InputError("no system of the experiment leaves a trace of relevant memories")
    rows = frame.assign(row=_names(frame, "system"))
    rows = rows.groupby(["row", "outcome"], sort=False).size().rename("memories").reset_index()
    rows["share"] = rows["memories"] / rows.groupby("row")["memories"].transform("sum")
    stages = [name for name in LOSSES if (rows["outcome"] == name).any()]
    stages += [name for name in dict.fromkeys(rows["outcome"]) if name not in stages]
    rows["place"] = rows["outcome"].map({name: place for place, name in enumerate(stages)})
    tones = [TONES[LOSSES.index(name)] if name in LOSSES else RED for name in stages]
    chart: Chart = (
        alt.Chart(data(rows))
        .mark_bar()
        .encode(
            y=alt.Y("row:N", sort=list(dict.fromkeys(rows["row"])), title=None, axis=alt.Axis(labelLimit=LABEL)),
            x=alt.X("share:Q", title="relevant memories", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
            color=alt.Color(
                "outcome:N",
                title=None,
                scale=alt.Scale(domain=stages, range=tones),
                legend=alt.Legend(orient="top", columns=4),
            ),
            order=alt.Order("place:Q"),
            tooltip=["row:N", "outcome:N", "memories:Q", alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(width=WIDTH, height=alt.Step(ROW + 2))
    )
    return chart


def _of_systems(table: pd.DataFrame, systems: Sequence[str]) -> pd.DataFrame:
    known = list(dict.fromkeys(table["system"]))
    for name in systems:
        one_of(name, known, "system")
    return table[table["system"].isin(list(systems) or known)]


def _names(table: pd.DataFrame, column: str) -> pd.Series:
    """Names of rows, with the set in front where there are several."""
    if table["dataset"].nunique() < 2:
        return table[column].astype(str)
    return table["dataset"].astype(str) + " · " + table[column].astype(str)


def _higher(result: ExperimentResult, measure: str) -> bool:
    return next(m.higher_is_better for one in result.evaluations for m in one.measures if str(m) == measure)
