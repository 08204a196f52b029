"""Measures against the known answers, pytrec_eval and ir-measures, and by property."""

from __future__ import annotations

import json
import math
import random
import shutil

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import CASES

from recallbench.evaluation.match import from_dicts, from_lists
from recallbench.measures import compute_all, parse_measure, parse_measures
from recallbench.measures.base import Measure
from recallbench.measures.ranked import RankedLabels
from recallbench.measures.tokens import estimate_tokens
from recallstack.errors import InputError

Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


@pytest.mark.parametrize("line", (CASES / "measures.jsonl").read_text(encoding="utf-8").splitlines())
def test_known_answers(line: str) -> None:
    case = json.loads(line)
    questions, ranked = from_dicts(case["qrels"], case["run"])
    for name, expected in case["expected"].items():
        got = dict(zip(questions, parse_measure(name).compute(ranked), strict=True))
        for question, value in expected.items():
            assert got[question] == pytest.approx(value, abs=1e-9), (name, question)


def made(seed: int, questions: int = 40) -> tuple[Qrels, Run]:
    """Qrels and a run whose scores differ by far more than float32 can hold."""
    rng = random.Random(seed)
    qrels: Qrels = {}
    run: Run = {}
    for q in range(questions):
        documents = [f"d{i:03d}" for i in range(60)]
        labelled = rng.sample(documents, rng.randint(1, 12))
        qrels[f"q{q}"] = {name: rng.choice([0, 1, 2, 3]) for name in labelled}
        returned = rng.sample(documents, rng.randint(1, 40))
        run[f"q{q}"] = {name: 100.0 - rank for rank, name in enumerate(returned)}
    return qrels, run


# Our name, pytrec_eval's, and the least relevant grade (pytrec_eval's relevance_level).
TREC = [
    ("nDCG@5", "ndcg_cut_5", 1),
    ("nDCG@10", "ndcg_cut_10", 1),
    ("nDCG", "ndcg", 1),
    ("AP", "map", 1),
    ("AP@10", "map_cut_10", 1),
    ("RR", "recip_rank", 1),
    ("P@5", "P_5", 1),
    ("R@10", "recall_10", 1),
    ("Success@5", "success_5", 1),
    ("Rprec", "Rprec", 1),
    ("AP(rel=2)", "map", 2),
    ("P(rel=2)@5", "P_5", 2),
    ("R(rel=2)@10", "recall_10", 2),
    ("RR(rel=2)", "recip_rank", 2),
    ("Success(rel=2)@5", "success_5", 2),
    ("Rprec(rel=2)", "Rprec", 2),
]


@pytest.mark.parametrize(("name", "trec", "level"), TREC)
@pytest.mark.parametrize("seed", range(5))
def test_equal_to_pytrec_eval(name: str, trec: str, level: int, seed: int) -> None:
    qrels, run = made(seed)
    want = pytrec_eval.RelevanceEvaluator(qrels, {trec}, relevance_level=level).evaluate(run)
    questions, ranked = from_dicts(qrels, run)
    got = dict(zip(questions, parse_measure(name).compute(ranked), strict=True))
    for question, values in want.items():
        assert got[question] == pytest.approx(values[trec], abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["RR@10", "Judged@10", "Success@5", "nDCG@10", "R@5", "P@5", "AP@20"])
def test_equal_to_ir_measures_with_its_own_names(name: str, seed: int) -> None:
    qrels, run = made(seed)
    theirs = ir_measures.parse_measure(name)
    want = {one.query_id: one.value for one in ir_measures.iter_calc([theirs], qrels, run)}
    questions, ranked = from_dicts(qrels, run)
    ours = parse_measure(name)
    got = dict(zip(questions, ours.compute(ranked), strict=True))
    for question, value in want.items():
        assert got[question] == pytest.approx(value, abs=1e-9)
    assert ir_measures.parse_measure(str(ours)) == theirs


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval.pl, the oracle of ir-measures, needs perl")
def test_exponential_gain_equals_gdeval() -> None:
    """ir-measures runs TREC's gdeval.pl for this one; it takes numbers as questions and prints five decimals."""
    qrels, run = made(9)
    numbered = {name: str(i + 1) for i, name in enumerate(qrels)}
    theirs = ir_measures.parse_measure("nDCG(dcg='exp-log2')@5")
    got = ir_measures.iter_calc(
        [theirs],
        {numbered[name]: one for name, one in qrels.items()},
        {numbered[name]: one for name, one in run.items()},
    )
    want = {one.query_id: one.value for one in got}
    questions, ranked = from_dicts(qrels, run)
    ours = dict(zip(questions, parse_measure("nDCG(dcg='exp-log2')@5").compute(ranked), strict=True))
    compared = 0
    for question, value in ours.items():
        if numbered[question] in want:
            assert value == pytest.approx(want[numbered[question]], abs=6e-6)
            compared += 1
    assert compared > 30


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("nDCG@10", "nDCG@10"),
        (" Success( rel = 2 )@5", "Success(rel=2)@5"),
        ("nDCG(dcg='log2')@5", "nDCG@5"),
        ('nDCG(dcg="exp-log2")', "nDCG(dcg='exp-log2')"),
        ("RR", "RR"),
        ("Leak", "Leak"),
        ("Leak@5", "Leak@5"),
        ("AllR(rel=1)@3", "AllR(rel=1)@3"),
    ],
)
def test_names_parse_and_print(text: str, canonical: str) -> None:
    measure = parse_measure(text)
    assert str(measure) == canonical
    assert parse_measure(canonical) == measure


