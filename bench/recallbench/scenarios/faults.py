"""Deliberate faults of the ranking kernels: put in by substitution, so that the kernels carry no switch for them.

Each fault is a context manager that replaces one function of the reference stack while a scenario runs.
"""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import numpy as np

from recallstack.ranking import fusion
from recallstack.ranking import injection as inject
from recallstack.ranking.candidates import Candidates, Scores
from recallstack.ranking.fusion import Fusion, among, combine
from recallstack.ranking.specs import CHANNEL_ORDER, ChannelName
from recallstack.systems.session import turn

Lists = Mapping[ChannelName, Candidates]


def _ordered(channels: Lists) -> list[Candidates]:
    return [channels[name] for name in CHANNEL_ORDER if name in channels]


def _parts(lists: list[Candidates], k: float, first: int = 1) -> list[Scores]:
    return [np.broadcast_to(1.0 / (k + np.arange(first, first + one.width)), one.ids.shape) for one in lists]


def _zero_based(channels: Lists, recipe: Fusion) -> Candidates:
    """Ranks that begin at 0."""
    lists = _ordered(channels)
    return combine(lists, _parts(lists, recipe.k, first=0))


def _absent_scored(channels: Lists, recipe: Fusion) -> Candidates:
    """A row that a list does not have gets the list's length as its rank there."""
    lists = _ordered(channels)
    whole, parts = [], []
    for one, part in zip(lists, _parts(lists, recipe.k), strict=True):
        absent = combine(
            [other for other in lists if other is not one], [other.scores for other in lists if other is not one]
        )
        absent = absent.keep(~among(absent.ids, one.ids))
        rank = np.maximum(one.lengths, 1)[:, None]
        whole.append(
            Candidates(np.concatenate([one.ids, absent.ids], 1), np.concatenate([one.scores, absent.scores], 1))
        )
        parts.append(np.concatenate([part, np.broadcast_to(1.0 / (recipe.k + rank), absent.ids.shape)], 1))
    return combine(whole, parts)


class _Unstable:
    """Equal keys come in another order from call to call (seeded: the same calls give the same orders)."""

    def __init__(self) -> None:
        self._random = random.Random(1)

    def __call__(self, original: Callable[..., Candidates], rows: Candidates, keys: Scores) -> Candidates:
        if self._random.random() < 0.5:
            return original(rows, keys)
        turned = Candidates(rows.ids[:, ::-1], rows.scores[:, ::-1])
        return original(turned, keys[:, ::-1])


def _unstable_ties() -> AbstractContextManager[Any]:
    shuffle, original = _Unstable(), Candidates.sorted_by

    def sorted_by(self: Candidates, keys: Scores) -> Candidates:
        return shuffle(original, self, keys)

    return mock.patch.object(Candidates, "sorted_by", sorted_by)


def _wrapped(module: Any, name: str, change: Callable[..., Any]) -> AbstractContextManager[Any]:
    """The function with `change(original, *arguments)` in its place."""
    return mock.patch.object(module, name, functools.partial(change, getattr(module, name)))


def _squared(original: Callable[..., Scores], *arguments: Any) -> Scores:
    rows, cosines, embedded, multiplier, recipe = arguments
    return original(rows, cosines, embedded, multiplier**2, recipe)


def _raw_scale(original: Callable[..., Scores], *arguments: Any) -> Scores:
    rows, _, embedded, multiplier, _ = arguments
    has = embedded[np.maximum(rows.ids, 0)]
    return np.where(has, original(*arguments), np.nan_to_num(rows.scores) * multiplier)


def _all_eligible(original: Callable[..., inject.Rules], *arguments: Any) -> inject.Rules:
    rules = original(*arguments)
    return dataclasses.replace(rules, eligible=np.ones_like(rules.eligible))


def _rule_order_reversed(original: Callable[..., inject.Rules], *arguments: Any) -> inject.Rules:
    rules = original(*arguments)
    order = np.full_like(rules.order, -1)
    for row, one in enumerate(rules.order):
        kept = one[one >= 0][::-1]
        order[row, : len(kept)] = kept
    return dataclasses.replace(rules, order=order)


FAULTS: Mapping[str, Callable[[], AbstractContextManager[Any]]] = {
    "zero_based_ranks": lambda: mock.patch.dict(fusion._FUSE, rrf=_zero_based),
    "absent_scored": lambda: mock.patch.dict(fusion._FUSE, rrf=_absent_scored),
    "unstable_ties": _unstable_ties,
    "multiplier_squared": lambda: _wrapped(inject, "_rerank_keys", _squared),
    "unembedded_raw_scale": lambda: _wrapped(inject, "_rerank_keys", _raw_scale),
    "filter_after_cut": lambda: _wrapped(inject, "fetch_depth", lambda _, recipe: recipe.pool),
    "gate_open": lambda: _wrapped(turn, "build_rules", _all_eligible),
    "rule_order_reversed": lambda: _wrapped(turn, "build_rules", _rule_order_reversed),
}
"""name -> a context manager that puts the fault in."""
