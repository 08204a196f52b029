"""Charts of results for notebooks, as Altair charts (extra `notebooks`). None of them holds the text of a memory."""

from __future__ import annotations

from recallbench.plots.effects import plot_effects
from recallbench.plots.results import plot_differences, plot_flips, plot_losses, plot_means
from recallbench.plots.sweeps import plot_k, plot_map

__all__ = [
    "plot_differences",
    "plot_effects",
    "plot_flips",
    "plot_k",
    "plot_losses",
    "plot_map",
    "plot_means",
]
