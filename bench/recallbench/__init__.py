"""recallbench: did the recall of an agent memory get better or worse, where, and is it real?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recallbench.ablations import ablation
    from recallbench.compared import compare
    from recallbench.datasets.registry import load
    from recallbench.experiment import Experiment
    from recallbench.frames import from_frames, system_from_frame, to_frames
    from recallbench.measures import parse_measure
    from recallbench.sweep_maps import sweep_map

__all__ = [
    "Experiment",
    "ablation",
    "compare",
    "from_frames",
    "load",
    "parse_measure",
    "sweep_map",
    "system_from_frame",
    "to_frames",
]
__version__ = "0.1.0"

_HOMES = {
    "Experiment": "recallbench.experiment",
    "ablation": "recallbench.ablations",
    "compare": "recallbench.compared",
    "from_frames": "recallbench.frames",
    "load": "recallbench.datasets.registry",
    "parse_measure": "recallbench.measures",
    "sweep_map": "recallbench.sweep_maps",
    "system_from_frame": "recallbench.frames",
    "to_frames": "recallbench.frames",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that the command line's help imports nothing heavy.
    if name not in _HOMES:
        raise AttributeError(f"module 'recallbench' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
