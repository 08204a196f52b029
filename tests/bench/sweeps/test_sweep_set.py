"""Sweeps of a labelled set: the table equals single runs; what is reported was not chosen on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recallbench.cache.candidates import CandidateCache
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.evaluation.evaluate import evaluate
from recallbench.measures import parse_measure
from recallbench.sweeps.choose import sweep_set
from recallbench.sweeps.grid import Grid, weight_grid
from recallbench.systems.recipe import RecipeSystem
from recallstack.errors import InputError
from recallstack.ranking.fusion import Weights
from recallstack.ranking.recipes import SearchRecipe
from recallstack.ranking.rows import Corpus, Memory

WORDS = ["tide", "kiln", "moss", "iron", "dune", "lark", "fern", "salt", "mint", "pine", "coal", "reed"]
MEASURES = [parse_measure(name) for name in ("nDCG@5", "RR", "AllR@5", "Judged@5")]
GRID = Grid(
    SearchRecipe("sweep", channels=("keyword", "bm25", "recent")),
    methods=("rrf", "rrf-weighted", "minmax", "blend-auto", "blend-hybrid"),
    k=(1, 60),
    weights=(Weights(keyword=0, bm25=1, recent=0), Weights(keyword=0.5, bm25=0.2, recent=0.3)),
    pools=(3, 20),
    like_override=(False, True),
)


def labelled_set(count=24, **changes):
    """Two corpora that share ids, random texts of few words, hidden memories; every third question is dev."""
    rng = np.random.default_rng(5)
    corpora = {
        name: Corpus.of(
            name,
            [
                Memory(id=f"m{n}", content=" ".join(rng.choice(WORDS, 5)), archived=n % 7 == 3, forgotten=n == 4)
                for n in range(30)
            ],
        )
        for name in ("one", "two")
    }
    questions = []
    for q in range(count):
        found = rng.permutation(30)[:4].tolist()
        one = Question(
            id=f"q{q}",
            corpus="one" if q % 2 else "two",
            text=str(rng.choice(WORDS)) if q % 3 else " ".join(rng.choice(WORDS, 2)),
            relevant={f"m{found[0]}": 2, f"m{found[1]}": 1} if q % 5 else {},
            not_relevant=(f"m{found[2]}",),
            forbidden=(f"m{found[3]}",),
        )
        questions.append(one)
    made = [_changed(one, q, changes) for q, one in enumerate(questions)]
    return LabelledSet(SetInfo("made", default_rel=1, depth=8), corpora, tuple(made))


def _changed(question, number, changes):
    values = {name: getattr(question, name) for name in question.__struct_fields__}
    return Question(**{**values, **{name: value(number) for name, value in changes.items()}})


SPLIT = {"split": lambda q: ("dev", "test", "test")[q % 3]}
CLUSTERS = {"cluster": lambda q: f"c{q % 4}"}


def run_alone(labelled, recipe):
    """float64 `[M, Q]` and bool `[M, Q]`: one recipe as `recallbench run` measures it."""
    run = RecipeSystem(recipe, CandidateCache()).run(labelled, 8)
    got = evaluate(labelled, [run], MEASURES, 8, allow_zero=[recipe.name])
    return got.values[0], got.counts[0]


def mean(values, counts, part):
    return values[counts & part].mean()


def test_the_table_equals_single_runs():
    labelled = labelled_set()
    result = sweep_set(labelled, CandidateCache(), GRID, MEASURES)
    recipes = GRID.recipes()
    assert list(result.table["recipe"]) == [recipe.name for recipe in recipes]
    assert len(result.table) == 8 + 16 + 8 + 2 + 4  # rrf, weighted rrf, minmax, two blends
    for recipe, (_, row) in zip(recipes, result.table.iterrows(), strict=True):
        values, counts = run_alone(labelled, recipe)
        for m, measure in enumerate(MEASURES):
            assert row[str(measure)] == pytest.approx(values[m][counts[m]].mean(), abs=1e-12)
    assert result.table.loc[0, ["method", "k", "pool"]].tolist() == ["rrf", 1, 3]
    assert np.isnan(result.table.loc[0, "weight_bm25"])
    assert "weight_vector" not in result.table


def test_without_clusters_it_is_a_descriptive_map():
    result = sweep_set(labelled_set(), CandidateCache(), GRID, MEASURES)
    assert result.how == "descriptive"
    best = result.table["nDCG@5"].idxmax()
    assert result.chosen.name == result.table["recipe"][best]
    assert result.reported["RR"] == pytest.approx(result.table["RR"][best])
    assert "chosen and judged on the same 19 questions" in result.sentence  # 24 less the five without a relevant memory


def test_dev_chooses_and_test_reports():
    labelled = labelled_set(**SPLIT)
    result = sweep_set(labelled, CandidateCache(), GRID, MEASURES)
    dev = np.array([question.split == "dev" for question in labelled.questions])
    alone = [run_alone(labelled, recipe) for recipe in GRID.recipes()]
    on_dev = [mean(values[0], counts[0], dev) for values, counts in alone]
    best = int(np.argmax(on_dev))
    np.testing.assert_allclose(result.table["nDCG@5"], on_dev, atol=1e-12)
    assert result.how == "dev/test"
    assert result.chosen == GRID.recipes()[best]
    values, counts = alone[best]
    for m, measure in enumerate(MEASURES):
        assert result.reported[str(measure)] == pytest.approx(mean(values[m], counts[m], ~dev))
    assert "chosen of 38 recipes on dev" in result.sentence


def test_clusters_are_held_out_whole():
    labelled = labelled_set(**CLUSTERS)
    result = sweep_set(labelled, CandidateCache(), GRID, MEASURES)
    alone = [run_alone(labelled, recipe) for recipe in GRID.recipes()]
    cluster = np.arange(24) % 4
    held_out = []
    for one in range(4):
        best = int(np.argmax([mean(values[0], counts[0], cluster != one) for values, counts in alone]))
        values, counts = alone[best]
        held_out.extend(values[1][counts[1] & (cluster == one)])
    assert result.how == "cross-validation"
    assert result.reported["RR"] == pytest.approx(np.mean(held_out))
    assert "4 folds of whole clusters" in result.sentence


def test_many_clusters_share_ten_folds():
    labelled = labelled_set(cluster=lambda q: f"c{q // 2}" if q < 20 else None)
    result = sweep_set(labelled, CandidateCache(), GRID, MEASURES)
    assert "10 folds" in result.sentence  # ten clusters of two, and four questions that are each their own


def test_a_way_to_report_can_be_named():
    assert sweep_set(labelled_set(**SPLIT), CandidateCache(), GRID, MEASURES, how="descriptive").how == "descriptive"
    for how, need in (("dev/test", "dev and test"), ("cross-validation", "two clusters")):
        with pytest.raises(InputError, match=need):
            sweep_set(labelled_set(), CandidateCache(), GRID, MEASURES, how=how)


def test_a_lower_is_better_measure_chooses_the_lowest(monkeypatch):
    monkeypatch.setattr(type(MEASURES[1]), "higher_is_better", False)
    result = sweep_set(labelled_set(), CandidateCache(), GRID, MEASURES[1:])
    assert result.reported["RR"] == pytest.approx(result.table["RR"].min())


def test_user_mistakes_are_one_line():
    labelled = labelled_set()
    with pytest.raises(InputError, match="needs a measure"):
        sweep_set(labelled, CandidateCache(), GRID, [])
    with pytest.raises(InputError, match="holds no recipe"):
        sweep_set(labelled, CandidateCache(), replace(GRID, pools=()), MEASURES)
    with pytest.raises(InputError, match="unknown method 'rff'"):
        sweep_set(labelled, CandidateCache(), replace(GRID, methods=("rff",)), MEASURES)
    with pytest.raises(InputError, match="pool is 0"):
        sweep_set(labelled, CandidateCache(), replace(GRID, pools=(0,)), MEASURES)
    with pytest.raises(InputError, match="Leak needs"):
        sweep_set(labelled, CandidateCache(), GRID, [*MEASURES, parse_measure("Leak")])
    with pytest.raises(InputError, match="no question to sweep"):
        sweep_set(replace(labelled, questions=()), CandidateCache(), GRID, MEASURES)
    with pytest.raises(InputError, match="no question to choose on counts in nDCG@5"):
        sweep_set(labelled_set(relevant=lambda q: {}), CandidateCache(), GRID, MEASURES)


def test_weights_of_a_grid_sum_to_one():
    """Two channels in four steps: 0, 1/4, 2/4, 3/4, 1 of the first."""
    grid = weight_grid(["bm25", "keyword"], 4)
    assert [(one.keyword, one.bm25) for one in grid] == [(0, 1), (0.25, 0.75), (0.5, 0.5), (0.75, 0.25), (1, 0)]
    assert all(one.vector == one.entity == one.recent == 0 for one in grid)
    with pytest.raises(InputError, match="at least 1 step"):
        weight_grid(["bm25"], 0)


def test_the_default_grid_names_every_recipe_once():
    recipes = Grid().recipes()
    assert len({recipe.name for recipe in recipes}) == len(recipes) == 4 * (7 + 7 * 21 + 21)
    assert recipes[0].name == "rrf-k1-pool10"
