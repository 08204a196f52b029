"""The charts of a report as Vega-Lite specifications, made with Altair; colours of text and grid come from a theme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recallbench.reports.chart_parts import BLUE, GREEN, GREY, ORANGE, RED, Spec, short_names, sized, tips
from recallbench.reports.inputs import Sweep
from recallbench.reports.losses import Waterfall
from recallbench.reports.section import Section
from recallbench.reports.standing import Standing
from recallbench.reports.words import outcome, say
from recallbench.text.escape import visible
from recallbench.text.numbers import number, spread

TONES = {"best": GREEN, "tied": BLUE, "behind": GREY}
ROW = 22
"""Pixels that a system or group takes."""
MOST_GROUPS = 20
NEAR = 0.08
"""Share of the range within which two points share a name."""
LABEL = 220
"""Pixels after which a name is cut."""


def forest(held: Standing, lang: str) -> Spec:
    """The primary measure of every system with its interval, best first."""
    import altair as alt

    words = {tone: say(tone).in_(lang) for tone in TONES}
    names = short_names(held.order)
    rows = [
        {
            "system": names[name] + (f" ({say('base').in_(lang)})" if name == held.baseline else ""),
            "mean": interval.mean,
            "low": interval.low,
            "high": interval.high,
            "tone": words[held.tone(name)],
            "shown": spread(interval),
        }
        for name in held.order
        if (interval := held.means[name, held.primary]).n
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("system:N", sort=[str(row["system"]) for row in rows], title=None, axis=alt.Axis(labelLimit=LABEL)),
        color=alt.Color(
            "tone:N",
            title=None,
            scale=alt.Scale(domain=list(words.values()), range=list(TONES.values())),
            legend=alt.Legend(orient="top"),
        ),
        tooltip=tips(lang, system="system", measure=(held.primary, "shown")),
    )
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X(
            "low:Q", title=held.primary, scale=alt.Scale(zero=False, nice=False, padding=8), axis=alt.Axis(tickCount=8)
        ),
        x2="high:Q",
    )
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(x="mean:Q")
    return sized(alt.layer(bars, dots), ROW * len(rows))


def pareto(section: Section, kind: str, lang: str) -> Spec:
    """The primary measure against one kind of cost, the front joined by a line and named."""
    import altair as alt

    held, cost = section.held, next(one for one in section.costs if one.kind == kind)
    words = {True: say("c.front").in_(lang), False: say("c.other").in_(lang)}
    names = short_names(held.order)
    rows = [
        {
            "system": names[name],
            "cost": value,
            "mean": held.means[name, held.primary].mean,
            "front": name in cost.front,
            "shown": number(held.means[name, held.primary].mean),
            "price": number(value),
        }
        for name, value in cost.at.items()
    ]
    x = alt.X("cost:Q", title=say(f"cost.{kind}").in_(lang), axis=alt.Axis(tickCount=8))
    y = alt.Y("mean:Q", title=held.primary, scale=alt.Scale(zero=False, nice=True))
    on_front = [next(row for row in rows if row["system"] == names[name]) for name in cost.front]
    of_front = alt.InlineData(values=on_front)
    points = (
        alt.Chart(alt.InlineData(values=[{**row, "front": words[bool(row["front"])]} for row in rows]))
        .mark_point(filled=True, size=70, opacity=0.9)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "front:N",
                title=None,
                scale=alt.Scale(domain=list(words.values()), range=[GREEN, GREY]),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=tips(
                lang, system="system", measure=(held.primary, "shown"), price=(say(f"cost.{kind}").in_(lang), "price")
            ),
        )
    )
    line = alt.Chart(of_front).mark_line(color=GREEN, interpolate="step-after", opacity=0.6).encode(x=x, y=y)
    labels = alt.Chart(alt.InlineData(values=_spaced(on_front))).encode(x=x, y=y, text="label:N")
    align = alt.expr("datum.left ? 'left' : 'right'")
    return sized(alt.layer(line, points, labels.mark_text(align=align, dx=7, dy=-9, limit=LABEL)), 320)


def _spaced(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The points of the front that get a name: of several that nearly coincide the best, with how many more."""
    if not rows:
        return []
    wide = (max(row["cost"] for row in rows) - min(row["cost"] for row in rows)) or 1.0
    high = (max(row["mean"] for row in rows) - min(row["mean"] for row in rows)) or 1.0
    out: list[list[dict[str, Any]]] = []
    for row in reversed(rows):  # the dearest, which is the best, first
        last = out[-1][0] if out else None
        if last and abs(last["cost"] - row["cost"]) < NEAR * wide and abs(last["mean"] - row["mean"]) < NEAR * high:
            out[-1].append(row)
        else:
            out.append([row])
    half = min(row["cost"] for row in rows) + 0.6 * wide
    return [
        {
            **one[0],
            "label": one[0]["system"] + (f" +{len(one) - 1}" if len(one) > 1 else ""),
            "left": one[0]["cost"] <= half,
        }
        for one in out
    ]


