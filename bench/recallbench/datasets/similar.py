"""Likeness of texts by shared n-grams, the same for every language."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


def trigrams(text: str) -> frozenset[str]:
    """The character trigrams of a text in lower case, runs of white space as one blank; a short text is one gram."""
    flat = " ".join(text.lower().split())
    return frozenset(flat[i : i + 3] for i in range(max(1, len(flat) - 2)))


class Overlap:
    """How much a text has in common with the nearest of many texts.

    The overlap coefficient of trigrams: shared ones by those of the shorter text (Simpson 1943). Unlike the Jaccard
    similarity it is high also where one text holds the other, or a sentence of it makes up most of the other.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        grams = [trigrams(text) for text in texts]
        self._sizes = np.array([len(one) for one in grams], np.int64)
        rows: dict[str, list[int]] = defaultdict(list)
        for row, one in enumerate(grams):
            for gram in one:
                rows[gram].append(row)
        self._rows: dict[str, NDArray[np.int64]] = {gram: np.array(one, np.int64) for gram, one in rows.items()}

    def greatest(self, text: str) -> float:
        """The greatest coefficient with any of the texts, 0 to 1; 0 where there are none."""
        grams = trigrams(text)
        held = [rows for gram in grams if (rows := self._rows.get(gram)) is not None]
        if not held:
            return 0.0
        shared = np.bincount(np.concatenate(held), minlength=len(self._sizes))
        return float((shared / np.minimum(self._sizes, len(grams))).max())