def test_several_names_in_one_text() -> None:
    assert [str(one) for one in parse_measures("nDCG@10, R@20 Success(rel=2)@5,RR")] == [
        "nDCG@10",
        "R@20",
        "Success(rel=2)@5",
        "RR",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nDGC@5", "did you mean nDCG"),
        ("R@0", "the cutoff must be at least 1"),
        ("R@-3", "the cutoff must be at least 1"),
        ("R", "R needs a cutoff, for example R@5"),
        ("Rprec@5", "takes no cutoff"),
        ("R(rel=0)@5", "rel must be at least 1"),
        ("R(rel=x)@5", "rel must be a whole number"),
        ("R(level=2)@5", "unknown parameter 'level'; it takes rel"),
        ("Leak(rel=2)", "it takes none"),
        ("nDCG(dcg='ln')@5", "use 'log2' or 'exp-log2'"),
        ("R@5@6", "not of the form"),
        ("", "not of the form"),
        ("zzz@5", "unknown measure 'zzz'"),
    ],
)
def test_a_bad_name_gets_one_line(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_measure(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


ALL = ["nDCG@5", "AP", "AP@3", "RR", "RR@2", "R@3", "P@3", "Success@3", "Rprec", "AllR@3", "Judged@3"]
labels = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), max_size=8)
lists = st.permutations("abcdefghij").flatmap(lambda ids: st.integers(0, 10).map(lambda n: list(ids[:n])))


@given(labels, lists)
@settings(deadline=None)
def test_values_lie_between_0_and_1(one: dict[str, int], returned: list[str]) -> None:
    ranked = from_lists([one], [returned])
    for name in ALL:
        assert 0 <= parse_measure(name).compute(ranked)[0] <= 1 + 1e-12


@given(labels, lists)
@settings(deadline=None)
def test_recall_and_success_never_fall_with_the_cutoff(one: dict[str, int], returned: list[str]) -> None:
    ranked = from_lists([one], [returned])
    for title in ("R", "Success", "AllR", "RR", "AP"):
        values = [parse_measure(f"{title}@{k}").compute(ranked)[0] for k in range(1, 11)]
        assert values == sorted(values)


@given(labels, lists)
@settings(deadline=None)
def test_the_order_of_the_labels_does_not_matter(one: dict[str, int], returned: list[str]) -> None:
    turned = dict(reversed(one.items()))
    for name in ALL:
        a = parse_measure(name).compute(from_lists([one], [returned]))
        b = parse_measure(name).compute(from_lists([turned], [returned]))
        assert a == pytest.approx(b, abs=1e-12)


@given(st.lists(st.tuples(labels, lists), min_size=1, max_size=5))
@settings(deadline=None)
def test_a_batch_equals_its_single_questions(batch: list[tuple[dict[str, int], list[str]]]) -> None:
    measures = [parse_measure(name) for name in ALL]
    whole = compute_all(measures, from_lists([one for one, _ in batch], [ids for _, ids in batch]))
    single = [compute_all(measures, from_lists([one], [ids]))[:, 0] for one, ids in batch]
    assert whole == pytest.approx(np.array(single).T, abs=1e-12)


def test_questions_without_a_relevant_memory_do_not_count() -> None:
    # all([]) is 1 and any([]) is 0: neither may enter a mean.
    ranked = from_lists([{}, {"a": 0}, {"a": 1}], [["a"], ["a"], ["a"]])
    for name in ("R@5", "AllR@5", "Success@5", "nDCG@5", "RR", "AP", "P@5", "Rprec"):
        measure = parse_measure(name)
        assert measure.counts(ranked).tolist() == [False, False, True]
        assert measure.compute(ranked)[:2].tolist() == [0, 0]


def test_any_hit_is_not_recall() -> None:
    # One of two relevant memories in the top 5: any-hit 1, recall 1/2, every memory 0.
    ranked = from_lists([{"a": 1, "b": 1}], [["a", "c"]])
    assert [parse_measure(n).compute(ranked)[0] for n in ("Success@5", "R@5", "AllR@5")] == [1, 0.5, 0]


