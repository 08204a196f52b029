"""Chars, Tokens and BilledTokens: what returned text costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recallbench.measures.base import Float, Mask, Measure
from recallbench.measures.ranked import RankedLabels


@dataclass(frozen=True, slots=True)
class _Cost(Measure):
    higher_is_better: ClassVar[bool] = False
    worst: ClassVar[float] = np.inf
    denominator: ClassVar[str] = "all questions"
    takes_cutoff: ClassVar[bool] = False

    def counts(self, ranked: RankedLabels) -> Mask:
        return np.ones(ranked.questions, np.bool_)


@dataclass(frozen=True, slots=True)
class Chars(_Cost):
    """Characters of what was returned."""

    title: ClassVar[str] = "Chars"

    def values(self, ranked: RankedLabels) -> Float:
        return self._held(ranked.chars, "the texts of what was returned").astype(np.float64)


@dataclass(frozen=True, slots=True)
class Tokens(_Cost):
    """Estimated tokens of what was returned; the rule is `recallbench.measures.tokens.estimate_tokens`."""

    title: ClassVar[str] = "Tokens"

    def values(self, ranked: RankedLabels) -> Float:
        return self._held(ranked.tokens, "the texts of what was returned").astype(np.float64)


@dataclass(frozen=True, slots=True)
class BilledTokens(_Cost):
    """Tokens times the rounds from the one that injects to the last: a text is billed in every round."""

    title: ClassVar[str] = "BilledTokens"

    def values(self, ranked: RankedLabels) -> Float:
        tokens = self._held(ranked.tokens, "the texts of what was returned").astype(np.float64)
        return tokens * self._held(ranked.rounds, "the rounds of the conversation").astype(np.float64)
