"""Embedders by name: texts in, vectors out.

Built in: `lsa` (fitted on the corpus, downloads nothing), `hash3`, `sentence-transformers:NAME_OR_PATH`.
`register_embedder` adds any callable.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recallstack.errors import InputError

Vectors = NDArray[np.float64]
ST_PREFIX = "sentence-transformers:"
BUILT_IN = ("lsa", "hash3")


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors, float64 `[texts, dimensions]`; they need not have length 1.

    A vector that is all zero means that the text has no embedding.
    """

    name: str

    def encode_documents(self, texts: Sequence[str]) -> Vectors: ...

    def encode_queries(self, texts: Sequence[str]) -> Vectors: ...


@runtime_checkable
class Fittable(Protocol):
    """An embedder that must see the corpus first."""

    name: str

    def fit(self, texts: Sequence[str]) -> Embedder:
        """A new embedder, fitted on these texts."""
        ...


class CallableEmbedder:
    """Any callable from a list of texts to one vector a text, used for documents and queries alike."""

    def __init__(self, name: str, function: Callable[[list[str]], ArrayLike]) -> None:
        self.name = name
        self._function = function

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        return np.asarray(self._function(list(texts)), np.float64)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self.encode_documents(texts)


_REGISTERED: dict[str, Embedder | Fittable] = {}


def register_embedder(name: str, embedder: Embedder | Fittable | Callable[[list[str]], ArrayLike]) -> None:
    """Make an embedder known under a name that recipes can use; the same name again replaces it.

    embedder: an object with `encode_documents` and `encode_queries` (or `fit`, which returns one), or a callable
    from a list of texts to an array `[texts, dimensions]`. Raises InputError for a name that is built in.
    """
    if not name or name in BUILT_IN or name.startswith(ST_PREFIX):
        raise InputError(f"embedder name {name!r} is empty or built in; register it under another name")
    if isinstance(embedder, (Embedder, Fittable)):
        _REGISTERED[name] = embedder
    else:
        _REGISTERED[name] = CallableEmbedder(name, embedder)


def resolve_embedder(name: str) -> Embedder | Fittable:
    """The embedder of a name; the same object each time. Raises InputError for an unknown name."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name in BUILT_IN or (name.startswith(ST_PREFIX) and name != ST_PREFIX):
        return _built_in(name)
    known = [*BUILT_IN, ST_PREFIX + "NAME_OR_PATH", *_REGISTERED]
    near = difflib.get_close_matches(name, [*BUILT_IN, *_REGISTERED], 1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    raise InputError(f"unknown embedder {name!r}; {hint}")


@cache
def _built_in(name: str) -> Embedder | Fittable:
    if name == "lsa":
        from recallstack.ranking.embedders.lsa import LSA

        return LSA()
    if name == "hash3":
        from recallstack.ranking.embedders.hash3 import Hash3

        return Hash3()
    from recallstack.ranking.embedders.sentence_transformers import SentenceTransformers

    return SentenceTransformers(name, name.removeprefix(ST_PREFIX))


__all__ = ["CallableEmbedder", "Embedder", "Fittable", "Vectors", "register_embedder", "resolve_embedder"]
