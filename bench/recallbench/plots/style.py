"""What the charts share: colours, the size of a row, intervals as a dot with whiskers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recallstack.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from altair import LayerChart

BLUE, ORANGE, GREY, GREEN, RED = "#3b7dd8", "#d9771e", "#8a94a3", "#2f9e67", "#d1493f"
"""As in reports; each has a contrast of at least 3 to 1 against white and against a dark page (WCAG 2.2, 1.4.11)."""
SERIES = (BLUE, ORANGE, GREEN, RED, GREY)
ROW, WIDTH, LABEL = 20, 460, 260
"""Pixels: of a row, of a chart, and of the longest label."""


def altair() -> Any:
    """The library. Raises InputError, with what to install, where it is missing."""
    try:
        import altair as found
    except ImportError:
        raise InputError("charts need altair; install it with: pip install 'recallbench[notebooks]'") from None
    return found


def data(frame: pd.DataFrame) -> Any:
    """Rows inside the chart, so that it needs no file and no limit of rows applies; unknown numbers are null."""
    import json

    return altair().InlineData(values=json.loads(frame.to_json(orient="records", double_precision=12)))


def whiskers(
    frame: pd.DataFrame,
    row: str,
    order: Sequence[str],
    *,
    title: str,
    color: str | None = None,
    colors: Sequence[str] = (),
    zero: bool = False,
) -> LayerChart:
    """One line a row: its `mean` as a dot, `low` to `high` as a bar. color: a column of series side by side.

    zero: a line at 0, for differences.
    """
    alt = altair()
    encoded: dict[str, Any] = {"y": alt.Y(f"{row}:N", sort=list(order), title=None, axis=alt.Axis(labelLimit=LABEL))}
    if color is not None:
        encoded["yOffset"] = alt.YOffset(f"{color}:N", sort=list(colors))
        encoded["color"] = alt.Color(
            f"{color}:N",
            sort=list(colors),
            title=None,
            scale=alt.Scale(domain=list(colors), range=[SERIES[place % len(SERIES)] for place in range(len(colors))]),
            legend=alt.Legend(orient="top", columns=3, labelLimit=LABEL),
        )
    else:
        encoded["color"] = alt.value(BLUE)
    numbers = [column for column in ("mean", "low", "high") if column in frame.columns]
    names = [column for column in frame.columns if column not in numbers]
    encoded["tooltip"] = [
        *(alt.Tooltip(f"{one}:N") for one in names),
        *(alt.Tooltip(f"{one}:Q", format=".3f") for one in numbers),
    ]
    base = alt.Chart(data(frame)).encode(**encoded)
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title=title, scale=alt.Scale(zero=zero, nice=True)), x2="high:Q"
    )
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(x="mean:Q")
    step = alt.Step(ROW) if color is None else alt.Step(max(ROW, 11 * len(colors) + 5), **{"for": "position"})
    line = [_line(0.0)] if zero else []
    chart: LayerChart = alt.layer(*line, bars, dots).properties(width=WIDTH, height=step)
    return chart


def _line(value: float) -> Any:
    """A dashed line at a value of x."""
    alt = altair()
    rows = alt.InlineData(values=[{"at": value}])
    return alt.Chart(rows).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="at:Q")


def one_of(name: str | None, known: Sequence[str], what: str) -> str:
    """A name of the known ones, the first for None. Raises InputError for another."""
    if not known:
        raise InputError(f"there is no {what} to draw")
    if name is None:
        return known[0]
    if name not in known:
        raise InputError(f"no {what} {name!r}; there are: {', '.join(known)}")
    return name
