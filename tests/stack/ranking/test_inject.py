"""Injection against a second, plainly written model of the design (section 5), for all sixteen combinations."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import CASES

from recallbench.verify.run import verify
from recallstack.ranking.candidates import Candidates
from recallstack.ranking.injection import Rules, Scope, build_rules, inject
from recallstack.ranking.presets import presets
from recallstack.ranking.recipes import InjectRecipe
from recallstack.ranking.rows import Corpus, Memory

COMBINATIONS = [one for one in presets().values() if isinstance(one, InjectRecipe)]


def model(case: dict, recipe: InjectRecipe) -> list[int]:  # type: ignore[type-arg]
    """The design's text, row by row, on Python lists."""
    pool = 2 * recipe.max_items
    depth = max(4 * pool, 40) if recipe.overfetch else pool
    multiplier, eligible = case["multiplier"], case["eligible"]
    hits = [one for one in case["vector"] if one[1] >= 0] if case["has_vector"] else []
    cosines = dict(hits[:200])
    vector = [one for one in hits[:depth] if one[0] in eligible]
    bm25 = [one for one in case["bm25"][:depth] if one[0] in eligible]
    if recipe.overfetch:
        vector = sorted(vector, key=lambda one: -one[1] * multiplier[one[0]])
    bm25 = sorted(bm25, key=lambda one: -one[1] * multiplier[one[0]])
    vector, bm25 = vector[:pool], bm25[:pool]
    if not recipe.dual and vector:
        bm25 = []
    fused: dict[int, float] = {}
    for one in (vector, bm25):
        for rank, (row, _) in enumerate(one, 1):
            fused[row] = fused.get(row, 0.0) + 1 / (recipe.k + rank)
    order = sorted(fused, key=lambda row: -fused[row])
    room = 2 * pool if recipe.capacity and recipe.dual and vector and bm25 else pool
    rows = order[:room]
    rows += [row for row in case["rule_order"] if row in eligible and row not in rows][: room - len(rows)]
    if recipe.selective_rerank and case["has_vector"]:

        def key(row: int) -> float:
            if not recipe.rerank:
                return cosines[row] * multiplier[row] if row in cosines else -1.0
            norm = fused.get(row, 0.0) * (recipe.k + 1) / 2
            if row in case["unembedded"]:
                return norm * multiplier[row]
            return (0.5 * cosines.get(row, 0.0) + 0.5 * norm) * multiplier[row]

        rows = sorted(rows, key=lambda row: -key(row))
    return rows[: recipe.max_items]


@st.composite
def injection_cases(draw: st.DrawFn) -> dict:  # type: ignore[type-arg]
    count = draw(st.integers(1, 70))
    rows = list(range(count))
    scores = st.lists(st.integers(-4, 16), min_size=0, max_size=count)  # few values: many ties

    def ranked(scale: float, ids: list[int]) -> list[tuple[int, float]]:
        values = sorted(draw(scores), reverse=True)
        return [(row, value / scale) for row, value in zip(ids, values, strict=False)]

    unembedded = draw(st.sets(st.sampled_from(rows)))
    embedded = [row for row in draw(st.permutations(rows)) if row not in unembedded]
    return {
        "count": count,
        "has_vector": draw(st.booleans()),
        "eligible": draw(st.sets(st.sampled_from(rows))),
        "unembedded": unembedded,
        "multiplier": draw(st.lists(st.sampled_from([0.5, 1.0, 1.25]), min_size=count, max_size=count)),
        "rule_order": draw(st.permutations(rows)),
        "vector": ranked(16, embedded),
        "bm25": [(row, abs(value)) for row, value in ranked(1, draw(st.permutations(rows))) if value > 0],
    }


def kernel(cases: list[dict], recipe: InjectRecipe) -> list[list[int]]:  # type: ignore[type-arg]
    """A batch of cases over one corpus size through the kernel; each case is its own scope."""
    count = cases[0]["count"]
    order = np.full((len(cases), count), -1, np.int32)
    eligible = np.zeros((len(cases), count), np.bool_)
    for place, case in enumerate(cases):
        eligible[place, list(case["eligible"])] = True
        ruled = [row for row in case["rule_order"] if row in case["eligible"]]
        order[place, : len(ruled)] = ruled
    embedded = np.ones(count, np.bool_)
    embedded[list(cases[0]["unembedded"])] = False
    got = inject(
        Candidates.from_lists([case["vector"] for case in cases]),
        Candidates.from_lists([case["bm25"] for case in cases]),
        np.array([case["has_vector"] for case in cases]),
        embedded,
        Rules(eligible, np.array([case["multiplier"] for case in cases]), order, np.arange(len(cases))),
        recipe,
    )
    return [[int(row) for row in line if row >= 0] for line in got.final.ids]


@given(
    injection_cases(),
    st.sampled_from(COMBINATIONS),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from([1.0, 10.0, 60.0]),
)
@settings(deadline=None, max_examples=400)
def test_the_kernel_equals_the_plain_model(
    case: dict,  # type: ignore[type-arg]
    recipe: InjectRecipe,
    items: int,
    selective: bool,
    k: float,
) -> None:
    recipe = dataclasses.replace(recipe, max_items=items, selective_rerank=selective, k=k)
    assert kernel([case], recipe) == [model(case, recipe)]