def test_the_set_states_which_grade_counts() -> None:
    ranked = from_lists([{"a": 1, "b": 2}], [["a"]], default_rel=2)
    assert parse_measure("R@5").compute(ranked)[0] == 0
    assert parse_measure("R(rel=1)@5").compute(ranked)[0] == 0.5


def facts(**more: object) -> RankedLabels:
    base = from_lists([{"a": 1}, {"a": 1}], [["a"], ["b"]])
    values = {name: getattr(base, name) for name in ("ranks", "grades", "returned", "failed")}
    return RankedLabels(**{**values, **more})  # type: ignore[arg-type]


def test_leak_counts_a_forbidden_memory_anywhere() -> None:
    ranked = facts(forbidden=np.array([[7, -1], [0, 0]], np.int32))
    assert parse_measure("Leak").compute(ranked).tolist() == [1, 0]
    assert parse_measure("Leak@5").compute(ranked).tolist() == [0, 0]
    assert parse_measure("Leak").counts(ranked).tolist() == [True, True]
    assert parse_measure("Leak").counts(facts(forbidden=np.array([[-1], [3]], np.int32))).tolist() == [False, True]


def test_stale_by_hand() -> None:
    # Old at 2 and new at 4: stale. Old at 2, new not returned: stale. New at 1, old at 3: fine. Old not returned: fine.
    for old, new, want in ((2, 4, 1), (2, 0, 1), (3, 1, 0), (0, 5, 0)):
        ranked = facts(superseded=np.array([[old], [-1]], np.int32), successor=np.array([[new], [-1]], np.int32))
        assert parse_measure("Stale").compute(ranked).tolist() == [want, 0]
        assert parse_measure("Stale").counts(ranked).tolist() == [True, False]


def test_abstain_asks_only_what_nothing_answers() -> None:
    ranked = facts(expects_empty=np.array([True, False]), semantic=np.array([0, 0], np.int32))
    assert parse_measure("Abstain").counts(ranked).tolist() == [True, False]
    assert parse_measure("Abstain").compute(ranked).tolist() == [1, 0]
    brought = facts(expects_empty=np.array([True, False]), semantic=np.array([2, 0], np.int32))
    assert parse_measure("Abstain").compute(brought).tolist() == [0, 0]


def test_costs_are_lower_is_better_and_billed_by_round() -> None:
    ranked = facts(chars=np.array([40.0, 0]), tokens=np.array([10.0, 0]), rounds=np.array([3.0, 2]))
    assert parse_measure("Chars").compute(ranked).tolist() == [40, 0]
    assert parse_measure("BilledTokens").compute(ranked).tolist() == [30, 0]
    assert not parse_measure("Tokens").higher_is_better


@pytest.mark.parametrize("name", ["Leak", "Stale", "Abstain", "Chars", "Tokens", "BilledTokens"])
def test_a_measure_says_what_it_lacks(name: str) -> None:
    with pytest.raises(InputError, match=f"measure {name} needs"):
        parse_measure(name).compute(facts())


def test_a_failed_question_scores_the_worst_value() -> None:
    ranked = facts(
        failed=np.array([True, True]),
        forbidden=np.array([[0], [0]], np.int32),
        chars=np.zeros(2),
    )
    for name, worst in (("R@5", 0), ("nDCG@5", 0), ("Leak", 1), ("Chars", math.inf)):
        assert parse_measure(name).compute(ranked).tolist() == [worst, worst]
        assert parse_measure(name).worst == worst


def test_tokens_by_hand() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("abcd") == 1
    assert estimate_tokens("abcde") == 2
    assert estimate_tokens("发布窗口") == 4
    assert estimate_tokens("k 从 60 改为 10") == 3 + 3  # three ideographs; nine other characters make three


class Half(Measure):
    """A measure of another package, for the test."""

    title = "Half"
    denominator = "all questions"

    def values(self, ranked: RankedLabels) -> np.ndarray:  # type: ignore[type-arg]
        return np.full(ranked.questions, 0.5)

    def counts(self, ranked: RankedLabels) -> np.ndarray:  # type: ignore[type-arg]
        return np.ones(ranked.questions, np.bool_)


def test_measures_come_from_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint, EntryPoints

    points = EntryPoints(
        [
            EntryPoint("Half", "test_measures:Half", "recallbench.measures"),
            EntryPoint("Gone", "no_such_module:Gone", "recallbench.measures"),
            EntryPoint("Other", "json:loads", "recallbench.measures"),
        ]
    )
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **asked: points.select(**asked))
    monkeypatch.setitem(__import__("sys").modules, "test_measures", __import__("sys").modules[__name__])
    assert parse_measure("Half@3").compute(facts()).tolist() == [0.5, 0.5]
    assert str(parse_measure("Half@3")) == "Half@3"
    with pytest.raises(InputError, match="cannot load no_such_module:Gone"):
        parse_measure("Gone")
    with pytest.raises(InputError, match="not a subclass"):
        parse_measure("Other")
