"""Charts: valid Vega-Lite that draws the figures of the tables, and no text of a memory."""

from __future__ import annotations

import json

import pytest

from recallbench import Experiment, ablation, compare, plots, sweep_map
from recallbench.cache.candidates import CandidateCache
from recallstack.errors import InputError

CACHE = CandidateCache()
SETS = ["kb-preretrieval", "mneme-memories"]


@pytest.fixture(scope="module")
def result():
    systems = ["bm25-okapi", "vector-lsa", "rrf-k60"]
    return Experiment(SETS, systems, ["nDCG@5", "Leak"], baseline="bm25-okapi", cache=CACHE)


@pytest.fixture(scope="module")
def one():
    return Experiment("kb-preretrieval", ["bm25-okapi", "rrf-k60"], ["nDCG@5"], baseline="bm25-okapi", cache=CACHE)


@pytest.fixture(scope="module")
def sixteen():
    return ablation(Experiment(SETS, ["presets:inject"], ["nDCG@5"], cache=CACHE))


@pytest.fixture(scope="module")
def found():
    return sweep_map("kb-preretrieval", measures=["R@20", "nDCG@5"], k=(1, 10, 60), pools=(20, 100), cache=CACHE)


def rows(chart, layer: int | None = None) -> list[dict]:
    """The data of a chart (of one of its layers), after Altair has checked it against the Vega-Lite schema."""
    spec = chart.to_dict()
    parts = spec.get("layer", [])
    held = parts[layer or 0].get("data") if parts else None
    return spec["datasets"][(held or spec["data"])["name"]]


def test_means_are_those_of_the_table_best_first(one) -> None:
    drawn = rows(plots.plot_means(one))
    table = one.table().sort_values("mean", ascending=False)
    assert [row["system"] for row in drawn] == table["system"].tolist()
    assert [row["mean"] for row in drawn] == pytest.approx(table["mean"].tolist())
    assert [row["low"] for row in drawn] == pytest.approx(table["low"].tolist())


def test_lower_is_better_puts_the_least_first(result) -> None:
    means = [row["mean"] for row in rows(plots.plot_means(result, "Leak"))]
    assert means == sorted(means)


def test_several_sets_are_named(result) -> None:
    names = {row["row"] for row in rows(plots.plot_means(result, "nDCG@5"))}
    assert "kb-preretrieval · rrf-k60" in names
    assert len(names) == 6


def test_groups_show_their_size(one) -> None:
    chart = plots.plot_means(one, by="lang")
    sizes = one.table("lang").drop_duplicates("group").set_index("group")["n"]
    assert {row["row"] for row in rows(chart)} == {f"{group} ({n})" for group, n in sizes.items()}


def test_differences_are_paired_with_a_line_at_zero(one) -> None:
    chart = plots.plot_differences(one)
    assert rows(chart, 0) == [{"at": 0.0}]
    wanted = one.compare().iloc[0]
    assert rows(chart, 1)[0]["mean"] == pytest.approx(wanted["mean"])
    compared = plots.plot_differences(compare(one, by="lang"))
    assert {row["group"] for row in rows(compared, 1)} == {"zh", "en"}
    assert all(row["row"].endswith(")") for row in rows(compared, 1))
    with pytest.raises(InputError, match=r"give `by` to compare"):
        plots.plot_differences(compare(one), by="lang")


def test_flips_are_the_questions_that_changed(one) -> None:
    drawn = rows(plots.plot_flips(compare(one)))
    table = compare(one).table.iloc[0]
    assert len(drawn) == table["better"] + table["worse"]
    changes = [row["difference"] for row in drawn]
    assert changes == sorted(changes, reverse=True)
    twin = compare(
        Experiment("kb-preretrieval", ["rrf-k60", "rrf-k60-like-override"], ["Stale"], cache=CACHE), "rrf-k60"
    )
    with pytest.raises(InputError, match="no question changed in Stale"):
        plots.plot_flips(twin)


def test_losses_add_up_to_all_relevant_memories(one) -> None:
    drawn = rows(plots.plot_losses(one))
    counted = one.losses[one.losses["grade"] >= 2]
    for system in ("bm25-okapi", "rrf-k60"):
        mine = [row for row in drawn if row["row"] == system]
        assert sum(row["share"] for row in mine) == pytest.approx(1)
        kept = (counted[counted["system"] == system]["outcome"] == "kept").sum()
        assert next(row["memories"] for row in mine if row["outcome"] == "kept") == kept
    assert sum(row["memories"] for row in rows(plots.plot_losses(one, rel=1))) == len(one.losses)


