"""A sweep of 1,000 fusion recipes, five measures each, against ranx (`fuse` and `evaluate`) in the same process.

    make perf      or      python -m pytest --benchmark-only -s bench/perf/test_sweep_perf.py

Candidates are synthetic, of LoCoMo's size: 1,982 questions, lists of 100, about 1.4 relevant memories a question.
Ours is timed over the whole sweep, on one thread. ranx takes minutes for as much, so it is timed after its warm-up on
a handful of recipes, one for each method and pool of the sweep, and a mean recipe of it is set against a mean recipe of
ours. ranx runs on as many threads as it likes. Not timed on either side: getting the candidates and laying them out
(the input dictionaries of ranx, `prepare` of ours); both are printed. RECALLBENCH_PERF_QUICK=1 sweeps fewer recipes.

ranx knows no weights for rrf; its plain rrf stands in for weighted. It leaves the order of equals open, so its figures
are checked where no scores tie: wsum of min-max scores with unequal weights, first 20 rows (the last row of every list
is scaled to 0, and these tie). A sample of ours is checked against `fuse`, ties included.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from recallbench.evaluation.match import from_arrays
from recallbench.measures import compute_all, parse_measure
from recallbench.sweeps.score import sweep
from recallstack.ranking.candidates import Candidates
from recallstack.ranking.fusion import Fusion, Weights, fuse
from recallstack.ranking.kernels.counting import Pooled, Prepared, fast_available, prepare
from recallstack.ranking.specs import ChannelName

QUESTIONS, DEPTH, MEMORIES = 1982, 100, 588
QUICK = os.environ.get("RECALLBENCH_PERF_QUICK") == "1"
POOLS = (100,) if QUICK else (20, 40, 60, 80, 100)
STEPS = 4 if QUICK else 100
CHANNELS: dict[int, tuple[ChannelName, ...]] = {2: ("vector", "bm25"), 3: ("keyword", "vector", "bm25")}
MEASURES = {
    "nDCG@5": "ndcg@5",
    "nDCG@10": "ndcg@10",
    "R@20": "recall@20",
    "Success@20": "hit_rate@20",
    "RR@100": "mrr@100",
}
UNTIED = {"nDCG@5": "ndcg@5", "nDCG@10": "ndcg@10", "R@20": "recall@20", "Success@20": "hit_rate@20", "RR@20": "mrr@20"}
OURS = [parse_measure(name) for name in MEASURES]
ASKED = {"numpy": 80, "numba": 1000}
FIRST: dict[str, float] = {}
"""Seconds of the first call in this process. Both sides keep compiled code on disk: only with an empty NUMBA_CACHE_DIR
are these the times to compile."""


@dataclass
class Data:
    """Synthetic candidates. build: seconds that ranx's inputs took; runs: they, by pool."""

    channels: dict[ChannelName, Candidates]
    labels: np.ndarray[Any, np.dtype[np.int32]]
    grades: np.ndarray[Any, np.dtype[np.int16]]
    prepared: Prepared
    laid_out: float
    build: float = 0.0
    runs: dict[int, list[Any]] = field(default_factory=dict)
    qrels: Any = None


def synthetic(count: int) -> Data:
    """Lists whose scores share a signal; labelled memories stand out, so that recall is neither 0 nor 1."""
    rng = np.random.default_rng(20260501)
    held = 1 + rng.choice(5, size=QUESTIONS, p=[0.75, 0.15, 0.06, 0.03, 0.01])
    signal = rng.standard_normal((QUESTIONS, MEMORIES))
    labels = np.full((QUESTIONS, int(held.max())), -1, np.int32)
    for q, number in enumerate(held):
        labels[q, :number] = rng.choice(MEMORIES, number, replace=False)
        signal[q, labels[q, :number]] += 2.0
    channels = {}
    for name in CHANNELS[count]:
        scores = signal + rng.standard_normal(signal.shape)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH].astype(np.int32)
        channels[name] = Candidates(order, np.take_along_axis(scores, order, axis=1))
    start = time.perf_counter()
    prepared = prepare(channels, labels)
    return Data(channels, labels, np.where(labels >= 0, 2, -1).astype(np.int16), prepared, time.perf_counter() - start)


def recipes(count: int, equal: bool) -> list[Pooled]:
    """Half rrf, half min-max, over pools and over k or weights: 1,000 of them."""
    rng = np.random.default_rng(7)
    out: list[Pooled] = []
    for step in range(1, STEPS + 1):
        values = np.full(3, step / STEPS) if equal else rng.uniform(0.05, 1, 3)
        weights = Weights(**{name: float(value) for name, value in zip(CHANNELS[count], values, strict=False)})
        for pool in POOLS:
            out.append((Fusion("rrf", k=step, weighted=not equal, weights=weights), pool))
            out.append((Fusion("minmax", weights=weights), pool))
    return out


@pytest.fixture(scope="module", params=[2, 3], ids=["two channels", "three channels"])
def data(request: pytest.FixtureRequest) -> Data:
    return synthetic(request.param)


