"""The order that trec_eval gives a run."""

from __future__ import annotations

from collections.abc import Mapping


def trec_order(scores: Mapping[str, float]) -> list[str]:
    """Document ids by score descending, then id descending."""
    return sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True) if scores else []
