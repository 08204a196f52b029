"""What every system under test gives back for a labelled set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

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


Match = Literal["id", "source_ids", "id_map", "text", "none"]
"""How a returned row was matched to a memory of the set; `none`: it keeps its place and counts for nothing."""


@dataclass(frozen=True, eq=False)
class Observed:
    """What was seen, from outside, of a system that does not run in process. One entry a question.

    errors: why there is no valid answer, empty where there is one. matches: how each returned row was matched.
    latency_ms: from question to answer on our side, NaN where there was none. unstable: whether another list came
    back in a later repeat. repeats: how often each question was asked.
    """

    errors: tuple[str, ...]
    matches: tuple[tuple[Match, ...], ...]
    latency_ms: tuple[float, ...]
    unstable: tuple[bool, ...]
    repeats: int = 1


@dataclass(frozen=True, eq=False)
class SystemRun:
    """What one system returned for each question of a set, in the set's order.

    ids: returned memory ids, best first. scores: the system's own, same shape.
    semantic: int32 `[Q]`, how many of them a channel contributed. failed: bool `[Q]`.
    losses: for each question, relevant memory id -> the stage that lost it; empty where nothing was traced.
    trace: where each labelled memory stood after each stage; empty where nothing was traced.
    capacity: the most rows that the system gives; None is no limit.
    observed: of a system that does not run in process.
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
    observed: Observed | None = None


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
