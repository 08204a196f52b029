"""Five measures over 2,000 questions at depth 100, against pytrec_eval in the same process, outputs checked equal."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import pytrec_eval

from recallbench.evaluation.match import from_arrays, from_dicts
from recallbench.measures import compute_all, parse_measure

QUESTIONS, DEPTH, LABELS, CORPUS = 2_000, 100, 4, 5_000
NAMES = {"nDCG@10": "ndcg_cut_10", "RR": "recip_rank", "R@20": "recall_20", "P@10": "P_10", "AP": "map"}
MEASURES = [parse_measure(name) for name in NAMES]


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    ids = np.argsort(rng.random((QUESTIONS, CORPUS)), axis=1)[:, :DEPTH].astype(np.int32)
    labels = np.full((QUESTIONS, LABELS), -1, np.int32)
    grades = np.full((QUESTIONS, LABELS), -1, np.int16)
    for row in range(QUESTIONS):
        count = int(rng.integers(1, LABELS + 1))
        inside = rng.choice(ids[row], count, replace=False)
        outside = rng.choice(CORPUS, count)
        chosen = np.unique(np.where(rng.random(count) < 0.6, inside, outside))
        labels[row, : len(chosen)] = chosen
        grades[row, : len(chosen)] = rng.integers(1, 3, len(chosen))
    qrels = {
        f"q{row}": {
            f"d{label}": int(grade) for label, grade in zip(labels[row], grades[row], strict=True) if label >= 0
        }
        for row in range(QUESTIONS)
    }
    run = {f"q{row}": {f"d{one}": float(DEPTH - rank) for rank, one in enumerate(ids[row])} for row in range(QUESTIONS)}
    return {"ids": ids, "labels": labels, "grades": grades, "qrels": qrels, "run": run}


def ours_from_arrays(data: dict[str, Any]) -> np.ndarray:
    return compute_all(MEASURES, from_arrays(data["labels"], data["grades"], data["ids"]))


def ours_from_dicts(data: dict[str, Any]) -> np.ndarray:
    return compute_all(MEASURES, from_dicts(data["qrels"], data["run"])[1])


def theirs(data: dict[str, Any]) -> np.ndarray:
    found = pytrec_eval.RelevanceEvaluator(data["qrels"], set(NAMES.values())).evaluate(data["run"])
    return np.array([[found[f"q{row}"][name] for row in range(QUESTIONS)] for name in NAMES.values()])


def best_of(call: Any, data: dict[str, Any], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call(data)
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.parametrize(("name", "call"), [("arrays", ours_from_arrays), ("dictionaries", ours_from_dicts)])
def test_five_measures(benchmark: Any, data: dict[str, Any], name: str, call: Any) -> None:
    np.testing.assert_allclose(call(data), theirs(data), atol=1e-12)
    peer = best_of(theirs, data, 7)
    benchmark.group = "five measures, 2,000 questions, depth 100"
    benchmark.pedantic(call, args=(data,), rounds=15, warmup_rounds=2)
    ratio = peer / benchmark.stats.stats.min
    benchmark.extra_info.update(peer="pytrec_eval", peer_seconds=peer, times_faster=ratio)
    print(f"\nmeasures from {name}: {ratio:.1f} times as fast as pytrec_eval (best {peer * 1e3:.1f} ms)")
