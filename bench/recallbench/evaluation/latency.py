"""How long systems that do not run in process took for a question, on our side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recallbench.systems.base import SystemRun


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from question to answer. n: questions that were answered."""

    p50_ms: float
    p95_ms: float
    n: int

    def values(self) -> dict[str, float | int]:
        """Plain values for JSON, to the microsecond."""
        return {"p50_ms": round(self.p50_ms, 3), "p95_ms": round(self.p95_ms, 3), "n": self.n}


def latency_of(run: SystemRun) -> Latency | None:
    """Median and 95th percentile (linear interpolation, numpy's default); None where nothing was timed."""
    if run.observed is None:
        return None
    timed = [one for one in run.observed.latency_ms if not math.isnan(one)]
    if not timed:
        return None
    p50, p95 = np.percentile(timed, [50, 95]).tolist()
    return Latency(p50, p95, len(timed))


def latencies(runs: Sequence[SystemRun]) -> dict[str, Latency]:
    """System -> latency, of those that were timed."""
    return {run.system: one for run in runs if (one := latency_of(run)) is not None}


def latency_line(runs: Sequence[SystemRun]) -> str:
    """One line for the terminal; empty where nothing was timed."""
    shown = [
        f"{name} p50 {one.p50_ms:.1f} ms, p95 {one.p95_ms:.1f} ms ({one.n} questions)"
        for name, one in latencies(runs).items()
    ]
    return f"Latency on our side: {'; '.join(shown)}" if shown else ""
