"""A memory plugin under recallbench that has ids of its own and keeps its memories in SQLite.

    recallbench run --dataset mneme-memories --system "stdio:python examples/python/plugin.py"

In a project without recallbench, `recallbench systems adapter python` puts the adapter beside your plugin.
"""

from __future__ import annotations

import re
import sqlite3

from recallbench.adapters.python import serve


class Plugin:
    """Full-text search over trigrams; the plugin's rows have numbers, which are mapped to the harness's ids."""

    name, version = "example-python", "1.0"

    def reset(self, corpus: str) -> None:
        """A new, empty store; `corpus` is only its name."""
        self.store = sqlite3.connect(":memory:")
        self.store.execute("CREATE VIRTUAL TABLE memory USING fts5(text, tokenize = 'trigram')")

    def index(self, memories: list[dict]) -> dict[str, int]:
        """Save a block of memories. Returns our row number for each id of the harness."""
        rows = {}
        for one in memories:
            text = f"{one.get('title', '')} {one.get('content', '')}".strip()
            rows[one["id"]] = self.store.execute("INSERT INTO memory (text) VALUES (?)", [text]).lastrowid
        return rows

    def search(self, question: dict, top_k: int) -> list[dict]:
        """Rows that share any piece of three characters with the question, by BM25."""
        text = " ".join(re.findall(r"\w+", question["text"]))
        pieces = dict.fromkeys(text[i : i + 3] for i in range(len(text) - 2))
        wanted = " OR ".join(f'"{piece}"' for piece in pieces)
        if not wanted:
            return []
        query = "SELECT rowid, -rank FROM memory WHERE text MATCH ? ORDER BY rank, rowid LIMIT ?"
        return [{"id": row, "score": score} for row, score in self.store.execute(query, [wanted, top_k])]


serve(Plugin())
