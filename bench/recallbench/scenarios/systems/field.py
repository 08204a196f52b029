"""Faults that were reported in other public projects, put into the same stack under scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recallbench.scenarios.model import Given, Switch
from recallbench.scenarios.systems import mneme

_OWN = "keeps_first_score"
SWITCHES = frozenset(
    {
        _OWN,
        "zero_based_ranks",
        "absent_scored",
        "unstable_ties",
        "k",
        "pool",
        "cut_by_utf16",
        "braces_raw",
        "query_from_visible_messages",
    }
)
VOCABULARY = replace(mneme.VOCABULARY, config=mneme.VOCABULARY.config | {"min_score"})


class Session(mneme.Session):
    """The plugin's session; a hit's score is its best over the channels, and `min_score` drops the rest.

    The keyword channel is the fallback of the report: its hits have score 0.
    """

    def __init__(self, given: Given, switches: Mapping[str, Switch]) -> None:
        super().__init__(given, switches)
        self._min_score = given.config.get("min_score")
        self._keeps_first = bool(switches.get(_OWN, False))

    def _search(self, query: str, top_k: int) -> dict[str, Any]:
        got = self.searched(query, top_k)
        if self._min_score is None:
            return self._rows(got.final)
        scores: dict[int, float] = {}
        for channel in ("keyword", "vector", "bm25"):
            for row, score in got.stages[f"{channel}.pool"].to_lists()[0] if f"{channel}.pool" in got.stages else ():
                own = 0.0 if channel == "keyword" else score
                scores[row] = scores[row] if self._keeps_first and row in scores else max(own, scores.get(row, own))
        kept = [scores.get(row, 0.0) >= self._min_score for row, _ in got.final.to_lists()[0]]
        shown = self._rows(got.final)
        return {name: [one for one, keep in zip(values, kept, strict=True) if keep] for name, values in shown.items()}
