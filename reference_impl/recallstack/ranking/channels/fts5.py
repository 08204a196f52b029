"""Words through SQLite's FTS5 over our tokens, ranked by its bm25 (recall semantics, section 6)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from recallstack.ranking.candidates import Candidates
from recallstack.ranking.channels.indexes import per_corpus
from recallstack.ranking.channels.retrieved import Retrieved
from recallstack.ranking.rows import Corpus
from recallstack.ranking.tokens import tokenize

TOKENIZE = "unicode61 remove_diacritics 0 tokenchars '_'"
"""FTS5's tokenizer: it takes our tokens, which stand apart by spaces, as they are."""
DECIMALS = 12
"""Scores are rounded before they rank, so that the order of a sum's terms cannot reorder equals."""
SPARE = 200
"""Rows fetched beyond the depth for those that equal the last one."""


def fts_text(text: str) -> str:
    """What is indexed of a text: its tokens."""
    return " ".join(tokenize(text))


def fts_query(text: str) -> str:
    """An FTS5 query that holds each token of a text once, quoted, joined by OR; empty if there is none."""
    return " OR ".join(f'"{token}"' for token in dict.fromkeys(tokenize(text)))


def best_rows(connection: sqlite3.Connection, table: str, query: str, depth: int) -> list[tuple[int, float]]:
    """(rowid, score) of the rows that score at least as well as the best `depth`-th, best first, equals as they come.

    query: in FTS5's syntax. Score: FTS5's bm25 with its sign turned (k1 = 1.2, b = 0.75), so that higher is better.
    """
    rows = _best(connection, table, query, depth + SPARE)
    # Were equals of the last row we keep cut off? Then all rows are needed to know which of them come first.
    if len(rows) == depth + SPARE and rows[-1][1] == rows[depth - 1][1]:
        rows = _best(connection, table, query, -1)
    last = rows[min(depth, len(rows)) - 1][1] if rows else 0.0
    return [row for row in rows if row[1] >= last]


def _best(connection: sqlite3.Connection, table: str, query: str, limit: int) -> list[tuple[int, float]]:
    found = connection.execute(
        f"SELECT rowid, rank FROM {table} WHERE {table} MATCH ? ORDER BY rank LIMIT ?", (query, limit)
    )
    return [(row, round(-rank, DECIMALS)) for row, rank in found]


def _table(corpus: Corpus) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute(f"CREATE VIRTUAL TABLE fts USING fts5 (tokens, content = '', tokenize = \"{TOKENIZE}\")")
    connection.executemany(
        "INSERT INTO fts (rowid, tokens) VALUES (?, ?)", ((i, fts_text(text)) for i, text in enumerate(corpus.texts))
    )
    return connection


def retrieve(corpus: Corpus, queries: Sequence[str], depth: int) -> Retrieved:
    """The keyword channel of notes search. Rows that share no token with the query are no candidates.

    Order: score, then corpus position.
    """
    table = per_corpus(corpus, "fts5", lambda: _table(corpus))
    lists = []
    for query in queries:
        asked = fts_query(query)
        rows = best_rows(table, "fts", asked, depth) if asked and depth else []
        lists.append(sorted(rows, key=lambda row: (-row[1], row[0]))[:depth])
    return Retrieved(Candidates.from_lists(lists))
