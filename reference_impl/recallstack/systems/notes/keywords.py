"""The keyword list: FTS5 over our tokens, ranked by its BM25."""

from __future__ import annotations

import sqlite3

from recallstack.ranking.channels.fts5 import best_rows, fts_query
from recallstack.systems.notes.store import Store
from recallstack.systems.notes.switches import NO_SWITCHES, Switches


def keyword_list(store: Store, text: str, depth: int, switches: Switches = NO_SWITCHES) -> list[tuple[int, float]]:
    """(chunk id, score) of the best, best first; a higher score is better. Inside a read transaction.

    Equals are ordered by root, file, line and part, so that an index that grew and one made anew give the same list.
    """
    query = text if switches.raw_fts_query else fts_query(text)
    if not query:
        return []
    try:
        rows = best_rows(store.connection, "chunks_fts", query, depth)
    except sqlite3.OperationalError:
        if not switches.raw_fts_query:
            raise
        return []
    names = places(store, [chunk for chunk, _ in rows])
    return sorted(rows, key=lambda row: (-row[1], names[row[0]]))[:depth]


def places(store: Store, chunk_ids: list[int]) -> dict[int, tuple[str, str, int, int]]:
    """chunk id -> (root, file, line, part): the order of chunks. Inside a read transaction."""
    out: dict[int, tuple[str, str, int, int]] = {}
    for start in range(0, len(chunk_ids), _VARIABLES):
        part = chunk_ids[start : start + _VARIABLES]
        rows = store.connection.execute(
            "SELECT chunks.id, root, file, line, part FROM chunks JOIN files ON files.id = file_id "
            f"WHERE chunks.id IN ({', '.join('?' * len(part))})",
            part,
        )
        out.update((row[0], row[1:]) for row in rows)
    return out


_VARIABLES = 900
"""Values in one statement: below the limit of every SQLite (999)."""
