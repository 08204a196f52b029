"""Charts of a map over k and pool depth."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from recallbench.plots.style import GREY, RED, SERIES, altair, data

if TYPE_CHECKING:
    from altair import Chart, LayerChart

    from recallbench.sweeps.maps import Cell, Split, SweepMap
    from recallstack.ranking.specs import ChannelName

COLUMNS = 40
"""Values of k that a map draws at most."""


def plot_map(
    found: SweepMap,
    measure: str | None = None,
    split: Split | None = None,
    *,
    against: Cell | ChannelName | None = None,
    marks: Sequence[Cell] = (),
) -> LayerChart:
    """A map over k (log scale) and pool depth. measure: None is the first.

    against: a cell or a channel: colours then show the paired difference to it, blue above 0, red below. marks: cells
    that get a ring; the best one always gets a dot. Of many values of k those are drawn that lie evenly on that scale.

    >>> from recallbench import sweep_map
    >>> found = sweep_map("mneme-memories", measures=["nDCG@5"], k=(1, 60), pools=(20, 100))
    >>> len(plot_map(found, against=(60, 20), marks=[(60, 20)]).layer)
    3
    """
    alt = altair()
    measure = found.measures[0] if measure is None else measure
    drawn = _spread(found.k)
    frame = found.table(measure, split, against)
    frame = frame[frame["k"].isin(drawn)]
    edges, depths = _edges(drawn), _edges(found.pools)
    frame["k_end"] = frame["k"].map(dict(zip(drawn, edges[1:], strict=True)))
    frame["k_start"] = frame["k"].map(dict(zip(drawn, edges[:-1], strict=True)))
    frame["pool_start"] = frame["pool"].map(dict(zip(found.pools, depths[:-1], strict=True)))
    frame["pool_end"] = frame["pool"].map(dict(zip(found.pools, depths[1:], strict=True)))
    value = "mean" if against is None else "difference"
    legend = alt.Legend(title=measure if against is None else f"{measure}, difference", format=".3f")
    if against is None:
        scale = alt.Scale(scheme="viridis", reverse=not bool(found.higher[found.measures.index(measure)]))
    else:
        most = float(np.nanmax(np.abs(frame[value]))) or 1.0
        scale = alt.Scale(scheme="redblue", domain=[-most, most])
    x = alt.X("k_start:Q", title="k", scale=alt.Scale(type="log", nice=False, domain=[edges[0], edges[-1]]))
    y = alt.Y("pool_start:Q", title="pool", scale=alt.Scale(nice=False, zero=False, domain=[depths[0], depths[-1]]))
    cells = (
        alt.Chart(data(frame))
        .mark_rect(strokeWidth=1)  # a border of the same colour: no hair lines between cells
        .encode(
            x=x,
            x2="k_end:Q",
            y=y,
            y2="pool_end:Q",
            fill=alt.Fill(f"{value}:Q", scale=scale, legend=legend),
            stroke=alt.Stroke(f"{value}:Q", scale=scale, legend=None),
            tooltip=["k:Q", "pool:Q", *(alt.Tooltip(f"{one}:Q", format=".3f") for one in ("mean", "low", "high"))],
        )
    )
    best = found.best(measure, split)
    layers = [cells, _points(found, [best], filled=True)]
    if marks:
        layers.append(_points(found, marks, filled=False))
    name = found.dataset + (f" {split}" if split else "")
    title = f"{name}: {measure}, best at k = {best[0]:g}, pool {best[1]}"
    chart: LayerChart = alt.layer(*layers).properties(width=300, height=210, title=title)
    return chart


def _points(found: SweepMap, cells: Sequence[Cell], filled: bool) -> Chart:
    """Marks in the middle of cells."""
    alt = altair()
    edges, depths = _edges(found.k), _edges(found.pools)
    rows = []
    for k, pool in cells:
        found.cell((k, pool))  # an InputError for a cell that is not in the map
        at, deep = found.k.index(k), found.pools.index(pool)
        rows.append(
            {"k": float(np.sqrt(edges[at] * edges[at + 1])), "pool": float(depths[deep] + depths[deep + 1]) / 2}
        )
    chart: Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(filled=filled, size=70, color="black", stroke="white" if filled else "black", opacity=1)
        .encode(x="k:Q", y="pool:Q")
    )
    return chart


def _spread(values: Sequence[float]) -> list[float]:
    """At most COLUMNS of the values, evenly on the log scale, both ends among them."""
    wanted = np.geomspace(values[0], values[-1], COLUMNS)
    return sorted({min(values, key=lambda one: abs(np.log(one / at))) for at in wanted})


def _edges(values: Sequence[float]) -> list[float]:
    """Borders between values in ascending order; the outer ones are as far off as the nearest inner one."""
    inner = [(a + b) / 2 for a, b in itertools.pairwise(values)]
    if not inner:
        return [values[0] * 0.9, values[0] * 1.1]
    first = max(values[0] - (inner[0] - values[0]), values[0] / 2)
    return [first, *inner, values[-1] + (values[-1] - inner[-1])]


def plot_k(
    found: SweepMap, pools: Sequence[int] = (), measure: str | None = None, split: Split | None = None
) -> LayerChart:
    """A measure along k (log scale), one line a pool depth, with each channel alone as a dashed line.

    pools: empty is the least, the middle and the greatest. measure: None is the first. The band is the 95 % interval of
    the deepest pool shown: intervals of the other lines are as wide, and would hide one another.
    """
    alt = altair()
    measure = found.measures[0] if measure is None else measure
    shown = list(pools) or list(dict.fromkeys([found.pools[0], found.pools[len(found.pools) // 2], found.pools[-1]]))
    frame = found.table(measure, split)
    for pool in shown:
        found.cell((found.k[0], pool))
    frame = frame[frame["pool"].isin(shown)].assign(line=lambda rows: "pool " + rows["pool"].astype(str))
    names = [f"pool {pool}" for pool in shown]
    alone = [{"line": f"{name} alone", "mean": found.channel(name, measure, split).mean} for name in found.alone]
    colors = [SERIES[place % len(SERIES)] for place in range(len(names))] + [GREY, RED, "#5b6472", "#7a5fc0", "#c05f9a"]
    domain = [*names, *(str(one["line"]) for one in alone)]
    color = alt.Color(
        "line:N",
        title=None,
        sort=domain,
        scale=alt.Scale(domain=domain, range=colors[: len(domain)]),
        legend=alt.Legend(labelLimit=220),
    )
    x = alt.X("k:Q", title="k", scale=alt.Scale(type="log", nice=False))
    y = alt.Y("mean:Q", title=measure, scale=alt.Scale(zero=False))
    lines = alt.Chart(data(frame)).mark_line().encode(x=x, y=y, color=color)
    band = (
        alt.Chart(data(frame[frame["pool"] == max(shown)]))
        .mark_area(opacity=0.12, color=colors[shown.index(max(shown))])
        .encode(x=x, y=alt.Y("low:Q", title=measure), y2="high:Q")
    )
    rules = (
        alt.Chart(alt.InlineData(values=alone)).mark_rule(strokeDash=[5, 4], strokeWidth=1.5).encode(y=y, color=color)
    )
    title = f"{found.dataset}{f' {split}' if split else ''}: {measure}"
    chart: LayerChart = alt.layer(band, rules, lines).properties(width=300, height=210, title=title)
    return chart
