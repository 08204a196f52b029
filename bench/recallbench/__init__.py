"""recallbench: did the recall of an agent memory get better or worse, where, and is it real?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recallbench.datasets.registry import load
    from recallbench.experiment import Experiment
    from recallbench.measures import parse_measure

__all__ = ["Experiment", "load", "parse_measure"]
__version__ = "0.1.0"

_HOMES = {
    "Experiment": "recallbench.experiment",
    "load": "recallbench.datasets.registry",
    "parse_measure": "recallbench.measures",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that the command line's help imports nothing heavy.
    if name not in _HOMES:
        raise AttributeError(f"module 'recallbench' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
