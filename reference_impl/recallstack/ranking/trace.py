"""The waterfall: for each relevant memory, the first stage that lost it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from recallstack.ranking.candidates import Candidates, Ids, Mask

Loss = Literal[
    "kept",
    "never a candidate",
    "truncated at fetch",
    "filtered",
    "truncated",
    "out-fused",
    "overridden",
    "reranked down",
    "over budget",
]
LOSSES: tuple[Loss, ...] = get_args(Loss)
"""What can become of a relevant memory, in the order of the stages."""

_STEPS: tuple[tuple[str, Loss], ...] = (
    ("", "never a candidate"),
    (".fetched", "truncated at fetch"),
    (".eligible", "filtered"),
    (".pool", "truncated"),
)
"""Stages that a channel leaves as `NAME` + suffix; a row is there if any channel still has it."""


def waterfall(stages: Mapping[str, Candidates], final: Candidates, labels: Ids) -> NDArray[np.int8]:
    """int8 `[Q, L]`: position in LOSSES of what became of each label, -1 for padding.

    labels: int32 `[Q, L]`, corpus positions, -1 padding.

    A memory that came back is `kept`, however it got there (a rule may bring back what a stage lost).
    """
    lost = np.full(labels.shape, -1, np.int8)

    def note(gone: Mask, loss: Loss) -> None:
        lost[gone & (lost < 0)] = LOSSES.index(loss)

    note(labels_in(final, labels), "kept")
    for suffix, loss in _STEPS:
        lists = [one for name, one in stages.items() if _suffix(name) == suffix and not _whole(name)]
        if lists:
            there = np.zeros(labels.shape, np.bool_)
            for one in lists:
                there |= labels_in(one, labels)
            note(~there, loss)
    width = max(final.width, 1)
    if "merged" in stages:
        note(~labels_in(stages["merged"], labels), "out-fused")
        if "reranked" in stages:
            note(labels_in(stages["filled"].head(width), labels), "reranked down")
        note(np.ones(labels.shape, np.bool_), "over budget")
    else:
        if "permitted" in stages:
            note(labels_in(stages["fused"], labels) & ~labels_in(stages["permitted"], labels), "filtered")
        if "overridden" in stages:
            note(labels_in(stages["fused"].head(width), labels), "overridden")
        if "weighted" in stages or "reranked" in stages:
            note(labels_in(stages["fused"].head(width), labels), "reranked down")
        note(np.ones(labels.shape, np.bool_), "out-fused")
    lost[labels < 0] = -1
    return lost


def labels_in(rows: Candidates, labels: Ids) -> Mask:
    """bool `[Q, L]`: which labels stand in each list."""
    return stage_ranks(rows, labels) > 0


def stage_ranks(rows: Candidates, labels: Ids) -> NDArray[np.int32]:
    """int32 `[Q, L]`: 1-based rank of each label in each list, 0 where it is not there."""
    out = np.zeros(labels.shape, np.int32)
    if not rows.width:
        return out
    for column in range(labels.shape[1]):
        same = (rows.ids == labels[:, column, None]) & rows.present
        out[:, column] = np.where(same.any(axis=1), same.argmax(axis=1) + 1, 0)
    return out


def _suffix(name: str) -> str:
    return f".{name.split('.', 1)[1]}" if "." in name else ""


def _whole(name: str) -> bool:
    return name in ("merged", "filled", "reranked", "fused", "weighted", "permitted", "overridden")
