"""Indexes kept for as long as their corpus lives."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

from recallstack.ranking.rows import Corpus

T = TypeVar("T")
_HELD: WeakKeyDictionary[Corpus, dict[Hashable, object]] = WeakKeyDictionary()


def per_corpus(corpus: Corpus, key: Hashable, build: Callable[[], T]) -> T:
    """What `build` makes, made once for each corpus object and key.

    It must not refer to the corpus, or the corpus would never be freed.
    """
    held = _HELD.setdefault(corpus, {})
    if key not in held:
        held[key] = build()
    return cast(T, held[key])