def waterfalls(all_: Sequence[Waterfall], lang: str) -> list[Spec]:
    """For each system, how many relevant memories each stage lost, from all of them down to those that were kept."""
    if not all_:
        return []
    spec = _waterfall(max(one.total for one in all_), len(all_[0].counts) + 1, lang)
    del spec["datasets"]  # each has its own
    widest = max(one.total for one in all_)
    return [{**spec, "data": {"values": _steps(one, widest, lang)}} for one in all_]


def _steps(one: Waterfall, widest: int, lang: str) -> list[dict[str, Any]]:
    """A row a bar. inside: its count stands inside, as the bar ends too far to the right for it to stand behind."""
    return [
        {
            "stage": say("w.all").in_(lang) if not name else visible(outcome(name).in_(lang)),
            "from": start,
            "to": end,
            "count": end - start,
            "inside": end > 0.85 * widest,
            "on_bar": end > 0.85 * widest and end > start,
            "kind": "all" if not name else "kept" if name == "kept" else "lost",
        }
        for name, start, end in [("", 0, one.total), *one.steps]
    ]


def _waterfall(total: int, rows: int, lang: str) -> Spec:
    import altair as alt

    domain = [0, max(total, 1)]
    base = alt.Chart(alt.InlineData(values=[])).encode(
        y=alt.Y("stage:N", sort=None, title=None, axis=alt.Axis(labelLimit=LABEL)),
        tooltip=tips(lang, **{"w.stage": "stage", "w.memories": "count"}),
    )
    x = alt.X("from:Q", title=say("w.memories").in_(lang), scale=alt.Scale(domain=domain), axis=alt.Axis(tickCount=8))
    kinds = alt.Scale(domain=["all", "lost", "kept"], range=[GREY, ORANGE, GREEN])
    bars = base.mark_bar().encode(x=x, x2="to:Q", color=alt.Color("kind:N", legend=None, scale=kinds))
    align, dx = alt.expr("datum.inside ? 'right' : 'left'"), alt.expr("datum.inside ? -4 : 4")
    text = base.mark_text(align=align, dx=dx).encode(
        x="to:Q", text="count:Q", color=alt.when(alt.datum.on_bar).then(alt.value("#10151c"))
    )
    return sized(alt.layer(bars, text), ROW * rows)


def groups(section: Section, by: str, lang: str) -> Spec:
    """The primary measure by group, of the best system and of the one it is shown beside; the largest groups first."""
    import altair as alt

    held = section.held
    systems = [name for name in (held.pick, held.second) if name is not None]
    found = [cell for cell in section.groups[by] if cell.measure == held.primary and cell.interval.n]
    largest = {cell.group: cell.interval.n for cell in found if cell.system == held.pick}
    order = sorted(largest, key=lambda name: -largest[name])[:MOST_GROUPS]
    names, labels = short_names(systems), short_names(order)
    rows = [
        {
            "group": f"{labels[cell.group]} ({cell.interval.n})",
            "system": names[cell.system],
            "mean": cell.interval.mean,
            "low": cell.interval.low,
            "high": cell.interval.high,
            "shown": spread(cell.interval),
        }
        for name in order
        for cell in found
        if cell.group == name and cell.system in systems
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y(
            "group:N",
            sort=list(dict.fromkeys(str(row["group"]) for row in rows)),
            title=None,
            axis=alt.Axis(labelLimit=LABEL),
        ),
        yOffset=alt.YOffset("system:N", sort=list(names.values())),
        color=alt.Color(
            "system:N",
            title=None,
            sort=list(names.values()),
            scale=alt.Scale(domain=list(names.values()), range=[GREEN, ORANGE][: len(systems)]),
            legend=alt.Legend(orient="top", labelLimit=LABEL),
        ),
        tooltip=tips(lang, system="system", value="group", measure=(held.primary, "shown")),
    )
    x = alt.X("low:Q", title=held.primary, axis=alt.Axis(tickCount=8))
    bars = base.mark_rule(strokeWidth=2).encode(x=x, x2="high:Q")
    dots = base.mark_point(filled=True, size=55, opacity=1).encode(x="mean:Q")
    return sized(alt.layer(bars, dots), (ROW + 8) * len(order))


