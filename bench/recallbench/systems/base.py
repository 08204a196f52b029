"""What every system under test gives back for a labelled set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recallbench.datasets.model import LabelledSet


@dataclass(frozen=True, slots=True)
class TraceRow:
    """Where a labelled memory stood after a stage. question: place in the set; rank: 1-based."""

    question: int
    stage: str
    rank: int
    memory: str


@dataclass(frozen=True, eq=False)
class SystemRun:
    """What one system returned for each question of a set, in the set's order.

    ids: returned memory ids, best first. scores: the system's own, same shape.
    semantic: int32 `[Q]`, how many of them a channel contributed. failed: bool `[Q]`.
    losses: for each question, relevant memory id -> the stage that lost it; empty where nothing was traced.
    trace: where each labelled memory stood after each stage; empty where nothing was traced.
    capacity: the most rows that the system gives; None is no limit.
    """

    system: str
    spec: Mapping[str, Any]
    ids: tuple[tuple[str, ...], ...]
    scores: tuple[tuple[float, ...], ...]
    semantic: NDArray[np.int32]
    failed: NDArray[np.bool_]
    losses: tuple[Mapping[str, str], ...] = ()
    trace: tuple[TraceRow, ...] = ()
    capacity: int | None = None
    notes: tuple[str, ...] = ()


class System(Protocol):
    """A system under test."""

    @property
    def name(self) -> str:
        """The name in tables and file names."""

    @property
    def spec(self) -> Mapping[str, Any]:
        """Everything that its answers depend on, as plain values."""

    def run(self, labelled: LabelledSet, depth: int) -> SystemRun:
        """Answer every question of the set with at most `depth` rows."""
