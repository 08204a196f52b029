"""The files of a report: the same bytes for the same run, small, right in their figures, whole in their links."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import string
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from paths import data_folder
from report_support import Page, evaluated, run_of, section_of, small_set, traced, unpacked, written

from recallbench.cli import _run
from recallbench.datasets.model import LabelledSet, Question
from recallbench.evaluation.evaluate import Evaluation
from recallbench.evaluation.trust import Check
from recallbench.reports.badge import badge_json, badge_parts, badge_svg
from recallbench.reports.html import report_html
from recallbench.reports.payload import questions_payload
from recallbench.reports.report_summary import report_summary
from recallbench.reports.reproduce import command
from recallbench.reports.view import section_view
from recallbench.reports.words import listed, outcome, say, words
from recallbench.runs.load import load_run
from recallbench.systems.base import SystemRun
from recallstack.ranking.rows import Memory
from recallstack.ranking.trace import LOSSES

LIMIT = 3 * 1024 * 1024
"""Bytes of a report of LoCoMo: 1,982 questions, ten systems, lists of 20."""

QUESTIONS = (
    Question(id="q0", text="", relevant={"a": 1, "b": 1}, forbidden=("e",), categories=("x", "y"), lang="en"),
    Question(id="q1", text="", relevant={"c": 1}, not_relevant=("d",), categories=("x",), lang="zh"),
    Question(id="q2", text="", expects_empty=True, lang="zh"),
)


def evaluation() -> Evaluation:
    trace = [
        (0, "bm25", 1, "a"),
        (0, "fused", 2, "a"),
        (0, "final", 2, "a"),
        (1, "vector", 3, "c"),
        (1, "bm25", 9, "c"),
    ]
    old = run_of("old", ["ea", "d", "f"], **traced([{"a": "kept", "b": "filtered"}, {"c": "out-fused"}, {}], trace))
    new = run_of("new", ["ab", "dc", ""], failed=np.array([False, False, True]))
    return evaluated(small_set(QUESTIONS), [old, new])


# One run, the same bytes


def test_the_same_run_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    run = written(tmp_path / "runs", evaluation())
    one, two = tmp_path / "one", tmp_path / "two"

    def arguments(out: Path) -> list[str]:
        return ["report", str(run), "--html", str(out / "r.html"), "--markdown", str(out)]

    assert _run(arguments(one)) == 0
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    call = [sys.executable, "-m", "recallbench", *arguments(two)]
    done = subprocess.run(call, capture_output=True, text=True, env=environment, timeout=250)
    assert done.returncode == 0, done.stderr
    files = [{path.relative_to(out): path.read_bytes() for path in out.rglob("*.*")} for out in (one, two)]
    assert files[0] == files[1]
    assert len(files[0]) >= 10


def test_published_reports_of_two_runs_of_the_same_inputs_are_equal(tmp_path: Path) -> None:
    import datetime as dt

    pages = []
    for place in ("one", "two"):
        run = written(tmp_path / place, evaluation())
        manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
        manifest["time"] = dt.datetime(2026, 1, 1 if place == "one" else 2).isoformat()
        manifest["machine"]["cores"] = 1 if place == "one" else 64
        (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        assert _run(["report", str(run), "--publish"]) == 0
        pages.append((run / "report.html").read_bytes())
    assert pages[0] == pages[1]


# Size


class Many:
    """A set and systems of a given size: lists that agree as those of recipes over the same channels do."""

    def __init__(self, questions: int, systems: int, memories: int, top: int, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        names = [f"D{i // 20}:{i % 20}" for i in range(memories)]
        self.lists = []
        base = random.integers(0, memories, (questions, top * 3))
        for _ in range(systems):
            # Each system keeps most of the pool, in an order of its own.
            order = np.argsort(np.arange(top * 3) + random.normal(0, top / 2, base.shape), axis=1)
            rows = np.take_along_axis(base, order, axis=1)[:, : 2 * top]
            self.lists.append([list(dict.fromkeys(names[i] for i in row))[:top] for row in rows])
        asked = [
            Question(
                id=f"conv-{q % 10}-q{q}",
                text="",
                relevant={names[int(base[q, random.integers(0, top * 3)])]: 1},
                categories=(f"category-{q % 5}",),
                lang="en",
                cluster=f"conv-{q % 10}",
            )
            for q in range(questions)
        ]
        self.labelled: LabelledSet = small_set(asked, [Memory(id=name, content="words") for name in names])

    def evaluation(self) -> Evaluation:
        runs: list[SystemRun] = []
        stages = ("vector", "bm25", "vector.pool", "bm25.pool", "fused", "final")
        for s, lists in enumerate(self.lists):
            losses, trace = [], []
            for q, question in enumerate(self.labelled.questions):
                (memory,) = question.relevant
                at = lists[q].index(memory) + 1 if memory in lists[q] else 0
                losses.append({memory: "kept" if at else "out-fused"})
                trace += [(q, stage, at + place, memory) for place, stage in enumerate(stages) if at]
            runs.append(run_of(f"system-{s}", lists, **traced(losses, trace)))
        return evaluated(self.labelled, runs, ("nDCG@5", "R@5", "R@20", "RR", "AllR@5", "Success@5"), 20)


@pytest.mark.slow
def test_a_report_of_the_size_of_locomo_is_small(tmp_path: Path) -> None:
    section = section_of(tmp_path, Many(1_982, 10, 5_882, 20).evaluation())
    text = report_html([section])
    assert len(text.encode()) < LIMIT
    data = json.loads(unpacked(text)["data-0"])
    assert len(data["id"]) == 1_982
    assert sum(data["lists"][data["li"][9][1]]) == 1_982 * 20  # every row of every list is there


@pytest.mark.slow
def test_a_report_of_locomo_is_small(tmp_path: Path) -> None:
    """Ten recipes on the real set, with all texts: the report may hold them and is still small."""
    out = tmp_path / "out"
    names = ("bm25-okapi", "vector-lsa", "rrf-k1", "rrf-k10", "rrf-k60", "rrf-weighted", "minmax", "blend-auto")
    systems = [part for name in (*names, "inject-legacy", "inject-fixed") for part in ("--system", name)]
    run = ["run", "--dataset", "locomo", "--data", str(data_folder()), *systems, "--include-text", "--quiet"]
    assert _run([*run, "--out", str(out)]) == 0
    (folder,) = out.iterdir()
    assert _run(["report", str(folder), "--include-text"]) == 0
    assert (folder / "report.html").stat().st_size < LIMIT


# What the page says of a question


def test_the_data_of_the_page_is_that_of_the_run(tmp_path: Path) -> None:
    section = section_of(tmp_path, evaluation(), baseline="old")
    data = questions_payload(section, top=1)
    assert data["systems"] == ["old", "new"]
    assert (data["first"], data["second"]) == ("new", "old")
    assert data["id"] == ["q0", "q1", "q2"]
    assert [[data["categories"][c] for c in one] for one in data["cats"]] == [["x", "y"], ["x"], []]

    def value(system: int, measure: int) -> list[object]:
        return list(data["v"][data["vi"][system][measure]])

    assert value(0, 0) == [0.5, 0, None]  # RR: a second; c nowhere; q2 has no relevant memory
    assert value(1, 0) == [1, 0.5, None]
    assert data["failed"] == [[], [2]]
    assert data["empty"] == [2]
    # Labels: relevant ones first, -1 is forbidden.
    assert data["ln"] == [3, 2, 0]
    assert [data["m"][code] for code in data["lm"]] == ["a", "b", "e", "c", "d"]
    assert data["lg"] == [1, 1, -1, 1, 0]
    # Lists of one row; the rows that are not shown are counted.
    flat, lengths, more = (data["lists"][column] for column in data["li"][0])
    assert (lengths, more) == ([1, 1, 1], [1, 0, 0])
    starts = np.cumsum([0, *data["un"]])
    assert [data["m"][data["um"][starts[q] + flat[q]]] for q in range(3)] == ["e", "d", "f"]
    # The trace: stages in their order, a rank of 0 where a memory was not there.
    stages = {name: data["tc"][column] for name, column in data["stages"][0]}
    assert list(stages) == ["vector", "bm25", "fused", "final"]
    assert stages["bm25"] == [1, 0, 9]
    assert stages["vector"] == [0, 0, 3]
    assert [data["outcomes"][code] for code in data["tc"][data["lost"][0]]] == ["kept", "filtered", "out-fused"]
    assert data["lost"][1] == -1  # `new` left no trace
    assert "text" not in data


def test_stages_without_one_order_keep_that_of_their_appearance(tmp_path: Path) -> None:
    rows = [(0, "x", 1, "a"), (0, "y", 1, "a"), (1, "y", 1, "c"), (1, "x", 1, "c")]
    one = run_of("one", ["a", "c", ""], **traced([{"a": "kept"}, {"c": "kept"}, {}], rows))
    data = questions_payload(section_of(tmp_path, evaluated(small_set(QUESTIONS), [one])), top=5)
    assert [name for name, _ in data["stages"][0]] == ["x", "y"]


# The page as a document


def dangling(text: str) -> set[str]:
    """Places of the page that a link leads to and that are not there."""
    return set(re.findall(r'href="#([^"]+)"', text)) - set(re.findall(r' id="([^"]+)"', text))


def test_every_link_of_the_contents_leads_somewhere(tmp_path: Path) -> None:
    text = report_html([section_of(tmp_path, evaluation())])
    assert 'href="#verdict-0"' in text
    assert dangling(text) == set()


def test_the_page_asks_nobody_for_anything(tmp_path: Path) -> None:
    text = report_html([section_of(tmp_path, evaluation())])
    page = Page(text)
    policy = [one["content"] for tag, one in page.elements if tag == "meta" and "http-equiv" in one]
    assert policy[0] is not None
    assert policy[0].startswith("default-src 'none'")
    assert not [tag for tag, one in page.elements if tag in ("link", "iframe", "img", "base", "form", "object")]
    outside = re.sub(r'<script type="application/gzip"[^>]*>[^<]*</script>', "", text)
    assert re.findall(r"https?://[^\s\"'<>]+", outside) == []


def test_both_languages_say_the_same(tmp_path: Path) -> None:
    """Every text of the page stands in both languages, and what is filled in is the same in both."""
    page = Page(report_html([section_of(tmp_path, evaluation(), baseline="old")]))
    spans = [one["lang"] for tag, one in page.elements if tag == "span" and one.get("class") == "t"]
    assert spans.count("en") == spans.count("zh") > 30
    for key, text in words().items():
        names = [{name for _, name, _, _ in string.Formatter().parse(one) if name} for one in text]
        assert names[0] == names[1], key
        assert text.en.strip()
        assert text.zh.strip()


def test_every_outcome_and_check_has_words() -> None:
    for name in LOSSES:
        assert outcome(name).en == name
        assert outcome(name).zh != name
    assert outcome("lost in the post") == ("lost in the post", "lost in the post")


def test_every_word_is_used() -> None:
    """A word that nothing says is dead; one that is not there would break a report."""
    from importlib.resources import files

    folder = files("recallbench.reports")
    sources = [one for one in folder.iterdir() if one.name.endswith(".py")]
    sources += list(folder.joinpath("templates").iterdir())
    text = "".join(one.read_text(encoding="utf-8") for one in sources)
    made = ("outcome.", "check.", "choice.", "by.", "cost.", "k.level.", "badge.", "theme.", "x.")
    made += tuple(f"q.{one}" for one in ("worse", "better", "differ", "lost", "forbidden", "irrelevant"))
    for key in words():
        assert f'"{key}"' in text or key.startswith(made), key


def test_lists_of_names() -> None:
    assert listed(["a", "b"]) == ("a, b", "a、b")
    assert listed(["a", "b", "c"], 2) == ("a, b and 1 more", "a、b 等 3 个")
    assert say("n.other", base="{x}", value=1) == ("{x}: 1", "{x}：1")


# Markdown, CSV, Parquet, summary, badge


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("files")
    run = written(place / "runs", evaluation(), baseline="old")
    assert _run(["report", str(run), "--markdown", str(place / "md"), "--badge", str(place / "badge")]) == 0
    return place


def test_every_image_of_the_markdown_is_there(folder: Path) -> None:
    text = (folder / "md" / "report.md").read_text(encoding="utf-8")
    images = re.findall(r"!\[([^\]]+)\]\(([\w.-]+)\)", text)
    assert {name for _, name in images} == {one.name for one in (folder / "md").glob("*.svg")} - {"badge.svg"}
    assert all(title for title, _ in images)


def test_tables_hold_the_figures_of_the_run(folder: Path) -> None:
    results = pd.read_csv(folder / "md" / "results.csv", keep_default_na=False)
    row = results[(results["by"] == "") & (results["system"] == "new") & (results["measure"] == "RR")].iloc[0]
    assert (float(row["mean"]), int(row["questions"])) == (0.75, 2)
    row = results[(results["group"] == "zh") & (results["system"] == "new") & (results["measure"] == "RR")].iloc[0]
    assert float(row["mean"]) == 0.5
    rows = list(csv.DictReader(io.StringIO((folder / "md" / "questions.csv").read_text(encoding="utf-8-sig"))))
    assert [one["question"] for one in rows] == ["q0", "q1", "q2"]
    assert [one["RR new"] for one in rows] == ["1", "0.5", ""]
    long = pd.read_parquet(folder / "md" / "questions.parquet")
    assert len(long) == 3 * 2 * 3
    mine = long[(long["system"] == "old") & (long["measure"] == "RR")]
    assert mine["value"].tolist() == [0.5, 0, 0]
    assert mine["counts"].tolist() == [True, True, False]
    assert mine["categories"].tolist() == ["x y", "x", ""]


def test_the_summary_is_the_report_in_figures(folder: Path, tmp_path: Path) -> None:
    value = json.loads((folder / "md" / "summary.json").read_text(encoding="utf-8"))
    assert value == report_summary(section_of(tmp_path, evaluation(), baseline="old"))
    assert (value["best"], value["baseline"], value["primary"], value["valid"]) == ("new", "old", "RR", False)
    row = next(one for one in value["results"] if (one["system"], one["measure"]) == ("new", "R@2"))
    assert (row["mean"], row["n"]) == (1.0, 2)
    # RR 1 and 1/2: error 1/4, t(.975, 1) = 12.70620, so the interval begins at 3/4 - 3.17655.
    row = next(one for one in value["results"] if (one["system"], one["measure"]) == ("new", "RR"))
    assert row["low"] == -2.4266
    assert value["waterfall"] == {"old": {"filtered": 1, "out-fused": 1, "kept": 1}}


def test_the_badge(folder: Path, tmp_path: Path) -> None:
    section = section_of(tmp_path, evaluation(), baseline="old")
    assert badge_parts(section) == ("small RR", "invalid run", "red")  # one question got no valid answer
    value = json.loads((folder / "badge" / "small.json").read_text(encoding="utf-8"))
    # https://shields.io/badges/endpoint-badge: these keys, schemaVersion 1.
    assert value == {"schemaVersion": 1, "label": "small RR", "message": "invalid run", "color": "b3261e"}
    assert json.loads(badge_json(section)) == value
    root = ElementTree.fromstring(badge_svg(section))
    assert root.attrib["aria-label"] == "small RR: invalid run"
    assert [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")] == ["small RR", "invalid run"]


def test_the_colour_of_a_badge_is_its_verdict(tmp_path: Path) -> None:
    asked = [Question(id=f"q{i}", text="", relevant={"a": 1}) for i in range(8)]
    runs = [run_of("old", ["ba"] * 8), run_of("new", ["a"] * 8)]
    section = section_of(tmp_path, evaluated(small_set(asked), runs), baseline="old")
    assert badge_parts(section) == ("small RR", "1.000 new", "green")


# The command that makes the run again


@pytest.mark.parametrize(
    "options",
    [
        "--system bm25-okapi --system inject-fixed --baseline inject-fixed --split dev --category exact --depth 7",
        "--system presets:inject --measure R@3 --measure Success(rel=1)@5",
        "--replay sessions --system inject-strict --turns 4 --seed 3 --split test --category typo",
    ],
)
def test_the_command_makes_the_same_run(options: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["run", "--dataset", "mneme-memories", *options.split(), "--quiet"]
    assert _run([*arguments, "--out", str(out)]) == 0
    (folder,) = out.iterdir()
    text = command(load_run(folder))
    assert text.startswith("recallbench run")
    again = shlex.split(text.replace("\\\n", " "))[1:]
    assert _run([*again, "--quiet", "--out", str(tmp_path / "again")]) == 0
    assert [one.name for one in (tmp_path / "again").iterdir()] == [folder.name]


def test_a_replay_is_set_against_the_stack_without_a_bug(tmp_path: Path) -> None:
    runs = [run_of("no-bug.step1", ["a", "c", ""]), run_of("stale-query.step1", ["", "", ""])]
    assert section_of(tmp_path, evaluated(small_set(QUESTIONS), runs)).held.baseline == "no-bug.step1"


def test_a_recipe_that_is_no_preset_is_a_file(tmp_path: Path) -> None:
    section = section_of(tmp_path, evaluation())
    text = command(section.run)
    assert "--dataset FOLDER" in text
    assert "--system recipe:old.toml" in text
    assert "--measure RR" in text


# Several runs, and mistakes


def test_several_runs_get_folders_and_a_page_that_leads_to_them(tmp_path: Path) -> None:
    one = written(tmp_path / "1", evaluation())
    from dataclasses import replace

    other = evaluation()
    other = replace(other, labelled=replace(other.labelled, info=replace(other.labelled.info, name="second")))
    two = written(tmp_path / "2", other)
    md = tmp_path / "md"
    assert _run(["report", str(one), str(two), "--markdown", str(md), "--html", str(md / "all.html")]) == 0
    index = (md / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", index):
        assert (md / target).is_file(), target
    assert "all.html" in index
    page = Page((md / "all.html").read_text(encoding="utf-8"))
    assert len([1 for tag, one in page.elements if tag == "section" and one.get("class") == "run"]) == 2


def test_one_run_without_options_gets_its_page_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = written(tmp_path, evaluation())
    assert _run(["report", str(run)]) == 0
    assert capsys.readouterr().out.strip() == f"report: {run / 'report.html'}"
    assert (run / "report.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["RUN", "OTHER"], "give --html FILE or --markdown FOLDER"),
        (["RUN", "--baseline", "older"], "--baseline older: not among the systems: old, new"),
        (["RUN", "--sweep", "none.json"], "none.json: cannot read"),
        (["RUN", "--sweep", "SWEEP"], "a sweep of 'other'; the runs are of small"),
        (["RUN", "--sweep", "BAD"], "not what `recallbench sweep --json` prints"),
        (["RUN", "--scenarios", "BAD"], "not what `recallbench scenarios run --json` prints"),
        (["nowhere"], "nowhere: no such folder"),
    ],
)
def test_mistakes_get_one_line(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = written(tmp_path / "runs", evaluation())
    row = {"method": "rrf", "k": 60, "pool": 20, "RR": 0.5, "like_override": False}
    sweep = {"dataset": "other", "sentence": "s", "reported": {"RR": 0.5}, "rows": [row]}
    (tmp_path / "sweep.json").write_text(json.dumps(sweep), encoding="utf-8")
    (tmp_path / "bad.json").write_text('{"rows": 1}', encoding="utf-8")
    names = {
        "RUN": str(run),
        "OTHER": str(written(tmp_path / "other", evaluation())),
        "SWEEP": "sweep.json",
        "BAD": "bad.json",
    }
    assert _run(["report", *(names.get(one, one) for one in arguments)]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not list(run.glob("report.html"))


def test_sweep_and_scenarios_are_shown(tmp_path: Path) -> None:
    run = written(tmp_path / "runs", evaluation())
    rows = [
        {"method": "rrf", "k": k, "pool": pool, "RR": k / 100 + pool / 1000, "like_override": False}
        for k in (1, 60)
        for pool in (10, 20)
    ]
    rows.append({"method": "rrf", "k": 60, "pool": 10, "RR": 9.0, "weight_bm25": 0.5, "like_override": False})
    rows.append({"method": "minmax", "k": None, "pool": 10, "RR": 9.0, "like_override": False})
    sweep = {"dataset": "small", "sentence": "k60 was chosen", "reported": {"RR": 0.5}, "rows": rows}
    (tmp_path / "sweep.json").write_text(json.dumps(sweep), encoding="utf-8")
    results = [
        {"scenario": "s-1", "system": "mneme", "kind": "bug", "title": {"en": "Stale", "zh": "陈旧"},
         "implementation": "reference", "variant": variant, "outcome": how, "failures": []}
        for variant, how in (("fixed", "passed"), ("legacy", "failed"))
    ]  # fmt: skip
    (tmp_path / "scenarios.json").write_text(json.dumps(results), encoding="utf-8")
    options = ["--sweep", str(tmp_path / "sweep.json"), "--scenarios", str(tmp_path / "scenarios.json")]
    assert (
        _run(["report", str(run), *options, "--html", str(tmp_path / "r.html"), "--markdown", str(tmp_path / "md")])
        == 0
    )
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "k60 was chosen" in text
    assert "1 of 2 runs of 1 scenarios pass" in Page(text).text
    assert '<a href="#scenarios">' in text
    assert dangling(text) == set()
    assert "陈旧" in text
    charts = json.loads(unpacked(text)["charts-0"])["en"]
    (cells,) = charts["sweep"]["datasets"].values()
    # Weighted fusion and other methods are no part of the map.
    assert sorted(one["value"] for one in cells) == pytest.approx([0.02, 0.03, 0.61, 0.62])
    assert (tmp_path / "md" / "sweep.svg").is_file()
    assert "1/2" in (tmp_path / "md" / "report.md").read_text(encoding="utf-8")


def test_every_link_within_the_page_leads_somewhere(tmp_path: Path) -> None:
    from recallbench.reports.inputs import ScenarioResult, _Title

    section = section_of(tmp_path, evaluation())
    one = ScenarioResult("s-1", "mneme", "bug", _Title("Stale", "陈旧"), "reference", "fixed", "passed")
    for scenarios in ((), (one,)):
        elements = Page(report_html([section], scenarios=scenarios)).elements
        ids = {attributes.get("id") for _, attributes in elements}
        links = {str(attributes["href"]) for name, attributes in elements if name == "a"}
        assert {link.removeprefix("#") for link in links} <= ids
        assert ("#scenarios" in links) == bool(scenarios)


def test_what_a_sweep_chose_is_said_in_both_languages(tmp_path: Path) -> None:
    run = written(tmp_path / "runs", evaluation())
    rows = [{"method": "rrf", "k": k, "pool": 10, "RR": 0.5 + k / 1000, "like_override": False} for k in (1, 60)]
    sweep = {"dataset": "small", "sentence": "rrf-k60 was chosen", "how": "dev/test", "chosen": {"name": "rrf-k60"},
             "reported": {"RR": 0.5}, "rows": rows}  # fmt: skip
    (tmp_path / "sweep.json").write_text(json.dumps(sweep), encoding="utf-8")
    page = tmp_path / "r.html"
    assert _run(["report", str(run), "--sweep", str(tmp_path / "sweep.json"), "--html", str(page)]) == 0
    text = Page(page.read_text(encoding="utf-8")).text
    assert "0.501 to 0.560. rrf-k60 was chosen." in text
    assert "从 2 个配方中在 dev 上选出 rrf-k60，它在 test 问题上为 0.500" in text


def test_measures_of_harm_stand_beside_the_primary_one_and_empty_columns_are_left_out(tmp_path: Path) -> None:
    """A verdict may turn on them: they are not to be scrolled for. A set without forbidden memories has no Leak."""
    names = ("RR", "R@2", "nDCG@5", "Leak")
    for forbidden, harms in ((("b",), ["Leak (lower is better)"]), ((), [])):
        questions = [Question(id=f"q{i}", text="", relevant={"a": 1}, forbidden=forbidden) for i in range(3)]
        found = evaluated(small_set(questions), [run_of("old", ["ba"] * 3), run_of("new", ["a"] * 3)], names)
        view = section_view(section_of(tmp_path / str(len(forbidden)), found, baseline="old"), "")
        shown = [column.en for column in view["columns"]]
        assert [shown[0], *shown[3:]] == ["RR", *harms, "R@2", "nDCG@5"]
        assert all(len(row["cells"]) == len(shown) for row in view["rows"])


def test_a_system_that_equals_the_baseline_everywhere_has_no_interval_of_zeros(tmp_path: Path) -> None:
    lists = {"old": ["ba"] * 3, "same": ["ba"] * 3, "evens": ["a", "ba", "cba"]}
    questions = [Question(id=f"q{i}", text="", relevant={"a": 1}) for i in range(3)]
    found = evaluated(small_set(questions), [run_of(name, one) for name, one in lists.items()])
    rows = {
        row["system"]: row["cells"] for row in section_view(section_of(tmp_path, found, baseline="old"), "")["rows"]
    }
    assert (rows["same"][1]["text"], rows["same"][1]["range"]) == ("=", "")
    assert rows["evens"][1]["range"] != ""


def test_findings_of_one_check_stand_together(tmp_path: Path) -> None:
    found = replace(
        evaluation(),
        checks=(
            Check("warning", "equal-systems", "", "equal: a, b"),
            Check("info", "ties", "a", "x" * 300),
            Check("warning", "equal-systems", "", "equal: c, d"),
        ),
    )
    checks = section_view(section_of(tmp_path, found), "")["checks"]
    assert [(one["name"], len(one["findings"]), one["long"]) for one in checks] == [
        ("equal-systems", 2, False),
        ("ties", 1, True),
    ]


def test_names_break_at_their_joints(tmp_path: Path) -> None:
    questions = [Question(id="q", text="", relevant={"a": 1})]
    found = evaluated(small_set(questions), [run_of("dual+over-fetch", ["a"]), run_of("<b>+x", ["a"])])
    html = report_html([section_of(tmp_path, found)])
    assert '<th scope="row">dual+<wbr>over-<wbr>fetch' in html
    assert '<th scope="row">&lt;b&gt;+<wbr>x' in html


def test_without_the_extra_one_line_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from recallbench.reports import images

    images.needs_extra.cache_clear()
    monkeypatch.setitem(sys.modules, "altair", None)
    assert _run(["report", str(written(tmp_path, evaluation()))]) == 2
    assert "pip install 'recallbench[reports]'" in capsys.readouterr().err
    images.needs_extra.cache_clear()
