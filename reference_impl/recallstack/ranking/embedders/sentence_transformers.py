"""Sentence-transformers models (extra `st`), by name or by path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from recallstack.errors import InputError
from recallstack.ranking.embedders import Vectors

_SURROGATE = re.compile("[\ud800-\udfff]")


class SentenceTransformers:
    """A model of sentence-transformers, loaded at first use.

    Texts go to the model whole; what lies beyond its own longest input, the model leaves out.
    """

    def __init__(self, name: str, model: str) -> None:
        self.name = name
        self._path = model

    @cached_property
    def _model(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise InputError(
                f'embedder {self.name!r} needs sentence-transformers; install it with: pip install "recallbench[st]"'
            ) from None
        try:
            return SentenceTransformer(self._path)
        except (OSError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(
                f"embedder {self.name!r}: cannot load the model {self._path!r}: {reason}; check the name or path"
            ) from None

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        # Tokenizers refuse lone surrogates.
        clean = [_SURROGATE.sub("\ufffd", text) for text in texts]
        vectors = self._model.encode(clean, convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(vectors, np.float64)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self.encode_documents(texts)