@given(injection_cases(), st.sampled_from(COMBINATIONS), st.data())
@settings(deadline=None, max_examples=60)
def test_a_batch_equals_its_single_questions(case: dict, recipe: InjectRecipe, data: st.DataObject) -> None:  # type: ignore[type-arg]
    other = {**case, "vector": case["vector"][: data.draw(st.integers(0, 9))], "has_vector": data.draw(st.booleans())}
    third = {**case, "bm25": [], "eligible": set(list(case["eligible"])[:3])}
    batch = [case, other, third]
    assert kernel(batch, recipe) == [kernel([one], recipe)[0] for one in batch]


def test_known_answers_at_both_ends() -> None:
    assert verify([CASES / "injection.jsonl"]).by_kind() == {"injection": (40, 0)}


@given(injection_cases())
@settings(deadline=None, max_examples=40)
def test_capacity_without_dual_changes_nothing(case: dict) -> None:  # type: ignore[type-arg]
    plain = InjectRecipe("x", dual=False, capacity=False)
    assert kernel([case], plain) == kernel([case], dataclasses.replace(plain, capacity=True))


ROWS = Corpus.of(
    "main",
    [
        Memory(id="summary", type="summary", importance=1),
        Memory(id="preference", type="preference", importance=1),
        Memory(id="project-3", importance=3),
        Memory(id="project-5", importance=5),
        Memory(id="project-2", importance=2),
        Memory(id="history", type="history", importance=5),
        Memory(id="archived", importance=5, archived=True),
        Memory(id="forgotten", importance=5, forgotten=True),
        Memory(id="foreign", importance=5, agent_scope="other"),
        Memory(id="own", importance=4, quality=0.5, agent_scope="mine"),
        Memory(id="newer", importance=3, supersedes="project-3"),
    ],
)


def _order(recipe: InjectRecipe, scope: Scope) -> list[str]:
    rules = build_rules(ROWS, [scope], recipe)
    return [ROWS.memories[row].id for row in rules.order[0] if row >= 0]


def test_rule_order_without_a_scope() -> None:
    # Summaries, preferences, then importance * quality: 5 (row order), 5, 3, 3, own 4 * 0.5 = 2.
    # project-2 is under the threshold; history, archived and forgotten rows are never eligible.
    want = ["summary", "preference", "project-5", "foreign", "project-3", "newer", "own"]
    assert _order(InjectRecipe("x"), Scope()) == want


def test_soft_scope_weighs_rows() -> None:
    # Times 1.25 for own and unlabelled rows, 0.5 for foreign ones: project-5 6.25, project-3 and newer 3.75,
    # own 4 * 0.5 * 1.25 = 2.5, foreign 5 * 0.5 = 2.5 (equal: the earlier row first).
    want = ["summary", "preference", "project-5", "project-3", "newer", "foreign", "own"]
    assert _order(InjectRecipe("x", scope="soft"), Scope(agent="mine")) == want
    multiplier = build_rules(ROWS, [Scope(agent="mine")], InjectRecipe("x")).multiplier[0]
    assert multiplier[ROWS.index["foreign"]] == 0.5
    assert multiplier[ROWS.index["own"]] == multiplier[ROWS.index["project-3"]] == 1.25


def test_strict_scope_keeps_foreign_rows_out() -> None:
    assert "foreign" not in _order(InjectRecipe("x", scope="strict"), Scope(agent="mine"))
    assert "foreign" in _order(InjectRecipe("x", scope="strict"), Scope())  # the session's agent is not known
    assert "foreign" in _order(InjectRecipe("x", scope="off"), Scope(agent="mine"))


def test_superseded_rows_are_dropped_only_by_an_eligible_successor() -> None:
    assert "project-3" not in _order(InjectRecipe("x", drop_superseded=True), Scope())
    assert "project-3" in _order(InjectRecipe("x", drop_superseded=False), Scope())
    rows = Corpus.of("main", [Memory(id="old"), Memory(id="new", supersedes="old", archived=True)])
    rules = build_rules(rows, [Scope()], InjectRecipe("x", drop_superseded=True))
    assert rules.eligible.tolist() == [[True, False]]


def test_a_chain_drops_all_but_the_newest() -> None:
    rows = Corpus.of("main", [Memory(id="a"), Memory(id="b", supersedes="a"), Memory(id="c", supersedes="b")])
    rules = build_rules(rows, [Scope()], InjectRecipe("x", drop_superseded=True))
    assert rules.eligible.tolist() == [[False, False, True]]


def test_a_floor_lets_a_recipe_inject_nothing_semantic() -> None:
    case = {
        "count": 3,
        "has_vector": True,
        "eligible": set(),
        "unembedded": set(),
        "multiplier": [1.0] * 3,
        "rule_order": [],
        "vector": [(0, 0.30), (1, 0.10)],
        "bm25": [(1, 2.0)],
    }
    case["eligible"] = {0, 1}
    assert kernel([case], InjectRecipe("x")) == [[1, 0]]
    # Under the floor of 0.2: row 1 (cosine 0.10) is a hit of neither channel.
    assert kernel([case], InjectRecipe("x", floor=0.2)) == [[0]]
    assert kernel([case], InjectRecipe("x", floor=0.5)) == [[]]


@pytest.mark.parametrize("recipe", COMBINATIONS, ids=lambda one: one.name)
def test_an_empty_corpus_injects_nothing(recipe: InjectRecipe) -> None:
    empty = Corpus.of("main", [])
    got = inject(
        Candidates.empty(2),
        Candidates.empty(2),
        np.ones(2, np.bool_),
        np.ones(0, np.bool_),
        build_rules(empty, [Scope(), Scope()], recipe),
        recipe,
    )
    assert got.final.ids.shape[0] == 2
    assert not got.final.present.any()
