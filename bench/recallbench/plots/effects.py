"""Chart of an ablation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recallbench.plots.style import one_of, whiskers

if TYPE_CHECKING:
    from altair import LayerChart

    from recallbench.sweeps.ablations import Ablation

KINDS = {"alone": "alone", "shapley": "on average", "last": "last", "all": "all together"}
"""Kinds of effects that are drawn -> how they are named."""


def plot_effects(found: Ablation, measure: str | None = None, pairs: bool = False) -> LayerChart:
    """What each switch is worth with 95 % intervals, to the right is better: alone, on average, last.

    measure: None is the first. pairs: the interactions instead. Several sets or groups stand below one another.
    Raises InputError for a measure that the ablation does not have.
    """
    table = found.table
    measure = one_of(measure, list(dict.fromkeys(table["measure"])), "measure")
    kinds = {"pair": "together, beyond each on its own"} if pairs else KINDS
    rows = table[(table["measure"] == measure) & table["kind"].isin(kinds)].rename(columns={"difference": "mean"})
    shown = [column for column in ("dataset", "group") if rows[column].nunique() > 1]
    keys = rows[[*shown, "effect"]].to_numpy().tolist()
    rows = rows.assign(row=[" · ".join(map(str, one)) for one in keys], as_what=rows["kind"].map(kinds))
    places = [[list(dict.fromkeys(rows[column])).index(value) for value in rows[column]] for column in shown]
    order = list(dict.fromkeys(rows["row"].iloc[np.lexsort([range(len(rows)), *reversed(places)])]))
    colors = [name for name in kinds.values() if (rows["as_what"] == name).any()]
    title = f"{measure}, difference"
    if len(colors) == 1:
        return whiskers(rows, "row", order, title=title, zero=True)
    return whiskers(rows, "row", order, title=title, color="as_what", colors=colors, zero=True)
