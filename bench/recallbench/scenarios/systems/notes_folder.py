"""The folder of a notes scenario: files whose times the harness sets, a session map that can break, an index."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from recallstack.errors import InputError

EPOCH_S = 1_700_000_000
"""The time of a file that is written when the clock says 0."""
SIDE_FILES = ("", "-wal", "-shm")
"""What SQLite appends to the name of a database."""


class Folder:
    """A temporary folder. now: seconds, whole milliseconds of which become a file's time."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._path = Path(tempfile.mkdtemp(prefix="recallbench-notes-")).resolve()
        self.root = self._path / "notes"
        self.database = self._path / "index.db"
        self.session_map = self._path / "sessions.json"
        self.root.mkdir()

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self._path)

    def write(self, file: str, text: str) -> None:
        """Write a file of UTF-8, line ends as they are; its mtime is the clock's.

        `\\udc80` to `\\udcff` in a text are the bytes 80 to FF, so that a file can be no UTF-8.
        """
        path = self._place(file)
        try:
            data = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise InputError(f"file {file!r}: half a character in its text; bytes are \\udc80 to \\udcff") from None
        with _explained(file):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        time_ns = (EPOCH_S * 1000 + round(self._now() * 1000)) * 1_000_000
        os.utime(path, ns=(time_ns, time_ns))

    def delete(self, file: str) -> None:
        self._there(file).unlink()

    def rename(self, file: str, to: str) -> None:
        """Its mtime and its size stay, as when a user renames it."""
        path, target = self._there(file), self._place(to)
        with _explained(to):
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)

    def delete_index(self) -> None:
        """Delete the database, which must be closed."""
        for side in SIDE_FILES:
            self.database.with_name(self.database.name + side).unlink(missing_ok=True)

    def write_map(self, sessions: Mapping[str, str], state: str = "none") -> None:
        """Write the session map; `broken` half of it, `missing` not at all."""
        text = json.dumps({key: {"sessionId": one} for key, one in sessions.items()})
        self.session_map.unlink(missing_ok=True)
        if state != "missing":
            self.session_map.write_text(text[: len(text) // 2] if state == "broken" else text, encoding="utf-8")

    def shown(self, text: str) -> str:
        """A text without the name of this folder, which is another one each time."""
        return text.replace(f"{self._path}/", "")

    def _place(self, file: str) -> Path:
        parts = PurePosixPath(file).parts
        if not parts or file.startswith("/") or ".." in parts or "\0" in file:
            raise InputError(f"file {file!r} must be a path inside the notes, like work/public.md")
        return self.root.joinpath(*parts)

    def _there(self, file: str) -> Path:
        path = self._place(file)
        if not path.is_file():
            raise InputError(f"there is no file {file!r}; write it first")
        return path


@contextmanager
def _explained(file: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"file {file!r} cannot be written: {error.strerror}; take another name") from None
