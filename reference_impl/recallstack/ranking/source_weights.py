"""Source weights of the notes system: what a file's name and folder are worth."""

from __future__ import annotations

from recallstack.ranking.rows import Sensitivity

FACTS_WEIGHT, CARRYOVER_WEIGHT = 1.5, 0.5
"""Source weights; 1.5 is documented (seed 002), 0.5 is a choice."""
CARRYOVER = "carryover"
LEVELS: dict[str, Sensitivity] = {"public.md": "public", "personal.md": "personal", "secret.md": "secret"}
"""File name -> level; any other name is personal."""


def source_weight(file: str) -> float:
    """0.5 below a folder `carryover`, whatever the name; else 1.5 for files named by their level; else 1."""
    *folders, name = file.split("/")
    if CARRYOVER in folders:
        return CARRYOVER_WEIGHT
    return FACTS_WEIGHT if name in LEVELS else 1.0