def heat_map(sweep: Sweep, lang: str) -> Spec:
    """k against the depth of the pool."""
    import altair as alt

    values = [value for *_, value in sweep.cells]
    middle = (min(values) + max(values)) / 2
    rows = [
        {"k": f"{k:g}", "pool": str(pool), "value": value, "shown": number(value)} for k, pool, value in sweep.cells
    ]
    ks = [f"{k:g}" for k in sorted({k for k, *_ in sweep.cells})]
    pools = [str(pool) for pool in sorted({pool for _, pool, _ in sweep.cells})]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("pool:O", sort=pools, title=say("h.pool").in_(lang), axis=alt.Axis(labelAngle=0)),
        y=alt.Y("k:O", sort=ks, title="k"),
        tooltip=[
            alt.Tooltip("k:N", title="k"),
            alt.Tooltip("pool:N", title="pool"),
            alt.Tooltip("shown:N", title=sweep.measure),
        ],
    )
    scale = alt.Scale(scheme="viridis", reverse=not sweep.higher_is_better)
    cells = base.mark_rect().encode(
        color=alt.Color("value:Q", scale=scale, legend=alt.Legend(title=sweep.measure, format=".3f"))
    )
    light = alt.datum.value > middle if sweep.higher_is_better else alt.datum.value < middle
    text = base.mark_text(fontSize=10).encode(
        text="shown:N", color=alt.when(light).then(alt.value("#10151c")).otherwise(alt.value("#ffffff"))
    )
    return sized(alt.layer(cells, text), (ROW + 2) * len(ks))


def trend(points: Sequence[dict[str, Any]], breaks: Sequence[str], measure: str, lang: str) -> Spec:
    """A measure over revisions. points: revision, system, mean, low, high; breaks: revisions with other data."""
    import altair as alt

    order = list(dict.fromkeys(one["revision"] for one in points))
    apart = alt.Scale(paddingInner=0.3, paddingOuter=0.15)
    x = alt.X("revision:O", sort=order, scale=apart, title=say("t.revision").in_(lang), axis=alt.Axis(labelAngle=-40))
    systems = list(dict.fromkeys(one["system"] for one in points))
    base = alt.Chart(alt.InlineData(values=list(points))).encode(
        x=x,
        xOffset=alt.XOffset("system:N", sort=systems),  # beside each other: intervals on one line hide one another
        color=alt.Color(
            "system:N", title=None, sort=systems, legend=alt.Legend(orient="top", columns=2, labelLimit=LABEL)
        ),
        tooltip=tips(lang, **{"t.revision": "revision"}, system="system", measure=(measure, "shown")),
    )
    y = alt.Y("mean:Q", title=measure, scale=alt.Scale(zero=False))
    line = base.mark_line(opacity=0.7).encode(y=y, detail="part:N")
    bars = base.mark_rule(opacity=0.5).encode(y=alt.Y("low:Q", title=measure), y2="high:Q")
    dots = base.mark_point(filled=True, size=55, opacity=1).encode(y=y)
    if not breaks:
        return sized(alt.layer(line, bars, dots), 340)
    rules = (
        alt.Chart(alt.InlineData(values=[{"revision": one} for one in breaks]))
        .mark_rule(strokeDash=[5, 4], color=RED, strokeWidth=1.5)
        .encode(x=alt.X("revision:O", sort=order, scale=apart, bandPosition=0))  # left of all systems of the revision
    )
    return sized(alt.layer(rules, line, bars, dots), 340)
