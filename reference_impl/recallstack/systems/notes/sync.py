"""Bring the index in line with the files: only what changed is read and cut."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from recallstack.ranking.channels.fts5 import fts_text
from recallstack.systems.notes.chunker import Chunk, ChunkRule, chunks
from recallstack.systems.notes.config import NotesConfig
from recallstack.systems.notes.rule import settle_rule
from recallstack.systems.notes.scanner import Scan, Stamp, scan, shown
from recallstack.systems.notes.store import Store
from recallstack.systems.notes.switches import NO_SWITCHES, Switches
from recallstack.systems.notes.vectors import drop_unused

BATCH = 256
"""Files cut and committed together: what a kill costs."""
Key = tuple[str, str]
"""Root and path relative to it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What a scan shows against the index. Files by name.

    changed: another stamp, or cut by another rule than the one in force. gone: in the index only.
    renamed: (old, new) for files that are gone and new with the same stamp; they stand in both of those too.
    """

    new: tuple[Key, ...]
    changed: tuple[Key, ...]
    gone: tuple[Key, ...]
    unchanged: int
    renamed: tuple[tuple[Key, Key], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What a sync did. Names are relative to their root.

    added, changed: files that were cut. deleted: files that were forgotten. renamed: (old, new); these stand in
    deleted and added too. unchanged: how many were left alone. chunks: rows written. embedded: texts that got a
    vector. rule_waits: a changed chunking rule waits for consent. warnings: one line each, for the owner of the
    notes, since they name files.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    unchanged: int = 0
    chunks: int = 0
    embedded: int = 0
    rule_waits: bool = False
    warnings: tuple[str, ...] = ()


Known = Mapping[Key, tuple[Stamp, str]]
"""The files of the index, with their stamps and the signatures of the rules that they were cut by."""


def known_files(store: Store) -> Known:
    rows = store.connection.execute("SELECT root, file, mtime_ns, size, rule FROM files")
    return {(root, file): (Stamp(mtime_ns, size), rule) for root, file, mtime_ns, size, rule in rows}


def compare(known: Known, found: Scan, rule: ChunkRule, switches: Switches = NO_SWITCHES) -> Difference:
    """Set the files that were found against those of the index."""
    signature = rule.signature
    new = tuple(key for key in found.files if key not in known)
    changed = tuple(
        key
        for key, stamp in found.files.items()
        if key in known and (switches.everything_recut or not _same(stamp, signature, known[key], switches))
    )
    gone = tuple(sorted(key for key in known if key not in found.files))
    of_stamp: dict[Stamp, list[Key]] = {}
    for key in reversed(gone):
        of_stamp.setdefault(known[key][0], []).append(key)
    renamed = tuple((of_stamp[stamp].pop(), key) for key in new if of_stamp.get(stamp := found.files[key]))
    if switches.rename_keeps_old_path:
        both = {key for pair in renamed for key in pair}
        new, gone = (tuple(key for key in keys if key not in both) for keys in (new, gone))
    if switches.deleted_kept:
        gone = ()
    return Difference(new, changed, gone, len(found.files) - len(new) - len(changed), renamed)


def _same(stamp: Stamp, signature: str, known: tuple[Stamp, str], switches: Switches) -> bool:
    old, cut_by = known
    return (
        (switches.mtime_ignored or stamp.mtime_ns == old.mtime_ns)
        and (switches.size_ignored or stamp.size == old.size)
        and signature == cut_by
    )


def sync_files(store: Store, config: NotesConfig) -> SyncReport:
    """Forget files that are gone, then cut new and changed ones, a batch of files a transaction.

    A file that cannot be read or is not UTF-8 has no rows and is named in a warning; each sync tries it again.
    """
    with store.explained():
        rule, waits = settle_rule(store, config.rule, config.switches)
        known = known_files(store)  # before the scan: what another process adds meanwhile does not look deleted
    found = scan(config.roots, config.exclude)
    difference = compare(known, found, rule, config.switches)
    warnings = list(found.warnings)
    if difference.gone:
        with store.write():
            for key in difference.gone:
                _forget(store, key)
            store.touch()
    written, lost, signature = 0, set[Key](), rule.signature
    cut = sorted((*difference.new, *difference.changed))
    for start in range(0, len(cut), BATCH):
        batch = [(key, _cut(key, rule, warnings)) for key in cut[start : start + BATCH]]
        with store.write():
            for key, pieces in batch:
                _forget(store, key)
                if pieces is None:
                    lost.add(key)
                    continue
                _insert(store, key, pieces, signature)
                written += len(pieces.chunks)
            store.touch()
    with store.explained():
        garbage = store.connection.execute("SELECT EXISTS (SELECT 1 FROM garbage)").fetchone()[0]
    if garbage:
        with store.write():
            drop_unused(store)
    return SyncReport(
        added=tuple(key[1] for key in difference.new if key not in lost),
        changed=tuple(key[1] for key in difference.changed if key not in lost),
        deleted=tuple(key[1] for key in sorted((*difference.gone, *lost.intersection(difference.changed)))),
        renamed=tuple((old[1], new[1]) for old, new in difference.renamed),
        unchanged=difference.unchanged,
        chunks=written,
        rule_waits=waits,
        warnings=tuple(warnings),
    )


@dataclass(frozen=True, slots=True)
class _Cut:
    stamp: Stamp
    chunks: list[Chunk]


def _cut(key: Key, rule: ChunkRule, warnings: list[str]) -> _Cut | None:
    """A file in pieces; None if it cannot be read, or is gone since the scan."""
    path = Path(*key)
    try:
        with path.open("rb") as file:
            # Before the text: a change while we read leaves the older stamp here, and the next sync sees it.
            stat = os.fstat(file.fileno())
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        warnings.append(f"{shown(str(path))}: cannot be read: {error.strerror}; it is not in the index")
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        warnings.append(f"{shown(str(path))}:{line}: not UTF-8, so it is not in the index; save it as UTF-8")
        return None
    return _Cut(Stamp(stat.st_mtime_ns, stat.st_size), [one for one in chunks(text, rule) if one.text])


def _forget(store: Store, key: Key) -> None:
    """Drop the rows of a file, if it has any; inside a write transaction. Its vectors wait for `drop_unused`."""
    execute = store.connection.execute
    row = execute("SELECT id FROM files WHERE root = ? AND file = ?", key).fetchone()
    if row is not None:
        execute("INSERT OR IGNORE INTO garbage SELECT digest FROM chunks WHERE file_id = ?", row)
        execute("DELETE FROM chunks_fts WHERE rowid IN (SELECT id FROM chunks WHERE file_id = ?)", row)
        execute("DELETE FROM chunks WHERE file_id = ?", row)
        execute("DELETE FROM files WHERE id = ?", row)


def _insert(store: Store, key: Key, cut: _Cut, signature: str) -> None:
    """Add the rows of a file that has none; inside a write transaction."""
    execute = store.connection.execute
    row = (*key, cut.stamp.mtime_ns, cut.stamp.size, signature)
    file_id = execute("INSERT INTO files (root, file, mtime_ns, size, rule) VALUES (?, ?, ?, ?, ?)", row).lastrowid
    (last,) = execute("SELECT coalesce(max(id), 0) FROM chunks").fetchone()
    numbered = list(enumerate(cut.chunks, last + 1))
    store.connection.executemany(
        "INSERT INTO chunks (id, file_id, line, part, text, digest) VALUES (?, ?, ?, ?, ?, ?)",
        [(number, file_id, one.line, one.part, one.text, digest_of(one.text)) for number, one in numbered],
    )
    store.connection.executemany(
        "INSERT INTO chunks_fts (rowid, tokens) VALUES (?, ?)",
        [(number, fts_text(one.text)) for number, one in numbered],
    )


def digest_of(text: str) -> bytes:
    """What a vector is kept under: equal texts share it, also under another name or line."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
