"""The keyword list: FTS5 over our tokens, ranked by its BM25."""

from __future__ import annotations

import sqlite3

from recallstack.notes.store import Store
from recallstack.notes.switches import NO_SWITCHES, Switches
from recallstack.tokens import tokenize

DECIMALS = 12
"""Scores are rounded before they rank, so that the order of a sum's terms cannot reorder equals."""
SPARE = 200
"""Rows fetched beyond the depth for those that equal the last one."""


def fts_query(text: str) -> str:
    """An FTS5 query that holds each token of a text once, quoted, joined by OR; empty if there is none."""
    return " OR ".join(f'"{token}"' for token in dict.fromkeys(tokenize(text)))


def keyword_list(store: Store, text: str, depth: int, switches: Switches = NO_SWITCHES) -> list[tuple[int, float]]:
    """(chunk id, score) of the best, best first; a higher score is better. Inside a read transaction.

    Score: FTS5's bm25 with its sign turned (k1 = 1.2, b = 0.75). Equals are ordered by root, file, line and part,
    so that an index that grew and one made anew give the same list.
    """
    query = text if switches.raw_fts_query else fts_query(text)
    if not query:
        return []
    try:
        rows = _best(store, query, depth + SPARE)
        # Were equals of the last row we keep cut off? Then all rows are needed to know which of them come first.
        if len(rows) == depth + SPARE and rows[-1][1] == rows[depth - 1][1]:
            rows = _best(store, query, -1)
    except sqlite3.OperationalError:
        if not switches.raw_fts_query:
            raise
        return []
    last = rows[min(depth, len(rows)) - 1][1] if rows else 0.0
    rows = [row for row in rows if row[1] >= last]
    names = places(store, [chunk for chunk, _ in rows])
    return sorted(rows, key=lambda row: (-row[1], names[row[0]]))[:depth]


def _best(store: Store, query: str, limit: int) -> list[tuple[int, float]]:
    found = store.connection.execute(
        "SELECT rowid, rank FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY rank LIMIT ?", (query, limit)
    )
    return [(chunk, round(-rank, DECIMALS)) for chunk, rank in found]


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
