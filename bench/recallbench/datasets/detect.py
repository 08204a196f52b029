"""The format of a folder or file, told from its names."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from recallbench.datasets import jsonl
from recallbench.datasets.readers import locomo, native, squad
from recallbench.datasets.registry import FORMATS
from recallbench.datasets.stream import Stream
from recallstack.errors import InputError

READERS: Mapping[str, Callable[[Path], Stream]] = {
    "native": native.stream,
    **{name: one.stream for name, one in FORMATS.items()},
}
"""Readers by format, the native form included."""
_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "csv": ("questions.csv",),
    "native": (native.TOML, native.QUESTIONS),
    "beir": ("corpus.jsonl", "queries.jsonl"),
    "trec": ("docs.jsonl",),
    "locomo": (locomo.FILE,),
    "cmrc2018": (squad.CMRC_FILE,),
}
"""Files that a folder of each format holds."""


def stream_of(source: Path, form: str | None = None) -> tuple[str, Stream]:
    """(format, stream) of a folder or file; without `form` it is detected.

    Raises InputError where nothing is there, the format is unknown, or nothing or several speak for one.
    """
    if not source.exists():
        raise InputError(f"{source}: no such file or folder")
    if form is None:
        form = detect(source)
    elif form not in READERS:
        raise InputError(f"no format {form!r}; {jsonl.nearest(form, READERS)}")
    return form, READERS[form](source)


def detect(source: Path) -> str:
    """The one format that the names speak for; LongMemEval is read by sessions.

    Raises InputError where none does, or several.
    """
    found = _of_folder(source) if source.is_dir() else _of_file(source)
    if len(found) == 1:
        return found[0]
    known = f"give --format, one of {', '.join(READERS)}"
    if not found:
        raise InputError(f"{source}: its names do not tell the format; {known}")
    raise InputError(f"{source}: may be {' or '.join(found)}; {known}")


def _of_folder(folder: Path) -> list[str]:
    found = [name for name, files in _FOLDERS.items() if all(jsonl.find(folder, file) for file in files)]
    if any(folder.glob("longmemeval*.json*")):
        found.append("longmemeval")
    if not found and len([*folder.glob("*.json"), *folder.glob("*.json.gz")]) == 1:
        found.append("squad")
    return found


def _of_file(file: Path) -> list[str]:
    if file.name.startswith("longmemeval"):
        return ["longmemeval"]
    name = file.name.removesuffix(".gz")
    if not name.endswith(".json"):
        return []
    return {locomo.FILE: ["locomo"], squad.CMRC_FILE: ["cmrc2018"]}.get(name, _head(file))


def _head(file: Path) -> list[str]:
    """SQuAD style is the one public format whose document is an object."""
    try:
        with jsonl.opened(file) as source:
            start = source.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return ["squad"] if start.startswith(b"{") else []
