"""Channel candidates kept under a content hash, in memory for one process and on disk for the next.

A key holds all that the candidates depend on: the memories, the questions' texts, the channel's settings and
the versions of the libraries that compute it. The files hold text-derived data: only their owner may read them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import shutil
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from recallstack.ranking.candidates import Candidates
from recallstack.ranking.channels import Retrieved, retrieve
from recallstack.ranking.rows import Corpus
from recallstack.ranking.specs import ChannelSpec, VectorSpec

_LIBRARIES = (
    "recallbench",
    "numpy",
    "scipy",
    "scikit-learn",
    "faiss-cpu",
    "rank-bm25",
    "sentence-transformers",
)


def cache_folder() -> Path:
    """Where the cache lives: `RECALLBENCH_CACHE`, else the user's cache folder of this system."""
    named = os.environ.get("RECALLBENCH_CACHE")
    if named:
        return Path(named)
    import platformdirs

    return platformdirs.user_cache_path("recallbench")


@functools.cache
def _versions() -> dict[str, str]:
    out = {}
    for name in _LIBRARIES:
        with contextlib.suppress(PackageNotFoundError):
            out[name] = version(name)
    return out


def _portable(embedder: str) -> bool:
    """Whether the embedder's name says all that it is; a registered callable is known in this process only."""
    return embedder in ("lsa", "hash3") or embedder.startswith("sentence-transformers:")


class CandidateCache:
    """Computes candidates once for each corpus, batch of questions and channel setting.

    folder: where files are kept; None keeps them in memory only.
    """

    def __init__(self, folder: Path | None = None, compute: Callable[..., Retrieved] = retrieve) -> None:
        self.folder = folder
        self.computed = 0
        self.loaded = 0
        self._compute = compute
        self._memory: dict[str, tuple[int, Retrieved]] = {}

    def __call__(self, corpus: Corpus, queries: Sequence[str], spec: ChannelSpec, depth: int) -> Retrieved:
        """As `recallstack.ranking.channels.retrieve`; a deeper list that is already there serves by its head."""
        key = self._key(corpus, queries, spec)
        held = self._memory.get(key) or self._load(key, spec)
        if held is None or held[0] < min(depth, len(corpus)):
            held = (depth, self._compute(corpus, queries, spec, depth))
            self.computed += 1
            self._save(key, spec, held)
        self._memory[key] = held
        found = held[1]
        return dataclasses.replace(found, candidates=found.candidates.head(depth))

    @staticmethod
    def _key(corpus: Corpus, queries: Sequence[str], spec: ChannelSpec) -> str:
        asked = hashlib.sha256()
        for query in queries:
            data = query.encode("utf-8", "surrogatepass")
            asked.update(len(data).to_bytes(8, "little") + data)
        parts = {
            "corpus": corpus.content_hash,
            "queries": asked.hexdigest(),
            "channel": type(spec).__name__,
            "settings": dataclasses.asdict(spec),
            "versions": _versions(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _file(self, key: str, spec: ChannelSpec) -> Path | None:
        """None where the result has no identity that outlives the process (a registered callable)."""
        if self.folder is None:
            return None
        if isinstance(spec, VectorSpec) and not _portable(spec.embedder):
            return None
        return self.folder / "candidates" / f"{key}.npz"

    def _load(self, key: str, spec: ChannelSpec) -> tuple[int, Retrieved] | None:
        file = self._file(key, spec)
        if file is None or not file.exists():
            return None
        try:
            with np.load(file, allow_pickle=False) as data:
                candidates = Candidates(data["ids"], data["scores"])
                embedded = data["embedded"] if "embedded" in data.files else None
                held = (int(data["depth"]), Retrieved(candidates, tuple(data["notes"].tolist()), embedded))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None  # a damaged file is a miss: it is computed anew and written over
        self.loaded += 1
        return held

    def _save(self, key: str, spec: ChannelSpec, held: tuple[int, Retrieved]) -> None:
        file = self._file(key, spec)
        if file is None or self.folder is None:
            return
        depth, found = held
        arrays = {
            "ids": found.candidates.ids,
            "scores": found.candidates.scores,
            "depth": np.array(depth),
            "notes": np.array(found.notes, dtype=np.str_),
        }
        if found.embedded is not None:
            arrays["embedded"] = found.embedded
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.folder.chmod(0o700)
            file.parent.mkdir(exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
            try:
                with os.fdopen(handle, "wb") as out:
                    np.savez_compressed(out, **arrays)  # type: ignore[arg-type]
                Path(name).replace(file)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            warnings.warn(f"cache: cannot write to {self.folder}: {error.strerror}; going on without", stacklevel=2)
            self.folder = None


def cache_info(folder: Path) -> tuple[int, int]:
    """(files, bytes) of the cache."""
    files = [file for file in folder.rglob("*") if file.is_file()] if folder.is_dir() else []
    return len(files), sum(file.stat().st_size for file in files)


def cache_clear(folder: Path) -> int:
    """Delete all candidates of the cache; returns how many files went."""
    count, _ = cache_info(folder)
    shutil.rmtree(folder / "candidates", ignore_errors=True)
    return count
