"""The Markdown files below the roots, with what tells whether one has changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from recallstack.systems.notes.globs import DEFAULT_EXCLUDE, excluded, folder_excluded

SUFFIX = ".md"


@dataclass(frozen=True, slots=True, order=True)
class Stamp:
    """mtime_ns: nanoseconds since the epoch. size: bytes."""

    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class Scan:
    """files: (root, path relative to it with `/`) -> stamp, in the order of their names. warnings: one line each."""

    files: dict[tuple[str, str], Stamp]
    warnings: tuple[str, ...]


def scan(roots: Sequence[Path], exclude: Sequence[str] = DEFAULT_EXCLUDE) -> Scan:
    """All `.md` files below the roots.

    A root is made absolute; a file below two roots belongs to the first. Symbolic links below a root are not
    followed, since the name of a link could give a file another sensitivity. What cannot be read, or has a name
    that is not UTF-8, is left out and named in a warning.
    """
    warnings: list[str] = []
    if not roots:
        warnings.append("no roots are set: the index is empty; name a folder of Markdown files")
    found: dict[tuple[str, str], Stamp] = {}
    seen: set[str] = set()
    for root in roots:
        top = os.path.realpath(root)
        if not (_is_utf8(top) and Path(top).is_dir()):
            warnings.append(f"{shown(str(root))}: no such folder; the notes below it are not in the index")
            continue
        for file, stamp in _walk(top, exclude, warnings):
            whole = f"{top}/{file}"
            if whole not in seen:
                seen.add(whole)
                found[top, file] = stamp
    return Scan(dict(sorted(found.items())), tuple(warnings))


def shown(name: str) -> str:
    """A file name as part of a line: escaped where it would break it."""
    return name if name.isprintable() else ascii(name)


def _walk(top: str, exclude: Sequence[str], warnings: list[str]) -> Iterator[tuple[str, Stamp]]:
    folders, links = [""], 0
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(f"{top}/{folder}") as listing:
                entries = list(listing)
        except OSError as error:
            where = shown(f"{top}/{folder}")
            warnings.append(f"{where}: cannot be read: {error.strerror}; the notes in it are not in the index")
            continue
        for entry in entries:
            path = folder + entry.name
            if entry.is_symlink():
                links += _leads_to_notes(entry, path, exclude)
            elif entry.is_dir(follow_symlinks=False):
                if not folder_excluded(path, exclude):
                    folders.append(path + "/")
            elif entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False) and not excluded(path, exclude):
                if not _is_utf8(path):
                    warnings.append(f"{shown(f'{top}/{path}')}: the name is not UTF-8; rename it")
                    continue
                with suppress(FileNotFoundError):  # deleted since it was listed
                    stat = entry.stat(follow_symlinks=False)
                    yield path, Stamp(stat.st_mtime_ns, stat.st_size)
    if links:
        warnings.append(
            f"{top}: symbolic links to notes or folders are not followed ({links}); name their targets as roots"
        )


def _leads_to_notes(entry: os.DirEntry[str], path: str, exclude: Sequence[str]) -> bool:
    """Whether a link hides notes from the index: it is worth a warning."""
    try:
        folder = entry.is_dir()
    except OSError:  # a link to itself leads nowhere
        return False
    if folder:
        return not folder_excluded(path, exclude)
    return entry.name.endswith(SUFFIX) and not excluded(path, exclude)


def _is_utf8(name: str) -> bool:
    return name.isprintable() or not any("\ud800" <= one <= "\udfff" for one in name)
