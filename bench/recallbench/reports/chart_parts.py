"""What the charts of reports share: size, tooltips, colours, the theme of static images."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recallbench.reports.words import say
from recallbench.text.escape import clipped, visible

Spec = dict[str, Any]

BLUE, ORANGE, GREY, GREEN, RED = "#3b7dd8", "#d9771e", "#8a94a3", "#2f9e67", "#d1493f"
"""Each has a contrast of at least 3 to 1 against white and against the dark page (WCAG 2.2, 1.4.11)."""
LONGEST_NAME = 60


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Name -> what a chart writes for it: visible, not too long, different for different names.

    Vega puts names into expressions that it parses, so that a line separator in one would break the chart.
    """
    out: dict[str, str] = {}
    for name in names:
        label = start = clipped(visible(name), LONGEST_NAME)
        count = 1
        while label in out.values():
            count += 1
            label = f"{start} ({count})"
        out[name] = label
    return out


def tips(lang: str, **fields: str | tuple[str, str]) -> list[Any]:
    """Tooltips: key of a word -> field, or any key -> (title, field)."""
    import altair as alt

    return [
        alt.Tooltip(f"{field[1]}:N", title=field[0])
        if isinstance(field, tuple)
        else alt.Tooltip(f"{field}:N", title=say(key).in_(lang))
        for key, field in fields.items()
    ]


def sized(chart: Any, height: float) -> Spec:
    """The specification, as wide as its place."""
    import altair as alt

    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    spec: Spec = chart.properties(width="container", height=height, autosize=fit).to_dict()
    spec.pop("config", None)  # the theme of the page or of the image
    return spec


def light(background: str = "white") -> Spec:
    """The theme of static images."""
    ink, grid = "#1c2530", "#dfe4ea"
    axis = {"labelColor": ink, "titleColor": ink, "gridColor": grid, "domainColor": grid, "tickColor": grid}
    return {
        "background": background,
        "font": "sans-serif",
        "axis": {**axis, "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal"},
        "legend": {"labelColor": ink, "titleColor": ink, "labelFontSize": 11},
        "text": {"color": ink},
        "view": {"stroke": None},
    }


def static(spec: Spec, width: int = 720) -> Spec:
    """The specification for a static image: a fixed width and the light theme."""
    return {**spec, "width": width, "autosize": "pad", "config": light()}
