"""Maps over k and pool: each cell equals the recipe run alone, intervals those of its questions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recallbench import Experiment, load, sweep_map
from recallbench.cache.candidates import CandidateCache
from recallbench.datasets.select import select, split_by_cluster
from recallbench.statistics.intervals import cluster_intervals, mean_interval
from recallbench.sweeps.maps import SweepMap
from recallstack.errors import InputError
from recallstack.ranking.fusion import Fusion
from recallstack.ranking.recipes import SearchRecipe

CACHE = CandidateCache()
K, POOLS, MEASURES = (1, 10, 60), (10, 40), ("R@20", "nDCG@5", "RR")


@pytest.fixture(scope="module")
def found():
    return sweep_map("kb-preretrieval", measures=MEASURES, k=K, pools=POOLS, cache=CACHE)


def recipe(k: float, pool: int) -> SearchRecipe:
    return SearchRecipe(f"{k}-{pool}", channels=("vector", "bm25"), fusion=Fusion("rrf", k=k), pool=pool)


@pytest.fixture(scope="module")
def alone():
    """The same recipes and the channels, as `recallbench run` measures them."""
    systems = [recipe(k, pool) for pool in POOLS for k in K]
    return Experiment("kb-preretrieval", [*systems, "vector-lsa", "bm25-okapi"], MEASURES, depth=20, cache=CACHE)


@pytest.mark.parametrize("measure", MEASURES)
def test_cells_and_channels_are_the_recipes_run_alone(found, alone, measure: str) -> None:
    wanted = alone.table().query("measure == @measure").set_index("system")
    table = found.table(measure)
    assert table["k"].tolist() == [1, 10, 60, 1, 10, 60]
    assert table["pool"].tolist() == [10, 10, 10, 40, 40, 40]
    for row in table.itertuples():
        one = wanted.loc[f"{row.k:g}-{row.pool}"]
        assert (row.mean, row.low, row.high) == pytest.approx((one["mean"], one["low"], one["high"]))
        assert (row.n, row.clusters) == (one["n"], one["clusters"])
    for channel, name in (("vector", "vector-lsa"), ("bm25", "bm25-okapi")):
        interval, one = found.channel(channel, measure), wanted.loc[name]
        assert (interval.mean, interval.low) == pytest.approx((one["mean"], one["low"]))


def test_differences_are_those_of_the_questions(found, alone) -> None:
    result = replace(alone, baseline="bm25-okapi").compare().set_index(["system", "measure"])
    table = found.table("nDCG@5", against="bm25")
    one = result.loc["60-40", "nDCG@5"]
    row = table[(table["k"] == 60) & (table["pool"] == 40)].iloc[0]
    values = row[["difference", "difference_low", "difference_high"]].tolist()
    assert values == pytest.approx(one[["mean", "low", "high"]].tolist())
    interval = found.difference((60, 40), "bm25", "nDCG@5")
    assert (interval.mean, interval.low, interval.high) == pytest.approx(tuple(values))


def test_splits_are_those_of_the_set(found) -> None:
    half = select(load("kb-preretrieval"), split="test")
    wanted = Experiment(half, [recipe(10, 40)], MEASURES, depth=20, cache=CACHE).table().set_index("measure")
    for measure in MEASURES:
        one = found.cell((10, 40), measure, "test")
        assert (one.mean, one.low, one.n) == pytest.approx(tuple(wanted.loc[measure, ["mean", "low", "n"]]))


def test_the_best_is_the_first_of_the_greatest(found) -> None:
    for measure in MEASURES:
        for split in (None, "dev", "test"):
            means = found.table(measure, split)["mean"].to_numpy()
            first = int(np.argmax(means.round(12)))
            assert found.best(measure, split) == (K[first % 3], POOLS[first // 3])


def test_held_out_choices_never_see_their_cluster() -> None:
    """Recomputed with one map a cluster, made without it."""
    whole = select(load("kb-preretrieval"), split="dev")
    found = sweep_map(whole, measures=("nDCG@5",), k=K, pools=POOLS, cache=CACHE)
    interval, cells = found.held_out("bm25")
    counted = [q for q in whole.questions if max(q.relevant.values(), default=0) > 0]
    clusters = list(dict.fromkeys(q.cluster for q in whole.questions if q in counted))
    assert len(cells) == len(clusters)
    by_question = {}
    for place in (0, 7, len(clusters) - 1):
        rest = replace(whole, questions=tuple(q for q in whole.questions if q.cluster != clusters[place]))
        assert cells[place] == sweep_map(rest, measures=("nDCG@5",), k=K, pools=POOLS, cache=CACHE).best()
    systems = [recipe(*cell) for cell in dict.fromkeys(cells)]
    values = Experiment(whole, [*systems, "bm25-okapi"], ["nDCG@5"], depth=20, cache=CACHE).per_question
    at = values[values["counts"]].set_index(["system", "question"])["value"]
    for question in counted:
        k, pool = cells[clusters.index(question.cluster)]
        by_question[question.id] = at[f"{k}-{pool}", question.id] - at["bm25-okapi", question.id]
    wanted = mean_interval(np.array(list(by_question.values())), [q.cluster for q in counted])
    assert (interval.mean, interval.low, interval.n) == pytest.approx((wanted.mean, wanted.low, wanted.n))


def test_a_cluster_has_no_say_in_its_own_choice() -> None:
    """By hand: k = 60 is best on all questions thanks to cluster 2 alone, so that cluster 2 is given k = 1."""
    made = SweepMap(
        "made",
        ("vector", "bm25"),
        ("RR",),
        (1, 60),
        (20,),
        (None, None, None, None),
        np.array([[[[3.0, 3, 3, 0]], [[2.0, 2, 9, 0]]]]),  # k = 1 and k = 60: sums over clusters 0 to 3
        np.array([[10, 10, 10, 0]]),  # nothing counts in cluster 3
        {"vector": np.array([[1.0, 1, 1, 0]]), "bm25": np.array([[0.0, 0, 0, 0]])},
        np.array([True]),
    )
    assert made.best() == (60, 20)
    interval, cells = made.held_out("vector")
    assert cells == ((60, 20), (60, 20), (1, 20))
    # Differences to the channel: 2 - 1, 2 - 1, 3 - 1 over 30 questions.
    assert interval.mean == pytest.approx(4 / 30)
    assert (interval.n, interval.clusters) == (30, 3)
    with pytest.raises(InputError, match="needs at least two clusters"):
        replace(made, counted=np.array([[10, 0, 0, 0]])).held_out("vector")


def test_lower_is_better_is_turned_round() -> None:
    found = sweep_map("mneme-memories", measures=("nDCG@5",), k=(1, 60), pools=(20,), cache=CACHE)
    turned = replace(found, higher=~found.higher)
    assert turned.best() != found.best()
    assert turned.difference((1, 20), (60, 20)).mean == -found.difference((1, 20), (60, 20)).mean
    assert turned.best_channel() != found.best_channel()


def test_intervals_of_sums_are_those_of_the_values() -> None:
    rng = np.random.default_rng(2)
    values, place = rng.normal(size=(3, 40)), rng.integers(0, 7, 40)
    sums = np.stack([np.bincount(place, weights=row, minlength=8) for row in values])  # the eighth is empty
    mean, half = cluster_intervals(sums, np.bincount(place, minlength=8))
    for row, m, h in zip(values, mean, half, strict=True):
        one = mean_interval(row, [str(c) for c in place])
        assert (m, m - h, m + h) == pytest.approx((one.mean, one.low, one.high))
    assert np.isnan(cluster_intervals(sums[:, :1], np.array([5]))[1]).all()
    assert np.isnan(cluster_intervals(np.zeros((1, 2)), np.array([0, 0]))[0]).all()


def test_questions_without_a_cluster_are_clusters_of_their_own() -> None:
    whole = load("kb-preretrieval")
    loose = replace(whole, questions=tuple(_loose(q) for q in whole.questions[:30]))
    found = sweep_map(loose, measures=("RR",), k=(60,), pools=(20,), cache=CACHE)
    wanted = Experiment(loose, [recipe(60, 20)], ["RR"], depth=20, cache=CACHE).table().iloc[0]
    one = found.cell((60, 20))
    assert (one.mean, one.low, one.high) == pytest.approx(tuple(wanted[["mean", "low", "high"]]))


def _loose(question):
    from msgspec import structs

    return structs.replace(question, cluster=None, split=None)


def test_a_set_without_splits_is_split_by_cluster() -> None:
    whole = load("kb-preretrieval")
    bare = replace(whole, questions=tuple(_split(q) for q in whole.questions))
    names = sorted({q.cluster for q in bare.questions})
    halves = split_by_cluster(bare, dev=names[::2])
    assert {q.cluster for q in halves.questions if q.split == "dev"} == set(names[::2])
    assert {q.cluster for q in halves.questions if q.split == "test"} == set(names[1::2])
    assert halves.labels_hash != bare.labels_hash
    assert [q.text for q in halves.questions] == [q.text for q in bare.questions]
    for dev, says in (([], "both splits need"), (names, "both splits need"), (["zz"], "of cluster 'zz'")):
        with pytest.raises(InputError, match=says):
            split_by_cluster(bare, dev=dev)
    with pytest.raises(InputError, match="has no cluster"):
        split_by_cluster(replace(bare, questions=(*bare.questions, _loose(bare.questions[0]))), dev=names[:1])


def _split(question):
    from msgspec import structs

    return structs.replace(question, split=None)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"k": ()}, "at least one k"),
        ({"measures": ("R@50",)}, r"depth 20 is below the cutoff of a measure \(50\)"),
        ({"measures": ("zzz",)}, "unknown measure"),
    ],
)
def test_mistakes_get_one_line(arguments, says: str) -> None:
    with pytest.raises(InputError, match=says):
        sweep_map("kb-preretrieval", cache=CACHE, **arguments)


def test_what_the_map_does_not_hold(found) -> None:
    for call, says in (
        (lambda: found.table("AP"), "'AP' is not in the map; it holds R@20, nDCG@5, RR"),
        (lambda: found.cell((2, 40)), "k 2 at pool 40 is not in the map"),
        (lambda: found.channel("recent"), "channel 'recent' is not in the map; it holds vector, bm25"),
    ):
        with pytest.raises(InputError, match=says):
            call()
    bare = replace(found, splits=(None,) * len(found.splits))
    with pytest.raises(InputError, match="no question is of split 'dev'"):
        bare.best(split="dev")


def test_it_shows_itself(found) -> None:
    assert "3 values of k × 2 pool depths over vector, bm25" in repr(found)
    assert "vector alone" in repr(found)
