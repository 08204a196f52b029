"""The answers of one system as JSON, kept until the run is whole (`--resume`)."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from recallbench.systems.base import Match, Observed, SystemRun, TraceRow


class _Seen(msgspec.Struct):
    """Observed as JSON."""

    errors: list[str]
    matches: list[list[Match]]
    latency_ms: list[float | None]
    unstable: list[bool]
    repeats: int

    @classmethod
    def freeze(cls, one: Observed) -> _Seen:
        return cls(
            list(one.errors), [list(m) for m in one.matches], list(one.latency_ms), list(one.unstable), one.repeats
        )

    def thaw(self) -> Observed:
        return Observed(
            tuple(self.errors),
            tuple(tuple(one) for one in self.matches),
            tuple(np.nan if one is None else one for one in self.latency_ms),
            tuple(self.unstable),
            self.repeats,
        )


class Held(msgspec.Struct):
    """A SystemRun as JSON."""

    system: str
    spec: dict[str, Any]
    ids: list[list[str]]
    scores: list[list[float | None]]
    semantic: list[int]
    failed: list[bool]
    losses: list[dict[str, str]]
    trace: list[tuple[int, str, int, str]]
    capacity: int | None
    notes: list[str]
    observed: _Seen | None = None

    @classmethod
    def freeze(cls, run: SystemRun) -> Held:
        return cls(
            run.system,
            dict(run.spec),
            [list(one) for one in run.ids],
            [list(one) for one in run.scores],
            run.semantic.tolist(),
            run.failed.tolist(),
            [dict(one) for one in run.losses],
            [(row.question, row.stage, row.rank, row.memory) for row in run.trace],
            run.capacity,
            list(run.notes),
            None if run.observed is None else _Seen.freeze(run.observed),
        )

    def thaw(self) -> SystemRun:
        return SystemRun(
            self.system,
            self.spec,
            tuple(tuple(one) for one in self.ids),
            tuple(tuple(np.nan if s is None else s for s in one) for one in self.scores),
            np.array(self.semantic, np.int32),
            np.array(self.failed, np.bool_),
            tuple(self.losses),
            tuple(TraceRow(*row) for row in self.trace),
            self.capacity,
            tuple(self.notes),
            None if self.observed is None else self.observed.thaw(),
        )
