"""recallbench: did the recall of an agent memory get better or worse, where, and is it real?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recallbench.datasets.registry import load
    from recallbench.evaluation.compared import compare
    from recallbench.evaluation.experiment import Experiment
    from recallbench.evaluation.frames import from_frames, system_from_frame, to_frames
    from recallbench.measures import parse_measure
    from recallbench.sweeps.ablations import ablation
    from recallbench.sweeps.maps import sweep_map

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
    "Experiment": "recallbench.evaluation.experiment",
    "ablation": "recallbench.sweeps.ablations",
    "compare": "recallbench.evaluation.compared",
    "from_frames": "recallbench.evaluation.frames",
    "load": "recallbench.datasets.registry",
    "parse_measure": "recallbench.measures",
    "sweep_map": "recallbench.sweeps.maps",
    "system_from_frame": "recallbench.evaluation.frames",
    "to_frames": "recallbench.evaluation.frames",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that the command line's help imports nothing heavy.
    if name not in _HOMES:
        raise AttributeError(f"module 'recallbench' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