def with_ranx(data: Data) -> None:
    """ranx's inputs, once; its first fusion and evaluation is the cold start."""
    ranx = pytest.importorskip("ranx")
    if data.runs:
        return
    names = [f"q{q:04d}" for q in range(QUESTIONS)]
    start = time.perf_counter()
    data.qrels = ranx.Qrels(
        {name: {f"m{row}": 2 for row in one if row >= 0} for name, one in zip(names, data.labels.tolist(), strict=True)}
    )
    for pool in POOLS:
        data.runs[pool] = [
            ranx.Run(
                {
                    name: {f"m{row}": score for row, score in zip(ids, scores, strict=True)}
                    for name, ids, scores in zip(
                        names, one.ids[:, :pool].tolist(), one.scores[:, :pool].tolist(), strict=True
                    )
                }
            )
            for one in data.channels.values()
        ]
    data.build = time.perf_counter() - start
    start = time.perf_counter()
    for method in ("rrf", "minmax"):
        ranx_recipe(data, (Fusion(method), POOLS[0]))
    FIRST.setdefault("ranx", time.perf_counter() - start)


def ranx_fused(data: Data, recipe: Pooled) -> Any:
    """One recipe fused by ranx."""
    ranx = pytest.importorskip("ranx")
    fusion, pool = recipe
    runs = data.runs[pool]
    if fusion.method == "rrf":
        return ranx.fuse(runs, norm=None, method="rrf", params={"k": int(fusion.k)})
    weights = tuple(getattr(fusion.weights, name) for name in data.channels)
    return ranx.fuse(runs, norm="min-max", method="wsum", params={"weights": weights})


def ranx_recipe(data: Data, recipe: Pooled) -> None:
    """One recipe by ranx: fused and evaluated."""
    ranx = pytest.importorskip("ranx")
    ranx.evaluate(data.qrels, ranx_fused(data, recipe), list(MEASURES.values()))


def check(data: Data, asked: list[Pooled], got: np.ndarray[Any, Any], fast: bool) -> None:
    """A sample of recipes against sorting, and one of them against ranx where no scores tie."""
    for place in range(0, len(asked), max(1, len(asked) // 20)):
        fusion, pool = asked[place]
        rows = fuse({name: one.head(pool) for name, one in data.channels.items()}, fusion, len(data.channels) * pool)
        expected = compute_all(OURS, from_arrays(data.labels, data.grades, rows.ids)).mean(axis=1)
        np.testing.assert_allclose(got[place], expected, rtol=0, atol=1e-12)
    fusion, pool = asked[1]
    if fusion.weights.vector != fusion.weights.bm25:
        ranx = pytest.importorskip("ranx")
        ours = sweep(data.prepared, data.grades, [asked[1]], [parse_measure(name) for name in UNTIED], fast=fast)[0]
        theirs = ranx.evaluate(data.qrels, ranx_fused(data, asked[1]), list(UNTIED.values()))
        np.testing.assert_allclose(ours, list(theirs.values()), rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("equal", [True, False], ids=["equal weights", "unequal weights"])
@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_sweep_against_ranx(benchmark: Any, data: Data, engine: str, equal: bool) -> None:
    fast = engine == "numba"
    if fast and not fast_available():
        pytest.skip("numba is off")
    with_ranx(data)
    asked = recipes(len(data.channels), equal)

    def ours() -> np.ndarray[Any, np.dtype[np.float64]]:
        return sweep(data.prepared, data.grades, asked, OURS, fast=fast)

    kinds = [(method, pool) for method in ("rrf", "minmax") for pool in POOLS]
    handful = [next(one for one in asked if (one[0].method, one[1]) == kind) for kind in kinds]
    start = time.perf_counter()
    sweep(data.prepared, data.grades, handful[:1], OURS, fast=fast)
    FIRST.setdefault(engine, time.perf_counter() - start)
    start = time.perf_counter()
    for one in handful:
        ranx_recipe(data, one)
    theirs = (time.perf_counter() - start) / len(handful)
    check(data, asked, benchmark.pedantic(ours, rounds=3 if fast else 1), fast)
    mine = benchmark.stats.stats.median / len(asked)
    benchmark.extra_info.update(
        recipes=len(asked),
        ms_a_recipe=mine * 1e3,
        ranx_ms_a_recipe=theirs * 1e3,
        ratio=theirs / mine,
        ratio_asked=ASKED[engine],
        ranx_recipes_timed=len(handful),
        ranx_first_call_s=FIRST["ranx"],
        ranx_inputs_s=data.build,
        prepare_s=data.laid_out,
        first_call_s=FIRST[engine],
    )
    asked_of = "quick: too few recipes to compare with what is asked" if QUICK else f"{ASKED[engine]} asked"
    print(
        f"\nsweep, {len(data.channels)} channels, {'equal' if equal else 'unequal'} weights, {engine}: "
        f"{len(asked)} recipes in {mine * len(asked):.2f} s, {mine * 1e3:.3f} ms a recipe; ranx warm "
        f"{theirs * 1e3:.0f} ms a recipe (mean of {len(handful)} timed, scaled): {theirs / mine:,.0f} times "
        f"({asked_of})\n  once: prepare {data.laid_out:.2f} s, ranx inputs {data.build:.1f} s; "
        f"first call of the process {FIRST[engine]:.2f} s, of ranx {FIRST['ranx']:.1f} s"
    )