def test_effects_by_set(sixteen) -> None:
    drawn = rows(plots.plot_effects(sixteen), 1)
    assert len(drawn) == 2 * (3 * 4 + 1)
    order = plots.plot_effects(sixteen).to_dict()["layer"][1]["encoding"]["y"]["sort"]
    assert [name.split(" · ")[0] for name in order] == ["kb-preretrieval"] * 5 + ["mneme-memories"] * 5
    assert len(rows(plots.plot_effects(sixteen, pairs=True), 1)) == 2 * 6


def test_a_map_draws_every_cell_and_marks_the_best(found) -> None:
    chart = plots.plot_map(found, "nDCG@5", marks=[(60, 20)])
    drawn = rows(chart, 0)
    assert [(row["k"], row["pool"]) for row in drawn] == [(k, pool) for pool in (20, 100) for k in (1, 10, 60)]
    assert all(row["k_start"] < row["k"] < row["k_end"] for row in drawn)
    assert all(row["pool_start"] < row["pool"] < row["pool_end"] for row in drawn)
    best = found.best("nDCG@5")
    cell = next(row for row in drawn if (row["k"], row["pool"]) == best)
    [mark] = rows(chart, 1)
    assert cell["k_start"] < mark["k"] < cell["k_end"]
    assert cell["pool_start"] < mark["pool"] < cell["pool_end"]
    with pytest.raises(InputError, match="not in the map"):
        plots.plot_map(found, marks=[(2, 20)])


def test_of_many_k_a_map_draws_some_from_end_to_end() -> None:
    wide = sweep_map("kb-preretrieval", measures=["RR"], k=tuple(range(1, 201)), pools=(20,), cache=CACHE)
    drawn = {row["k"] for row in rows(plots.plot_map(wide), 0)}
    assert {1, 2, 200} <= drawn
    assert len(drawn) <= 40


def test_a_map_against_a_channel_is_even_about_zero(found) -> None:
    scale = plots.plot_map(found, against="bm25").to_dict()["layer"][0]["encoding"]["fill"]["scale"]
    assert scale["domain"][0] == -scale["domain"][1]
    assert scale["domain"][1] == pytest.approx(found.table(against="bm25")["difference"].abs().max())


def test_lines_along_k(found) -> None:
    chart = plots.plot_k(found, measure="nDCG@5")
    assert len(rows(chart, 2)) == 6
    alone = {row["line"]: row["mean"] for row in rows(chart, 1)}
    assert alone["bm25 alone"] == pytest.approx(found.channel("bm25", "nDCG@5").mean)


def test_unknown_names_get_one_line(one, sixteen, found) -> None:
    for call, says in (
        (lambda: plots.plot_means(one, "AP"), "no measure 'AP'; there are: nDCG@5"),
        (lambda: plots.plot_means(one, systems=["zz"]), "no system 'zz'; there are: bm25-okapi, rrf-k60"),
        (lambda: plots.plot_effects(sixteen, "AP"), "no measure 'AP'"),
        (lambda: plots.plot_k(found, pools=[7]), "pool 7 is not in the map"),
    ):
        with pytest.raises(InputError, match=says):
            call()


def test_no_chart_reads_from_the_web_or_holds_a_text(one, sixteen, found) -> None:
    memories = [memory.text for c in one.evaluations[0].labelled.corpora.values() for memory in c.memories]
    for chart in (plots.plot_means(one), plots.plot_flips(compare(one)), plots.plot_losses(one), plots.plot_k(found)):
        text = json.dumps({**chart.to_dict(), "$schema": ""}, ensure_ascii=False)
        assert "http" not in text
        assert not [one for one in memories if len(one) > 20 and one.strip() in text]


def test_charts_become_pictures_without_a_browser(one) -> None:
    import vl_convert

    svg = vl_convert.vegalite_to_svg(plots.plot_means(one).to_dict())
    assert "rrf-k60" in svg


def test_without_altair_there_is_one_line(one, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(InputError, match=r"pip install 'recallbench\[notebooks\]'"):
        plots.plot_means(one)
