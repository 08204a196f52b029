"""Keyword channel: the whole query as one substring, through SQLite's LIKE (recall semantics, section 3), or FTS5."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

import numpy as np

from recallstack.ranking.candidates import Candidates
from recallstack.ranking.channels import fts5
from recallstack.ranking.channels.indexes import per_corpus
from recallstack.ranking.channels.retrieved import Retrieved
from recallstack.ranking.rows import Corpus
from recallstack.ranking.specs import KeywordSpec

LIKE_LIMIT = 50_000
"""Longest LIKE pattern in bytes (SQLITE_MAX_LIKE_PATTERN_LENGTH, https://sqlite.org/limits.html)."""
NUL = "\ufdd0"
"""Stands for NUL, at which SQLite would end a text; a noncharacter, so that no text holds it."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPECIAL = re.compile(r"[%_\\]")
_LIKE = r"""
SELECT position, title LIKE ?1 ESCAPE '\' FROM memory
WHERE title LIKE ?1 ESCAPE '\' OR content LIKE ?1 ESCAPE '\'
"""
_INSTR = "SELECT position, instr(title, ?1) > 0 FROM memory WHERE instr(title, ?1) OR instr(content, ?1)"


def folded(text: str) -> str:
    """The text in lower case, as SQLite can hold it: lone surrogates become U+FFFD, NUL a noncharacter.

    Both sides are folded here because LIKE folds ASCII letters only.
    """
    return _SURROGATE.sub("\ufffd", text).replace("\0", NUL).lower()


def _table(corpus: Corpus) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE memory (position INTEGER PRIMARY KEY, title TEXT, content TEXT)")
    connection.executemany(
        "INSERT INTO memory VALUES (?, ?, ?)",
        ((i, folded(m.title), folded(m.content)) for i, m in enumerate(corpus.memories)),
    )
    return connection


def retrieve(corpus: Corpus, queries: Sequence[str], spec: KeywordSpec, depth: int) -> Retrieved:
    """The channel. An empty or blank query holds nothing. What follows is `match = "like"`.

    Score: that of the title or of the content, times `0.5 + importance / 10`. Order: score, then the newer
    `updated_at`, then corpus position. A query over SQLite's limit of a LIKE pattern is looked up by `instr`,
    which finds the same rows.
    """
    if spec.match == "fts5":
        return fts5.retrieve(corpus, queries, depth)
    table = per_corpus(corpus, "keyword", lambda: _table(corpus))
    lists = []
    for query in queries:
        rows = _holding(table, folded(query)) if query.strip() else []
        where = np.array([position for position, _ in rows], np.int64)
        in_title = np.array([title for _, title in rows], np.bool_)
        scores = np.where(in_title, spec.title_score, spec.content_score) * (0.5 + corpus.importance[where] / 10)
        best = np.lexsort((where, -corpus.updated[where], -scores))[:depth]
        lists.append(list(zip(where[best].tolist(), scores[best].tolist(), strict=True)))
    return Retrieved(Candidates.from_lists(lists))


def _holding(table: sqlite3.Connection, query: str) -> list[tuple[int, int]]:
    """(position, whether the title holds it) of the rows that hold the query."""
    pattern = "%" + _SPECIAL.sub(r"\\\g<0>", query) + "%"
    if len(pattern.encode()) <= LIKE_LIMIT:
        return table.execute(_LIKE, (pattern,)).fetchall()
    return table.execute(_INSTR, (query,)).fetchall()
