"""Notes search over 10,000 Markdown files (about 80,000 chunks), against the plain ways in the same process.

First index, no-change sync, one-file sync, search p50 and p95; beside them scanning all files, and SQLite's FTS5
alone with its own tokenizer and no fusion, weights or sensitivity. Outputs are checked: FTS5 alone and brute-force
cosine have the rows of our lists, scanning finds all of them, and texts are those of the files.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recallstack.ranking.channels.fts5 import fts_query
from recallstack.ranking.tokens import tokenize
from recallstack.systems.notes import Notes, NotesConfig
from recallstack.systems.notes.chunker import ChunkRule, chunks

QUICK = os.environ.get("RECALLBENCH_PERF_QUICK") == "1"
FILES, QUERIES = (500, 20) if QUICK else (10_000, 200)
ENTRIES, WORDS, VOCABULARY, DIMENSIONS = 8, 20, 30_000, 128
CHANGED = Path("002", "00200", "public.md")
NAMES = ("public.md", "personal.md", "secret.md", "diary.md")


class Projection:
    """A cheap embedder: each word has a random direction, a text is their sum."""

    name = "projection"

    def __init__(self) -> None:
        self._directions = np.random.default_rng(1).standard_normal((VOCABULARY, DIMENSIONS)).astype(np.float32)

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float64]:
        rows = [[int(token[1:]) for token in tokenize(text) if token[0] == "w"] for text in texts]
        return np.array([self._directions[row].sum(axis=0, dtype=np.float64) for row in rows])

    encode_queries = encode_documents


@dataclass(frozen=True)
class Tree:
    root: Path
    folder: Path
    queries: list[str]

    def config(self, name: str) -> NotesConfig:
        return NotesConfig(database=self.folder / name, roots=(self.root,))

    def read(self) -> list[tuple[str, str]]:
        """(id, text) of every chunk, by scanning all files."""
        out = []
        for path in sorted(self.root.rglob("*.md")):
            name = path.relative_to(self.root).as_posix()
            out += [(one.id(name), one.text) for one in chunks(path.read_text(), ChunkRule())]
        return out


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    folder = tmp_path_factory.mktemp("notes-perf")
    root, draw = folder / "notes", np.random.default_rng(0)
    share = 1 / np.arange(1, VOCABULARY + 1)
    words = draw.choice(VOCABULARY, (FILES, ENTRIES, WORDS), p=share / share.sum())
    for number, entries in enumerate(words):
        path = root / f"{number // 100:03}" / f"{number:05}" / NAMES[number % len(NAMES)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"- {' '.join(f'w{word}' for word in entry)}\n" for entry in entries))
    queries = [
        " ".join(f"w{word}" for word in draw.choice(VOCABULARY, 6, p=share / share.sum())) for _ in range(QUERIES)
    ]
    return Tree(root, folder, queries)


def seconds(function: Callable[[], Any]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def spread(times: Sequence[float]) -> tuple[float, float]:
    """(p50, p95) in milliseconds."""
    return 1000 * statistics.median(times), 1000 * float(np.quantile(times, 0.95))


def fts_alone(tree: Tree, name: str, rows: list[tuple[str, str]]) -> sqlite3.Connection:
    """The plain index: one FTS5 table with its own tokenizer over the chunks' texts, in a file."""
    connection = sqlite3.connect(tree.folder / name, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE VIRTUAL TABLE plain USING fts5 (id UNINDEXED, text)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO plain VALUES (?, ?)", rows)
    connection.execute("COMMIT")
    return connection


def test_index_and_sync(benchmark: Any, tree: Tree) -> None:
    scanned: list[tuple[str, str]] = []
    scanning = seconds(lambda: scanned.extend(tree.read()))
    plain: list[sqlite3.Connection] = []
    plain_index = scanning + seconds(lambda: plain.append(fts_alone(tree, "plain.db", scanned)))
    plain[0].close()
    with Notes(tree.config("index.db")) as notes:
        first = seconds(notes.sync)
        assert notes.status().chunks == len(scanned) == FILES * ENTRIES
        benchmark.group = f"notes, {FILES} files"
        benchmark.pedantic(notes.sync, rounds=11, warmup_rounds=1)
        walking = min(seconds(lambda: [one.stat() for one in tree.root.rglob("*.md")]) for _ in range(3))
        one_file = []
        for turn in range(11):
            (tree.root / CHANGED).write_text(f"- w7 turn {turn}\n" * (turn + 1))
            began = time.perf_counter()
            report = notes.sync()
            one_file.append(time.perf_counter() - began)
            assert (len(report.changed), report.chunks, report.unchanged) == (1, turn + 1, FILES - 1)
    if benchmark.stats is None:
        return
    unchanged, changed = benchmark.stats.stats.median, statistics.median(one_file)
    benchmark.extra_info.update(
        first_index_s=first,
        first_index_over_fts5_alone=first / plain_index,
        scan_all_s=scanning,
        no_change_s=unchanged,
        scan_all_over_no_change=scanning / unchanged,
        one_file_s=changed,
        scan_all_over_one_file=scanning / changed,
    )
    print(
        f"\nnotes, {FILES} files, {FILES * ENTRIES} chunks: first index {first:.1f} s, {first / plain_index:.2f} times "
        f"as long as reading all files into FTS5 alone ({plain_index:.1f} s); no-change sync "
        f"{1000 * unchanged:.0f} ms, "
        f"{walking / unchanged:.1f} times as fast as rglob and stat, {scanning / unchanged:.0f} times as fast as "
        f"reading all files; one-file sync {1000 * changed:.0f} ms, {first / changed:.0f} times as fast as at first"
    )


@pytest.mark.parametrize("semantic", [False, True], ids=["keywords", "both-lists"])
def test_search(benchmark: Any, tree: Tree, semantic: bool) -> None:
    embedder = Projection() if semantic else None
    rows = tree.read()
    texts = dict(rows)
    with (
        Notes(tree.config(f"search-{semantic}.db"), embedder) as notes,
        closing(fts_alone(tree, f"plain-{semantic}.db", rows)) as plain,
    ):
        first = seconds(notes.sync)
        loading = seconds(lambda: notes.search(tree.queries[0]))
        ours: list[float] = []
        alone: list[float] = []

        def each_query() -> None:
            """Both answer in turns, so that they meet the same load of the machine."""
            for query in tree.queries:
                ours.append(seconds(lambda query=query: notes.search(query)))  # type: ignore[misc]
                match = fts_query(query)
                alone.append(seconds(lambda match=match: plain.execute(PLAIN, (match,)).fetchall()))  # type: ignore[misc]

        benchmark.group = "notes search"
        benchmark.pedantic(each_query, rounds=1)
        scanning = []
        for query in tree.queries[:3]:
            wanted = set(tokenize(query))
            began = time.perf_counter()
            holding = {name for name, text in tree.read() if wanted & set(tokenize(text))}
            scanning.append(time.perf_counter() - began)
            hits = notes.search(query, limit=40).hits
            assert all(hit.text == texts[hit.id] for hit in hits)
            if not semantic:
                assert {hit.id for hit in hits} <= holding
                best = {name for name, _ in plain.execute(PLAIN.replace("10", "40"), (fts_query(query),))}
                assert len(best & {hit.id for hit in hits}) >= len(best) - 1  # equals at the cut may differ
        brute = _brute_force(notes, embedder, rows, tree.queries[:20]) if embedder else None
    p50, p95 = spread(ours)
    plain50, plain95 = spread(alone)
    if benchmark.stats is None:
        return
    benchmark.extra_info.update(
        p50_ms=p50,
        p95_ms=p95,
        fts5_alone_p50_ms=plain50,
        fts5_alone_p95_ms=plain95,
        over_fts5_alone=p50 / plain50,
        scan_all_over_p50=1000 * statistics.median(scanning) / p50,
        first_index_s=first,
        first_search_s=loading,
    )
    print(
        f"\nnotes search, {'both lists' if semantic else 'keywords'}: p50 {p50:.1f} ms, p95 {p95:.1f} ms; FTS5 alone "
        f"p50 {plain50:.1f} ms, p95 {plain95:.1f} ms ({p50 / plain50:.2f} times as long); scanning all files "
        f"{1000 * statistics.median(scanning):.0f} ms ({1000 * statistics.median(scanning) / p50:.0f} times as long); "
        f"first index {first:.1f} s, first search {1000 * loading:.0f} ms"
        + (f"; brute-force cosine {brute:.1f} ms" if brute is not None else "")
    )


PLAIN = "SELECT id, text FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT 10"


def _brute_force(notes: Notes, embedder: Projection, rows: list[tuple[str, str]], queries: list[str]) -> float:
    """Median milliseconds of one float64 matrix product and a sort; the nearest must be in our list."""
    matrix = embedder.encode_documents([text for _, text in rows])
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    times = []
    for query in queries:
        vector = embedder.encode_queries([query])[0]
        began = time.perf_counter()
        best = np.argsort(-(matrix @ vector), kind="stable")[:40]
        times.append(time.perf_counter() - began)
        ids = {hit.id for hit in notes.search(query, limit=80).hits}
        assert len(ids & {rows[one][0] for one in best}) >= 39  # equals at the cut may differ
    return 1000 * statistics.median(times)
