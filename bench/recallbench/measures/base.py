"""What a measure is: a frozen value that turns ranks of labelled memories into one number a question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recallbench.measures.ranked import RankedLabels
from recallstack.errors import InputError

Float = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Measure(ABC):
    """A measure in ir-measures' grammar: `Name(param=value)@cutoff`.

    cutoff: only the first rows count; None is the whole list. `str` gives the canonical name.
    """

    cutoff: int | None = None

    title: ClassVar[str]
    """The name before the parentheses."""
    higher_is_better: ClassVar[bool] = True
    worst: ClassVar[float] = 0.0
    """The value of a question that the system failed."""
    denominator: ClassVar[str]
    """What the mean is taken over, in a few words."""
    needs_cutoff: ClassVar[bool] = False
    takes_cutoff: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.cutoff is not None and self.cutoff < 1:
            raise InputError(f"measure {self.title}@{self.cutoff}: the cutoff must be at least 1")

    def __str__(self) -> str:
        given = [
            f"{one.name}={value!r}" if isinstance(value, str) else f"{one.name}={value}"
            for one in fields(self)
            if one.name != "cutoff" and (value := getattr(self, one.name)) != one.default
        ]
        inside = f"({','.join(given)})" if given else ""
        at = "" if self.cutoff is None else f"@{self.cutoff}"
        return f"{self.title}{inside}{at}"

    @property
    def name(self) -> str:
        return str(self)

    @abstractmethod
    def values(self, ranked: RankedLabels) -> Float:
        """float64 `[Q]`, before failed and uncounted questions are set."""

    @abstractmethod
    def counts(self, ranked: RankedLabels) -> Mask:
        """bool `[Q]`: which questions are in the denominator."""

    def compute(self, ranked: RankedLabels) -> Float:
        """float64 `[Q]`: one number a question; `worst` where the system failed, 0 where it does not count.

        Raises InputError where the measure needs facts that `ranked` does not hold.
        """
        out = np.where(ranked.failed, self.worst, self.values(ranked))
        return np.where(self.counts(ranked), out, 0.0)

    def within(self, ranks: NDArray[np.int32]) -> Mask:
        """Where a rank is in the list and not beyond the cutoff."""
        there = ranks > 0
        return there if self.cutoff is None else there & (ranks <= self.cutoff)

    def _held(self, value: NDArray[np.generic] | None, what: str) -> NDArray[np.generic]:
        if value is None:
            raise InputError(f"measure {self} needs {what}, which this run does not have")
        return value


@dataclass(frozen=True, slots=True)
class Binary(Measure):
    """A measure that counts labels of grade `rel` or above; None is the labelled set's default."""

    rel: int | None = None

    denominator: ClassVar[str] = "questions with a relevant memory"

    def __post_init__(self) -> None:
        Measure.__post_init__(self)
        if self.rel is not None and self.rel < 1:
            raise InputError(f"measure {self.title}(rel={self.rel}): rel must be at least 1")

    def relevant(self, ranked: RankedLabels) -> Mask:
        """bool `[Q, L]`: labels that count as relevant."""
        return ranked.grades >= (ranked.default_rel if self.rel is None else self.rel)

    def total(self, ranked: RankedLabels) -> NDArray[np.int64]:
        """int64 `[Q]`: relevant memories of each question, returned or not."""
        return np.asarray(self.relevant(ranked).sum(axis=1), np.int64)

    def hits(self, ranked: RankedLabels) -> Mask:
        """bool `[Q, L]`: relevant memories within the cutoff."""
        return self.relevant(ranked) & self.within(ranked.ranks)

    def counts(self, ranked: RankedLabels) -> Mask:
        return self.total(ranked) > 0
