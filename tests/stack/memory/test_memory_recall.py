"""Recall over a weak embedding (section 7): by hand, against a plain model, on both databases, and as a recipe."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_support import BOTH, Clock, Letters, Stores, notes, stores_of

from recallbench.datasets.registry import load
from recallstack.errors import InputError
from recallstack.ranking.candidates import Candidates
from recallstack.ranking.coverage import coverage, rerank
from recallstack.ranking.embedders.hash3 import Hash3
from recallstack.ranking.pipeline import Query, answer
from recallstack.ranking.presets import preset
from recallstack.ranking.rows import Corpus
from recallstack.systems.memory.model import NewMemory
from recallstack.systems.memory.modes import Modes
from recallstack.systems.memory.portal import Portal
from recallstack.systems.memory.switches import Switches

MODES = Modes(forget=True, lifecycle="canary", lifecycle_users=frozenset({"ann"}))


@pytest.fixture(params=BOTH)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with stores_of(request.param, tmp_path, request) as one:
        yield one


# Coverage.


@pytest.mark.parametrize(
    ("query", "text", "share"),
    [
        ("blue lantern", "the lantern", 1 / 2),
        ("blue blue lantern", "BLUE", 1 / 2),  # distinct n-grams
        ("发布窗口", "窗口在周五发布", 2 / 3),  # 发布 布窗 窗口: 布窗 is not there
        ("发布 zfs_4421", "zfs_4421 坏了", 1 / 2),
        ("zfs", "zfs_4421", 0),  # whole words
        ("布", "发布", 0),  # a lone character is a token of its own, 发布 is one bigram
        ("?!", "?!", 0),
        ("", "", 0),
    ],
)
def test_coverage_is_the_share_of_the_querys_ngrams(query: str, text: str, share: float) -> None:
    assert coverage(query, [text]).tolist() == pytest.approx([share])


def test_rerank_is_stable_and_leaves_alone_what_shares_nothing() -> None:
    texts = ["x", "b", "a b", "b c"]
    rows = Candidates.from_lists([[(0, 0.9), (1, 0.8), (3, 0.7), (2, 0.6)], [(1, 0.5), (0, 0.4)]])
    got = rerank(["a b", "zz"], texts, rows).to_lists()
    assert got == [[(2, 1.0), (1, 0.5), (3, 0.5), (0, 0.0)], [(1, 0.5), (0, 0.4)]]


# By hand. Cosines to "a": aaa 1, aab 2/sqrt(5), abb 1/sqrt(5), bbb 0.


def test_words_decide_then_vector_rank_then_recency(stores: Stores) -> None:
    portal = stores.portal(Letters({"a tea": [1, 0, 0], "tea is old": [0, 0, 0], "tea is new": [0, 0, 0]}))
    portal.write("ann", "s", notes("bbb", "tea is old"))
    portal.write("ann", "s", notes("aab", "tea is new", "aaa"))
    portal.write("ann", "s", notes("abb tea", "a tea bbb"))
    found = portal.recall("ann", "a tea", 9)
    # both words; one word: by vector (abb tea), then those without a vector by recency; no word: by vector
    assert found.ids == ("a tea bbb", "abb tea", "tea is new", "tea is old", "aaa", "aab", "bbb")
    assert found.lexical
    assert found.pool == 7
    assert portal.recall("ann", "a tea", 2).ids == ("a tea bbb", "abb tea")


def test_without_a_shared_word_vector_order_then_the_newest(stores: Stores) -> None:
    portal = stores.portal(Letters({"dark": [0, 0, 0], "night": [0, 0, 0], "moon": [0, 0, 0]}))
    portal.write("ann", "s", notes("dark", "bbb"))
    portal.write("ann", "s", notes("night"))
    portal.write("ann", "s", notes("aab", "moon", "aaa"))
    found = portal.recall("ann", "a zzz", 9)
    assert found.ids == ("aaa", "aab", "bbb", "moon", "night", "dark")
    assert not found.lexical


def test_a_run_of_chinese_is_found_whatever_the_hash_says(stores: Stores) -> None:
    """The documented case: hash3 sees one token in a run of Chinese, so that fifty others are nearer."""
    portal = stores.portal("hash3")
    query = "门禁密码是什么"
    others = sorted(
        (f"无关的第{number}条笔记" for number in range(400)),
        key=lambda text: -_cosine(text, query),
    )[:60]
    portal.write("ann", "s", [NewMemory(content="大门的门禁密码是4821", id="door")])
    portal.write("ann", "s", notes(*others))
    assert all(_cosine(text, query) > _cosine("大门的门禁密码是4821", query) for text in others)
    legacy = stores.portal("hash3", switches=Switches(vector_only=True))
    assert "door" not in legacy.recall("ann", query, 50).ids
    # neither among the 50 nearest nor among the 50 newest: the pool is bounded
    assert "door" not in portal.recall("ann", query, 50).ids
    portal.write("ann", "s", [NewMemory(content="大门的门禁密码是4821", id="door")])
    assert portal.recall("ann", query, 1).ids == ("door",)


def _cosine(text: str, query: str) -> float:
    a, b = Hash3().encode_documents([f" {text}", query])
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


@pytest.mark.parametrize("size", [49, 50, 51, 130])
def test_the_pool_is_bounded(stores: Stores, size: int) -> None:
    """The oldest are the nearest: at most 50 by vector and 50 of the newest, 100 together."""
    portal = stores.portal(Letters({**{f"old{n}": [1.0, 0, 0] for n in range(size)}, "query": [1, 0, 0]}))
    portal.write("ann", "s", notes(*(f"old{n}" for n in range(size))))
    portal.write("ann", "s", notes(*(f"new{n}" for n in range(60))))  # one letter or none: no vector
    found = portal.recall("ann", "query", 500)
    assert found.pool == min(size, 50) + 50
    assert len(found.ids) == found.pool
    assert found.ids[0] == "old0"
    assert found.ids[-1] == "new49"  # equals of the newest write in the order of saving: new50 … new59 fall out


def test_only_active_rows_of_that_user(stores: Stores) -> None:
    portal = stores.portal(Letters(), MODES)
    portal.write("ann", "s", notes("a", "aa", "aaa"))
    portal.write("bob", "s", notes("aaaa"))
    portal.lifecycle.forget("ann", ["aa"])
    assert portal.recall("ann", "a", 9).ids == ("a", "aaa")
    assert portal.recall("bob", "a", 9).ids == ("aaaa",)
    assert portal.recall("eve", "a", 9).ids == ()


def test_hidden_rows_whose_vectors_could_not_be_removed_take_no_place(stores: Stores) -> None:
    """60 rows are forgotten while the embedder is away from the vector table: none of the 50 places is theirs."""
    portal = stores.portal(Letters(), MODES)
    near = [f"a{n}" for n in range(60)]
    portal.write("ann", "s", notes(*near))
    portal.write("ann", "s", notes(*(f"ab{n}" for n in range(55))))
    portal.write("ann", "s", notes(*(f"zz{n}" for n in range(60))))  # the newest 50 are all without a vector
    database, vectors = stores.open()
    kept = type(vectors).remove
    type(vectors).remove = lambda *_: None  # type: ignore[method-assign]
    try:
        portal.lifecycle.forget("ann", near)
    finally:
        type(vectors).remove = kept  # type: ignore[method-assign]
    from recallstack.systems.memory.memories import Memories

    with database.write("test") as connection:
        Memories(database).owe(connection, "ann", near)
    found = portal.recall("ann", "a", 50)
    assert found.ids == tuple(f"ab{n}" for n in range(50))


def test_a_limit_below_one_is_refused(stores: Stores) -> None:
    with pytest.raises(InputError, match="recall: limit is 0; it must be at least 1"):
        stores.portal().recall("ann", "x", 0)


@pytest.mark.parametrize(
    "query", ["", "   ", "?!", "\ud800", "%", "'; DROP TABLE memory_v2_memories; --", "x" * 20_000]
)
def test_any_query_is_answered(stores: Stores, query: str) -> None:
    portal = stores.portal("hash3")
    portal.write("ann", "s", notes("tea"))
    assert portal.recall("ann", query, 5).ids == ("tea",)


# Against a plain model, on both databases.

WORDS = ["tea", "red", "blue", "发布窗口", "发布", "窗", "zfs_1", "?", "aa", "b"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


def model(rows: Sequence[tuple[str, str, int]], query: str, limit: int, half: int) -> list[str]:
    """Section 7, word by word. rows: (id, text, time), in the order of saving."""
    embedded = Hash3().encode_documents([f" {text}" for _, text, _ in rows])
    [asked] = Hash3().encode_queries([query])
    near = []
    for place, vector in enumerate(embedded):
        if np.any(vector) and np.any(asked):
            unit = (vector / np.linalg.norm(vector)).astype(np.float32).astype(np.float64)
            near.append((-round(float(unit @ asked / np.linalg.norm(unit) / np.linalg.norm(asked)), 7), place))
    by_vector = [place for _, place in sorted(near)][:half]
    newest = sorted(range(len(rows)), key=lambda place: (-rows[place][2], place))[:half]
    pool = list(dict.fromkeys([*by_vector, *newest]))

    def grams(text: str) -> set[str]:
        out = set()
        for word in text.split():
            if "\u4e00" <= word[0] <= "\u9fff":
                out |= {word[i : i + 2] for i in range(len(word) - 1)} or {word}
            elif word != "?":
                out.add(word)
        return out

    wanted = grams(query)
    share = {place: len(wanted & grams(rows[place][1])) / max(1, len(wanted)) for place in pool}
    if any(share.values()):
        pool.sort(key=lambda place: -share[place])
    return [rows[place][0] for place in pool[:limit]]


_USERS = itertools.count()


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Portal]]:
    """A portal on each database that there is."""
    with stores_of("sqlite", tmp_path_factory.mktemp("pair"), request) as local:
        if not getattr(request, "param", False):
            yield [local.portal("hash3")]
            return
        with stores_of("postgres", tmp_path_factory.mktemp("pair"), request) as remote:
            yield [local.portal("hash3"), remote.portal("hash3")]


@pytest.mark.parametrize("pair", [False, pytest.param(True, marks=pytest.mark.pg)], indirect=True)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=14, unique=True),
    cuts=st.lists(st.booleans(), min_size=14, max_size=14),
    query=TEXTS,
    limit=st.integers(1, 8),
    half=st.integers(1, 8),
)
def test_recall_is_section_7(
    texts: list[str], cuts: list[bool], query: str, limit: int, half: int, pair: list[Portal]
) -> None:
    user = f"u{next(_USERS)}"
    clock = Clock()
    groups: list[list[str]] = []
    for text, new in zip(texts, cuts, strict=False):
        if new or not groups:
            groups.append([])
        groups[-1].append(text)
    expected = model([(text, text, time) for time, group in enumerate(groups) for text in group], query, limit, half)
    from recallstack.systems.memory import recall as module

    before = module.VECTOR_HITS, module.NEWEST_ROWS
    module.VECTOR_HITS = module.NEWEST_ROWS = half
    try:
        for portal in pair:
            for group in groups:
                portal.write(user, "s", notes(*group))
            assert list(portal.recall(user, query, limit).ids) == expected
    finally:
        module.VECTOR_HITS, module.NEWEST_ROWS = before
    assert clock() > 0


# As a recipe, on a labelled set.


@pytest.mark.parametrize(
    ("name", "switches"), [("pgvector-ngram", {}), ("pgvector-vector-only", {"vector_only": True})]
)
def test_the_recipe_is_memory_recall(name: str, switches: dict[str, Any], stores: Stores) -> None:
    """Every third memory and tenth question of mneme-memories: the same memories, in the same order."""
    labelled = load("mneme-memories")
    corpus = next(iter(labelled.corpora.values()))
    active = [one for one in corpus.memories if not (one.archived or one.forgotten)]
    rows = sorted(active[::3], key=lambda one: one.id)
    assert len(rows) > 150
    ordered = Corpus.of("one", rows)
    times = {one.id: int(max(0, seconds) * 1000) for one, seconds in zip(rows, ordered.updated, strict=True)}
    moment = [0]
    portal = stores.portal("hash3", now=lambda: moment[0], switches=Switches(**switches))
    batches = itertools.groupby(rows, key=lambda one: times[one.id])
    for moment[0], batch in batches:
        made = [NewMemory(id=one.id, title=one.title, content=one.content, type=one.type) for one in batch]
        portal.write("ann", "s", made)
    texts = [question.text for question in labelled.questions[::10]]
    got = answer(ordered, [Query(text) for text in texts], preset(name), 20)
    lexical = 0
    for text, hits in zip(texts, got.final.to_lists(), strict=True):
        found = portal.recall("ann", text, 20)
        assert list(found.ids) == [str(ordered.ids[row]) for row, _ in hits]
        lexical += found.lexical
    assert lexical > 10 or switches
