"""What every test shares: a cache folder of its own, the tests' own folder on the path, a PostgreSQL server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from postgres import Server, server


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALLBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server with pgvector, started once and stopped at the end; tests that use it are marked `pg`."""
    with server() as running:
        yield running
