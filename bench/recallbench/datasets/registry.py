"""Labelled sets by name: those that come with the package, folders, and public formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from recallbench.datasets.fetch import PUBLIC, folder_of
from recallbench.datasets.jsonl import find, nearest
from recallbench.datasets.model import LabelledSet
from recallbench.datasets.readers import beir, locomo, longmemeval, native, squad
from recallbench.datasets.readers import csv_table as csv_set
from recallbench.datasets.readers import trec as trec_set
from recallbench.datasets.stream import Stream, gather
from recallstack.errors import InputError

DATA_VARIABLE = "RECALLBENCH_DATA"
"""Environment variable: the folder of public data, where `--data` is not given."""


class Named(NamedTuple):
    """A name that `load` takes, and one line on it."""

    name: str
    description: str


class Format(NamedTuple):
    """A public format: what its data is, and its reader."""

    description: str
    stream: Callable[[Path], Stream]

    def read(self, path: Path) -> LabelledSet:
        """The data in memory."""
        return gather(self.stream(path))


FORMATS: Mapping[str, Format] = {
    "locomo": Format("LoCoMo, the folder or file of locomo10.json", locomo.stream),
    "cmrc2018": Format("CMRC 2018, the folder or file of cmrc2018_trial.json", squad.stream_cmrc),
    "squad": Format("SQuAD style (SQuAD, CMRC, DRCD), one JSON file", squad.stream),
    "beir": Format("BEIR, a folder with corpus.jsonl, queries.jsonl and qrels/", beir.stream),
    "trec": Format("TREC, a folder with docs.jsonl, topics and qrels", trec_set.stream),
    "csv": Format("a folder with questions.csv, and memories.csv or notes/", csv_set.stream),
    "longmemeval": Format("LongMemEval, one JSON file; a memory is a session", longmemeval.stream),
    "longmemeval-turns": Format("LongMemEval, one JSON file; a memory is a turn", longmemeval.stream_turns),
}


def shipped_folder() -> Path | None:
    """`datasets/` of the checkout, else that of the installed package; None if neither is there."""
    here = Path(__file__).resolve()
    checkout = here.parents[3]
    if here.parents[2].name == "bench" and (checkout / "pyproject.toml").is_file():
        folder = checkout / "datasets"
    else:
        # Hatchling writes plain files, so that the resource is a folder on disk.
        folder = Path(str(files("recallbench") / "_shipped" / "datasets"))
    return folder if folder.is_dir() else None


def names() -> list[Named]:
    """The sets that come with the package, by name."""
    folder = shipped_folder()
    if folder is None:
        return []
    found = sorted(path.parent for path in folder.glob(f"*/{native.TOML}"))
    return [Named(path.name, native.read_info(path / native.TOML).description) for path in found]


def formats() -> list[Named]:
    """The public formats, each read from `--data`."""
    return [Named(name, one.description) for name, one in FORMATS.items()]


def load(name_or_folder: str, data: Path | None = None) -> LabelledSet:
    """A labelled set by built-in name, by public format (its data under `data`), or from a folder.

    A name without a path separator is first a built-in set, then a format, then a folder of that name; write
    `./NAME` for a folder that has the name of either. Without `data` a format looks into the folder that
    the environment variable RECALLBENCH_DATA names, then into that of `datasets fetch`. Raises InputError
    for an unknown name or missing data.
    """
    shipped = shipped_folder()
    bare = _bare(name_or_folder)
    if bare and name_or_folder in FORMATS:
        return FORMATS[name_or_folder].read(_data(name_or_folder, data))
    if data is not None:
        raise InputError(f"--data is for a public format ({', '.join(FORMATS)}); {name_or_folder!r} is none")
    if bare and shipped is not None and (shipped / name_or_folder / native.TOML).is_file():
        return native.read(shipped / name_or_folder)
    if not bare or Path(name_or_folder).is_dir():
        return native.read(Path(name_or_folder))
    known = [one.name for one in names()] + list(FORMATS)
    raise InputError(
        f"no labelled set {name_or_folder!r}: neither a set, a format nor a folder; {nearest(name_or_folder, known)}"
    )


def _bare(name: str) -> bool:
    """Whether it is a name and no path."""
    return not any(mark in name for mark in ("/", os.sep)) and name not in ("", ".", "..")


def folder_of_own(name_or_folder: str) -> Path:
    """The folder of a set that may be written to. Raises InputError for a set that comes with the package, a format."""
    if _bare(name_or_folder) and name_or_folder in (*FORMATS, *(one.name for one in names())):
        raise InputError(
            f"{name_or_folder} is a set or format that comes with recallbench, and is not written to; "
            "name a folder (./NAME for one of the same name)"
        )
    return Path(name_or_folder)


def _data(name: str, data: Path | None) -> Path:
    data = data or _found(name)
    if data is None:
        get = f", or get it with `recallbench datasets fetch {name}`" if name in PUBLIC else ""
        raise InputError(
            f"{name} is read from data that is not shipped; give --data PATH or set {DATA_VARIABLE} to its folder{get}"
        )
    if not data.exists():
        raise InputError(f"{data}: no such file or folder; it should hold {FORMATS[name].description}")
    return data


def _found(name: str) -> Path | None:
    """The folder that the environment names, unless only the one of `datasets fetch` holds the file."""
    named = os.environ.get(DATA_VARIABLE)
    if name in PUBLIC and not (named and find(Path(named), PUBLIC[name].file)):
        fetched = folder_of(name)
        if find(fetched, PUBLIC[name].file):
            return fetched
    return Path(named) if named else None
