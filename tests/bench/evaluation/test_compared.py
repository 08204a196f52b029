"""`compare` on results and data frames, against hand computations and the comparison of runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recallbench import Experiment, compare
from recallbench.evaluation.compared import Compared
from recallbench.runs.comparing import pair
from recallstack.errors import InputError

OLD, NEW = [1, 0.5, 0, 0.25], [1, 1, 0.5, 0.2]


def frame(measure: str = "RR", **columns: object) -> pd.DataFrame:
    rows = [
        {"system": system, "question": f"q{place}", "measure": measure, "value": value}
        for system, values in (("old", OLD), ("new", NEW))
        for place, value in enumerate(values)
    ]
    return pd.DataFrame(rows).assign(**columns)


def test_differences_are_paired() -> None:
    row = compare(frame(), "old", "new").table.iloc[0]
    # Differences 0, 1/2, 1/2, -1/20: mean 0.2375, sd 0.303795, t(0.975, 3) = 3.182446.
    assert row["difference"] == pytest.approx(0.2375)
    assert row["high"] - row["difference"] == pytest.approx(3.182446 * 0.303795 / 2, abs=1e-5)
    assert (row["better"], row["worse"], row["same"], row["n"]) == (2, 1, 1, 4)
    # Sign flips of (1/2, 1/2, -1/20): a sum as far from 0 as 0.95 is reached by +++-, ++-, their opposites: 4 of 8.
    assert row["p"] == pytest.approx(0.5)


def test_lower_is_better_measures_are_turned_round() -> None:
    found = compare(frame("Chars"), "old", "new")
    assert found.table["difference"].tolist() == [pytest.approx(-0.2375)]
    assert found.table["new"].tolist() == [pytest.approx(0.675)]


def test_rows_are_paired_by_name_not_by_place() -> None:
    shuffled = frame().sample(frac=1, random_state=3)
    pd.testing.assert_frame_equal(compare(shuffled, "old", "new").table, compare(frame(), "old", "new").table)


def test_what_counts_for_one_system_alone_has_no_say() -> None:
    counts = [True, True, True, False, True, True, True, True]
    assert compare(frame(counts=counts), "old", "new").table["n"].tolist() == [3]


def test_groups_and_clusters() -> None:
    colours = [("red",), ("red", "blue"), ("blue",), ()] * 2
    found = compare(frame(colour=colours, cluster=["a", "a", "b", "b"] * 2), "old", "new", by="colour").table
    assert found["group"].tolist() == ["red", "blue"]
    assert found["n"].tolist() == [2, 2]
    assert found["difference"].tolist() == [pytest.approx(0.25), pytest.approx(0.5)]
    assert found["clusters"].tolist() == [1, 2]


def test_p_values_are_corrected_over_the_table() -> None:
    twice = pd.concat([frame("RR"), frame("AP")])
    table = compare(twice, "old", "new").table
    assert table["p_holm"].tolist() == [1.0, 1.0]  # 2 * 0.5
    assert compare(twice, "old", "new", measures=["AP"]).table["measure"].tolist() == ["AP"]


def test_flips_are_the_worst_first_then_the_best() -> None:
    found = compare(frame(), "old", "new")
    assert found.flips(most=1)["question"].tolist() == ["q3", "q1"]
    assert found.flips(most=None)["question"].tolist() == ["q3", "q1", "q2"]
    with pytest.raises(InputError, match="'AP' was not compared; compared: RR"):
        found.flips("AP")


@pytest.fixture(scope="module")
def presets():
    return Experiment("kb-preretrieval", ["bm25-okapi", "rrf-k60"], ["nDCG@5", "R@20", "Leak"], baseline="bm25-okapi")


def test_a_result_gives_what_the_comparison_of_runs_gives(presets) -> None:
    """`recallbench compare` computes from arrays, this from data frames: the same figures."""
    table = compare(presets).table.set_index("measure")
    for row in pair(presets.evaluations[0], "bm25-okapi", "rrf-k60").rows:
        mine, theirs = table.loc[row.measure], row.comparison
        values = ["old", "new", "difference", "low", "high", "p", "p_holm", "better", "worse", "same", "n", "clusters"]
        assert mine[values].tolist() == pytest.approx(
            [
                row.a,
                row.b,
                theirs.interval.mean,
                theirs.interval.low,
                theirs.interval.high,
                theirs.p,
                row.holm,
                theirs.better,
                theirs.worse,
                theirs.same,
                theirs.interval.n,
                theirs.interval.clusters,
            ]
        )


def test_a_result_and_its_frame_give_the_same(presets, tmp_path) -> None:
    saved = tmp_path / "questions.parquet"
    presets.per_question.to_parquet(saved)
    again = compare(pd.read_parquet(saved), "bm25-okapi", "rrf-k60")
    pd.testing.assert_frame_equal(again.table, compare(presets).table)
    by = [compare(one, "bm25-okapi", "rrf-k60", by="category").table for one in (presets, pd.read_parquet(saved))]
    pd.testing.assert_frame_equal(*by)


def test_what_was_lost_stands_beside_the_question(presets) -> None:
    found = compare(presets)
    lost = presets.losses[(presets.losses["system"] == "rrf-k60") & (presets.losses["outcome"] != "kept")]
    told = found.questions[found.questions["measure"] == "R@20"].set_index("question")["lost"]
    first = lost.iloc[0]
    assert f"{first['memory']}: {first['outcome']}" in told[first["question"]]
    assert (told == "").any()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"old": "older"}, "no system 'older' in the results; there are: old, new"),
        ({}, "say what to compare with"),
        ({"old": "old", "measures": ["AP"]}, "no measure 'AP' in the results; there are: RR"),
        ({"old": "old", "by": "colour"}, "no column 'colour' to group by"),
        ({"old": "old", "new": "old"}, "'old' is compared with itself"),
    ],
)
def test_mistakes_get_one_line(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        compare(frame(), **arguments)


def test_frames_that_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="the frame has no column 'value'"):
        compare(frame().drop(columns="value"), "old", "new")
    with pytest.raises(InputError, match="has question 'q0' twice"):
        compare(pd.concat([frame(), frame()]), "old", "new")
    apart = frame()
    apart["question"] = apart["system"] + apart["question"]
    with pytest.raises(InputError, match="share no question that counts"):
        compare(apart, "old", "new")
    with pytest.raises(InputError, match="say which system to compare with 'old': new, third"):
        compare(pd.concat([frame(), frame().head(4).assign(system="third")]), "old")


def test_it_shows_itself() -> None:
    found = compare(frame(), "old", "new")
    assert isinstance(found, Compared)
    assert "new against old" in repr(found)
    assert "2 / 1 / 1" in repr(found)
    one = compare(frame()[lambda rows: rows["question"] == "q1"], "old", "new")
    assert "+0.500 |" in repr(one)  # one question has no interval
    assert np.isfinite(one.table["difference"]).all()
