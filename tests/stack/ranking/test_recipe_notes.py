"""Notes search as a recipe: FTS5, source weights and sensitivity by hand, and the same answers as `Notes.search`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallstack.ranking.channels import fts5, retrieve
from recallstack.ranking.embedders import resolve_embedder
from recallstack.ranking.embedders.lsa import FittedLSA
from recallstack.ranking.fusion import Fusion
from recallstack.ranking.injection import EVERY_LEVEL, Scope
from recallstack.ranking.pipeline import Answer, Query, answer
from recallstack.ranking.presets import preset
from recallstack.ranking.recipes import SearchRecipe
from recallstack.ranking.rows import Corpus, Memory, Sensitivity, Source
from recallstack.ranking.specs import KeywordSpec
from recallstack.ranking.tokens import tokenize
from recallstack.ranking.trace import LOSSES, waterfall
from recallstack.systems.notes import ChunkRule, Notes, NotesConfig
from recallstack.systems.notes.chunker import chunks
from recallstack.systems.notes.sensitivity import SessionMap, level_of, visible

VAULT = Path(__file__).parents[3] / "datasets" / "notes-vault"
PUBLIC: frozenset[Sensitivity] = frozenset(("public",))
NOTES = preset("notes-k10")
assert isinstance(NOTES, SearchRecipe)
KEYWORDS = replace(NOTES, channels=("keyword",))


def corpus_of(files: dict[str, str]) -> Corpus:
    """Files cut as notes search cuts them, in the order of their names."""
    rows = [
        Memory(
            id=chunk.id(name), content=chunk.text, sensitivity=level_of(name), source=Source(file=name, line=chunk.line)
        )
        for name, text in sorted(files.items())
        for chunk in chunks(text, ChunkRule())
    ]
    return Corpus.of("main", rows)


def asked(
    corpus: Corpus,
    text: str,
    levels: frozenset[Sensitivity] = EVERY_LEVEL,
    recipe: SearchRecipe = NOTES,
    top_k: int = 10,
) -> Answer:
    return answer(corpus, [Query(text, Scope(levels=levels))], recipe, top_k)


def ids(corpus: Corpus, got: Answer) -> list[str]:
    return [str(corpus.ids[row]) for row, _ in got.final.to_lists()[0]]


# The channel.


def words(texts: Sequence[str], query: str, depth: int = 10) -> list[tuple[int, float]]:
    corpus = Corpus.of("c", [Memory(id=str(i), content=text) for i, text in enumerate(texts)])
    return retrieve(corpus, [query], KeywordSpec(match="fts5"), depth).candidates.to_lists()[0]


def bm25(texts: Sequence[str], query: str) -> dict[int, float]:
    """FTS5's bm25 from its manual, written out: k1 = 1.2, b = 0.75, an idf of at least 1e-6, each token once."""
    documents = [tokenize(text) for text in texts]
    average = sum(map(len, documents)) / len(documents)
    out: dict[int, float] = {}
    for token in dict.fromkeys(tokenize(query)):
        held = sum(token in one for one in documents)
        idf = math.log((len(documents) - held + 0.5) / (held + 0.5))
        for place, one in enumerate(documents):
            if tf := one.count(token):
                norm = tf + 1.2 * (1 - 0.75 + 0.75 * len(one) / average)
                out[place] = out.get(place, 0.0) + max(idf, 1e-6) * tf * 2.2 / norm
    return out


@settings(max_examples=150, deadline=None)
@given(
    texts=st.lists(st.lists(st.sampled_from(["a", "b_1", "Ä", "发布窗", "窗"]), max_size=5).map(" ".join), min_size=1),
    query=st.lists(st.sampled_from(["A", "b_1", "布窗", "zz", '"', "窗 AND"]), max_size=3).map(" ".join),
    depth=st.integers(0, 12),
)
def test_scores_are_those_of_the_formula(texts: list[str], query: str, depth: int) -> None:
    expected = bm25(texts, query) if any(map(tokenize, texts)) else {}
    found = words(texts, query, depth)
    assert len(found) == min(depth, len(expected))
    assert [score for _, score in found] == pytest.approx([expected[row] for row, _ in found], rel=1e-9, abs=2e-12)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    left = [score for row, score in expected.items() if row not in dict(found)]
    assert not found or max(left, default=0) <= found[-1][1] + 2e-12


