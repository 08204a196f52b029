"""The weak embedding that one production system ran: three dimensions from hashed words."""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Sequence

import numpy as np

from recallstack.ranking.embedders import Vectors

DIMENSIONS = 3
# ASCII, general and CJK punctuation, and the full-width forms of the ASCII marks.
_BORDER = re.compile(
    rf"[\s{re.escape(string.punctuation)}\u2010-\u205e\u3000-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]+"
)


def words(text: str) -> list[str]:
    """Lower-case; split at white space and punctuation only, so that a run of Chinese is a single token."""
    return [word for word in _BORDER.split(text.lower()) if word]


def _vector(word: str) -> Vectors:
    """float64 `[3]` in [-1, 1]: three 16-bit numbers of the word's BLAKE2b hash (no salt: the same everywhere)."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=2 * DIMENSIONS).digest()
    return np.frombuffer(digest, "<u2").astype(np.float64) / 32767.5 - 1.0


class Hash3:
    """A text is the sum of its words' vectors; a text without a word is all zero."""

    name = "hash3"

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        out = np.zeros((len(texts), DIMENSIONS))
        for row, text in enumerate(texts):
            for word in words(text):
                out[row] += _vector(word)
        return out

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self.encode_documents(texts)
