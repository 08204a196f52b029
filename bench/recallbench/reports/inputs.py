"""What a report is given besides runs: results of `recallbench sweep --json` and `recallbench scenarios run --json`."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from recallbench.measures import parse_measure
from recallstack.errors import InputError


class _Title(msgspec.Struct):
    en: str
    zh: str


class ScenarioResult(msgspec.Struct, frozen=True):
    """One scenario on one implementation and variant, as `scenarios run --json` prints it."""

    scenario: str
    system: str
    kind: str
    title: _Title
    implementation: str
    variant: str
    outcome: str


@dataclass(frozen=True, eq=False)
class Sweep:
    """Plain rank fusion in a sweep: one value a k and pool. measure: the one that chose; sentence: what came of it.

    how: how it was chosen, empty where the file does not say; chosen: the name of the choice; reported: its value of
    the measure on the questions that count; recipes: how many were tried.
    """

    path: Path
    dataset: str
    measure: str
    higher_is_better: bool
    sentence: str
    how: str
    chosen: str
    reported: float | None
    recipes: int
    cells: tuple[tuple[float, int, float], ...]


def read_scenarios(path: Path) -> tuple[ScenarioResult, ...]:
    """The results in a file of `recallbench scenarios run --json`. Raises InputError for another file."""
    try:
        return tuple(msgspec.json.decode(_bytes(path), type=list[ScenarioResult]))
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not what `recallbench scenarios run --json` prints: {error}") from None


def read_sweep(path: Path) -> Sweep:
    """The rows of method rrf in a file of `recallbench sweep --json`. Raises InputError for another file."""
    try:
        value: Any = json.loads(_bytes(path))
        measure = next(iter(value["reported"]))
        rows = [row for row in value["rows"] if row["method"] == "rrf" and not _weighted(row)]
        cells = tuple(
            (float(row["k"]), int(row["pool"]), float(row[measure])) for row in rows if row[measure] is not None
        )
        found = Sweep(
            path,
            value["dataset"],
            measure,
            parse_measure(measure).higher_is_better,
            value["sentence"],
            str(value.get("how", "")),
            str(value.get("chosen", {}).get("name", "")),
            value["reported"][measure],
            len(value["rows"]),
            cells,
        )
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        raise InputError(f"{path}: not what `recallbench sweep --json` prints ({error!r})") from None
    if not found.cells:
        raise InputError(f"{path}: the sweep holds no plain rank fusion; sweep with --method rrf")
    return found


def _weighted(row: dict[str, Any]) -> bool:
    """Whether weights had a say: then k and pool are not all that differs."""
    weights = [value for key, value in row.items() if key.startswith("weight_")]
    return any(one is not None and not math.isnan(one) for one in weights) or bool(row.get("like_override"))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot read: {error.strerror or error}") from None
