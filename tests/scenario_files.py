"""A scenario of a test's own: written to a folder, loaded, played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recallbench.scenarios import engine
from recallbench.scenarios.load import load
from recallbench.scenarios.model import Scenario
from recallbench.scenarios.reference import Reference

NAME = "mine.yaml"


def scenario(folder: Path, text: str) -> Scenario:
    """The scenario of this text, in the file NAME of the folder."""
    path = folder / NAME
    path.write_text(text, encoding="utf-8")
    return load([path], Reference())[0]


def saved(folder: Path, head: str, given: str, steps: str) -> dict[str, Any]:
    """What the steps of a scenario saved. head: all before `given`, and its mutant."""
    text = f"{head}given: {given}\nsteps:\n{steps}\nexpect:\n  - {{not_empty: got}}\n"
    found, broken = engine.play(scenario(folder, text), Reference(), {})
    assert broken == []
    return found


def passes_and_its_mutant_is_caught(folder: Path, text: str) -> bool:
    results = engine.run([scenario(folder, text)], Reference())
    return [(one.variant, one.outcome) for one in results] == [("fixed", "passed"), ("mutant", "passed")]