@pytest.mark.parametrize("spare", [0, 1, 200])
def test_equals_come_in_the_order_of_the_corpus(spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cut of FTS5's own list must not choose among equals."""
    monkeypatch.setattr(fts5, "SPARE", spare)
    texts = ["x y", "lantern", "lantern", "lantern", "lantern lantern x x x x x", "lantern"]
    assert [row for row, _ in words(texts, "lantern", 3)] == [1, 2, 3]


def test_the_title_is_searched_and_the_whole_query_need_not_stand_there() -> None:
    corpus = Corpus.of("c", [Memory(id="a", title="Blue", content="lantern"), Memory(id="b", content="window")])
    like, any_word = KeywordSpec(), KeywordSpec(match="fts5")
    assert retrieve(corpus, ["blue window"], like, 5).candidates.to_lists() == [[]]
    # the shorter text first: each holds one of the words once
    assert [row for row, _ in retrieve(corpus, ["blue window"], any_word, 5).candidates.to_lists()[0]] == [1, 0]


def test_an_empty_corpus_and_no_query() -> None:
    empty = Corpus.of("c", [])
    assert asked(empty, "lantern").final.width == 0
    assert answer(corpus_of({"a.md": "lantern"}), [], NOTES, 5).final.questions == 0


# The steps after fusion.


def test_weights_by_source() -> None:
    """By keyword the shorter text first: ranks 1, 2, 3 of k = 10, times 0.5 (carryover), 1 and 1.5 (public.md)."""
    corpus = corpus_of({"carryover/public.md": "lantern", "diary.md": "lantern x", "public.md": "lantern x y"})
    got = asked(corpus, "lantern", recipe=KEYWORDS)
    assert ids(corpus, got) == ["public.md#1", "diary.md#1", "carryover/public.md#1"]
    assert [score for _, score in got.final.to_lists()[0]] == pytest.approx([1.5 / 13, 1 / 12, 0.5 / 11], rel=1e-12)
    plain = asked(corpus, "lantern", recipe=replace(KEYWORDS, source_weights="off"))
    assert ids(corpus, plain) == ["carryover/public.md#1", "diary.md#1", "public.md#1"]


def test_a_row_of_no_file_weighs_1() -> None:
    corpus = Corpus.of("c", [Memory(id="a", content="lantern")])
    assert [score for _, score in asked(corpus, "lantern", recipe=KEYWORDS).final.to_lists()[0]] == [1 / 11]


def test_rows_above_the_level_take_no_place() -> None:
    corpus = corpus_of({"secret.md": "lantern\n\nlantern", "a.md": "lantern", "public.md": "lantern x y z"})
    assert ids(corpus, asked(corpus, "lantern", PUBLIC, top_k=1)) == ["public.md#1"]
    assert ids(corpus, asked(corpus, "lantern", frozenset())) == []
    assert len(ids(corpus, asked(corpus, "lantern"))) == 4
    open_to_all = replace(NOTES, sensitivity="off")
    assert len(ids(corpus, asked(corpus, "lantern", PUBLIC, open_to_all))) == 4


def test_each_question_of_a_batch_has_its_own_level() -> None:
    corpus = corpus_of({"secret.md": "lantern", "public.md": "lantern"})
    levels = [PUBLIC, EVERY_LEVEL, frozenset[Sensitivity](), PUBLIC]
    got = answer(corpus, [Query("lantern", Scope(levels=one)) for one in levels], NOTES, 5)
    assert got.final.lengths.tolist() == [1, 2, 0, 1]


def test_the_like_override_brings_no_row_above_the_level() -> None:
    """It moves rows of the keyword list to the front, past the filter of the fused list."""
    corpus = corpus_of({"secret.md": "lantern", "public.md": "lantern"})
    legacy = replace(NOTES, fusion=Fusion("rrf", k=10, like_override=True), keyword=KeywordSpec())
    assert ids(corpus, asked(corpus, "lantern", PUBLIC, legacy)) == ["public.md#1"]
    assert len(ids(corpus, asked(corpus, "lantern", recipe=legacy))) == 2


def outcomes(corpus: Corpus, got: Answer) -> dict[str, str]:
    codes = waterfall(got.stages, got.final, np.arange(len(corpus), dtype=np.int32)[None])[0]
    return {str(name): LOSSES[code] for name, code in zip(corpus.ids, codes, strict=True)}


def test_what_lost_a_note() -> None:
    """One hit wanted: a diary is first by keyword, a fact is moved up by its weight, one is secret, one has no word."""
    corpus = corpus_of({"diary.md": "lantern", "personal.md": "lantern x", "secret.md": "lantern x y", "z.md": "other"})
    seen: frozenset[Sensitivity] = frozenset(("public", "personal"))
    assert outcomes(corpus, asked(corpus, "lantern", seen, KEYWORDS, top_k=1)) == {
        "diary.md#1": "reranked down",
        "personal.md#1": "kept",
        "secret.md#1": "filtered",
        "z.md#1": "never a candidate",
    }
    assert outcomes(corpus, asked(corpus, "lantern", recipe=replace(KEYWORDS, pool=1), top_k=1)) == {
        "diary.md#1": "kept",
        "personal.md#1": "never a candidate",
        "secret.md#1": "never a candidate",
        "z.md#1": "never a candidate",
    }


# The same answers as notes search.


class Spaced:
    """An embedder whose documents are the searchable texts of memories: an empty title and a space before each."""

    def __init__(self, name: str, texts: Sequence[str]) -> None:
        self.name = name
        self._fitted = FittedLSA(texts) if name == "lsa" else resolve_embedder(name)

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return self._fitted.encode_documents([f" {text}" for text in texts])  # type: ignore[union-attr]

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return self._fitted.encode_queries(texts)  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def vault() -> Corpus:
    root = VAULT / "notes"
    return corpus_of({one.relative_to(root).as_posix(): one.read_text(encoding="utf-8") for one in root.rglob("*.md")})


@pytest.mark.parametrize("embedder", [None, "lsa", "hash3"])
def test_the_recipe_is_notes_search(embedder: str | None, vault: Corpus, tmp_path: Path) -> None:
    """Every question of notes-vault, asked by its session: the same notes, in the same order, of the same score."""
    questions = [json.loads(line) for line in (VAULT / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    keys = [one.get("session", {}).get("channel") for one in questions]
    known = SessionMap({key: key for key in keys if key is not None}, frozenset({"owner"}))
    queries = [
        Query(one["text"], Scope(levels=visible(known.channel(key)))) for one, key in zip(questions, keys, strict=True)
    ]
    recipe = KEYWORDS if embedder is None else replace(NOTES, vector=replace(NOTES.vector, embedder=embedder))
    config = NotesConfig(
        database=tmp_path / "index.db", roots=(VAULT / "notes",), session_map=known.sessions, owners=known.owners
    )
    compared = 0
    with Notes(config, None if embedder is None else Spaced(embedder, vault.texts)) as notes:
        notes.sync()
        for limit in (1, 5, 20):
            got = answer(vault, queries, recipe, limit).final.to_lists()
            for query, key, rows in zip(queries, keys, got, strict=True):
                hits = notes.search(query.text, key, limit).hits
                assert [str(vault.ids[row]) for row, _ in rows] == [hit.id for hit in hits]
                assert [score for _, score in rows] == [hit.score for hit in hits]
                compared += len(hits)
    assert compared > 3000  # 378 questions are really asked
    assert {len(visible(known.channel(key))) for key in keys} == {0, 1, 3}
