"""Vectors of chunks: made in batches after the text is safe, kept by what the text says, searched exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recallstack.errors import InputError
from recallstack.ranking.channels.vector import VectorIndex
from recallstack.ranking.embedders import Embedder, Fittable, Vectors
from recallstack.systems.notes.store import Store
from recallstack.systems.notes.switches import Switches

BATCH = 128
"""Texts embedded and committed together: what a kill costs."""
QWEN3_INSTRUCTION = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
"""The query instruction of Qwen3-Embedding's model card: the documented default, which spoils other models."""
EMBEDDER, DIMENSIONS = "embedder", "dimensions"
"""Keys of `meta`: whose vectors the index holds."""
_DTYPE = np.dtype("<f8")
_MISSING = """
SELECT min(id), text, digest FROM chunks WHERE digest NOT IN (SELECT digest FROM vectors)
GROUP BY digest ORDER BY min(id)
"""
# Another process may have forgotten the text in the meantime.
_INSERT = "INSERT OR IGNORE INTO vectors SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM chunks WHERE digest = ?1)"


def as_embedder(given: Embedder | Fittable | None) -> Embedder | None:
    """Raises InputError for an embedder that is fitted on a corpus: each new note would change every vector."""
    if given is None or isinstance(given, Embedder):
        return given
    raise InputError(
        f"embedder {given.name!r} is fitted on a fixed corpus, and notes change; "
        "use sentence-transformers:NAME_OR_PATH, hash3, or none for keywords only"
    )


def instruction_of(query_instruction: str, switches: Switches) -> str:
    """What is prefixed to queries."""
    if switches.instruction_left_in_place and not query_instruction:
        return QWEN3_INSTRUCTION
    return query_instruction


def embed_missing(store: Store, embedder: Embedder, prefix: str, switches: Switches) -> tuple[int, str]:
    """Embed every text that has no vector yet. Returns how many were, and a warning or nothing.

    prefix: what the mutant puts before documents; empty otherwise. An embedder that fails loses nothing: the texts
    are searched by keyword, and the next sync tries again. Vectors of another model or dimension than the index
    holds are not added: they could not be compared.
    """
    with store.read():
        rows = store.connection.execute(_MISSING).fetchall()
        known = store.get(EMBEDDER)
    if not rows:
        return 0, ""
    if known not in (None, embedder.name) and not switches.model_change_computes:
        return 0, _other_model(str(known), embedder.name)
    done = 0
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        left = f"{len(rows) - done} texts have no vector yet, the next sync tries again"
        try:
            vectors = _checked(embedder.encode_documents([prefix + text for _, text, _ in batch]), len(batch))
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 (an embedder is anybody's code; its failure is reported)
            return done, f"embedder {embedder.name!r} failed with {type(error).__name__}; {left}"
        if isinstance(vectors, str):
            return done, f"embedder {embedder.name!r} {vectors}; {left}"
        with store.write():
            known, dimensions = store.get(EMBEDDER), store.number(DIMENSIONS)
            if dimensions is None:
                store.put(EMBEDDER, embedder.name)
                store.put(DIMENSIONS, str(vectors.shape[1]))
            elif dimensions != vectors.shape[1]:
                return done, _other_dimension(dimensions, embedder.name, vectors.shape[1])
            elif known != embedder.name and not switches.model_change_computes:
                return done, _other_model(str(known), embedder.name)
            store.connection.executemany(
                _INSERT,
                [(digest, one.astype(_DTYPE).tobytes()) for (_, _, digest), one in zip(batch, vectors, strict=True)],
            )
            store.touch()
        done += len(batch)
    return done, ""


@dataclass(slots=True)
class _Loaded:
    """rows: chunk ids in the order of files and lines. index: their vectors."""

    revision: str | None
    rows: list[int]
    index: VectorIndex
    dimensions: int


class SemanticList:
    """The semantic list: exact cosines over all vectors, which are read again only when the index has changed."""

    def __init__(self, store: Store, embedder: Embedder, switches: Switches) -> None:
        self._store = store
        self._embedder = embedder
        self._switches = switches
        self._loaded: _Loaded | None = None

    def embed(self, query: str) -> tuple[Vectors | None, str]:
        """float64 `[1, dimensions]`, or None and why there is no semantic list."""
        name = self._embedder.name
        try:
            vectors = _checked(self._embedder.encode_queries([query]), 1)
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 (an embedder is anybody's code; its failure is reported)
            return None, f"embedder {name!r} failed with {type(error).__name__}; searched by keywords only"
        if isinstance(vectors, str):
            return None, f"embedder {name!r} {vectors}; searched by keywords only"
        return vectors, ""

    def top(self, query: Vectors, depth: int) -> tuple[list[tuple[int, float]], str]:
        """(chunk id, cosine) of the nearest, best first, and why there are none. Inside a read transaction.

        Cosines are rounded to 1e-7; equals are ordered by root, file, line and part.
        """
        known = self._store.get(EMBEDDER)
        if known is None:
            return [], ""
        compared = self._switches.dimension_mismatch_computes
        if known != self._embedder.name and not (compared or self._switches.model_change_computes):
            return [], _other_model(known, self._embedder.name)
        loaded = self._load()
        if query.shape[1] != loaded.dimensions:
            if not compared:
                return [], _other_dimension(loaded.dimensions, self._embedder.name, query.shape[1])
            query = np.resize(query, (1, loaded.dimensions))
        found = loaded.index.top(query, depth).to_lists()[0]
        return [(loaded.rows[row], cosine) for row, cosine in found], ""

    def _load(self) -> _Loaded:
        revision = self._store.get("revision")
        if self._loaded is None or self._loaded.revision != revision:
            dimensions = self._store.number(DIMENSIONS) or 0
            rows: list[int] = []
            parts = bytearray()
            for chunk, vector in self._store.connection.execute(
                "SELECT chunks.id, vector FROM chunks JOIN files ON files.id = file_id "
                "JOIN vectors USING (digest) ORDER BY root, file, line, part"
            ):
                rows.append(chunk)
                parts += vector
            matrix = np.frombuffer(parts, _DTYPE).reshape(len(rows), dimensions)
            self._loaded = _Loaded(revision, rows, VectorIndex(matrix), dimensions)
        return self._loaded


def _checked(vectors: Vectors, count: int) -> Vectors | str:
    """The vectors as float64, or what is wrong with them."""
    got = np.asarray(vectors, np.float64)
    if got.ndim != 2 or len(got) != count or not got.shape[1]:
        return f"returned an array of shape {got.shape} for {count} texts"
    return got if np.isfinite(got).all() else "returned a number that is not finite"


def _other_model(known: str, name: str) -> str:
    return f"the index holds vectors of {known!r}, not of {name!r}: no semantic list until the index is built anew"


def _other_dimension(known: int, name: str, got: int) -> str:
    return (
        f"vectors of {name!r} have {got} dimensions, the index has {known}: "
        "no semantic list until the index is built anew"
    )


def texts_without_vector(store: Store) -> int:
    """How many distinct texts wait for a vector."""
    query = "SELECT count(DISTINCT digest) FROM chunks WHERE digest NOT IN (SELECT digest FROM vectors)"
    return int(store.connection.execute(query).fetchone()[0])


def drop_unused(store: Store) -> None:
    """Drop vectors of forgotten texts that no chunk holds any longer; inside a write transaction."""
    store.connection.execute(
        "DELETE FROM vectors WHERE digest IN (SELECT digest FROM garbage) "
        "AND NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.digest = vectors.digest)"
    )
    store.connection.execute("DELETE FROM garbage")
