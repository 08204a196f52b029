"""Trends of committed reports: revisions from git or from folders, breaks where the data changed."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_support import Page, evaluated, run_of, small_set, unpacked, written

from recallbench.cli import _run
from recallbench.datasets.model import Question
from recallbench.reports.history import changed, history, history_html
from recallstack.errors import InputError


def summary(mean: float, labels: str = "l1", name: str = "small", **more: Any) -> dict[str, Any]:
    results = [
        {
            "system": system,
            "measure": "RR",
            "mean": value,
            "low": value - 0.1,
            "high": value + 0.1,
            "n": 9,
            "clusters": 0,
        }
        for system, value in (("old", 0.3), ("new", mean))
    ]
    data = {"memories": "m1", "labels": labels}
    values = {"dataset": name, "version": "1", "data": data, "primary": "RR", "baseline": "old", "results": results}
    return {**values, **more}


def put(folder: Path, value: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(value), encoding="utf-8")
    return folder


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository in a folder whose name holds a blank, with three committed states of one report and one not yet."""
    top = tmp_path / "a repository"
    reports = top / "deep" / "reports"
    top.mkdir()
    git(top, "init", "-q")
    for mean, labels in ((0.4, "l1"), (0.5, "l1"), (0.6, "l2")):
        put(reports / "small", summary(mean, labels))
        git(top, "add", "-A")
        git(top, "commit", "-q", "-m", f"{mean}")
    (top / "other.txt").write_text("no report", encoding="utf-8")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "a commit that touches no report")
    put(reports / "small", summary(0.7, "l2"))
    return reports


def means(points: list[Any], system: str = "new") -> list[float]:
    return [point.at[system, "RR"].mean for point in points]


def test_each_commit_that_changed_the_report_is_a_revision(repository: Path) -> None:
    (points,) = history(repository).values()
    assert means(points) == [0.4, 0.5, 0.6, 0.7]
    assert points[-1].revision == "now"
    assert len({point.revision for point in points}) == 4


def test_what_is_committed_is_not_told_twice(repository: Path) -> None:
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "0.7")
    (points,) = history(repository).values()
    assert means(points) == [0.4, 0.5, 0.6, 0.7]
    assert points[-1].revision != "now"


def test_a_report_that_was_away_for_a_while(repository: Path) -> None:
    top = repository.parents[1]
    git(top, "rm", "-q", "-f", "deep/reports/small/summary.json")
    git(top, "commit", "-q", "-m", "away")
    put(repository / "small", summary(0.8, "l2"))
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "back")
    put(repository / "small", summary(0.9, "l2"))
    (points,) = history(repository).values()
    assert means(points) == [0.4, 0.5, 0.6, 0.8, 0.9]


def test_changed_data_is_a_break(repository: Path) -> None:
    (points,) = history(repository).values()
    assert changed(points) == [points[2].revision]


def test_a_folder_without_git_has_one_revision(tmp_path: Path) -> None:
    put(tmp_path / "small", summary(0.4))
    (points,) = history(tmp_path).values()
    assert [point.revision for point in points] == ["now"]


def test_several_reports_of_a_set_are_its_revisions(tmp_path: Path) -> None:
    """In the order of their numbers: v10 is after v9."""
    for place, mean in (("v10", 0.6), ("v9", 0.5), ("v1", 0.4)):
        put(tmp_path / place / "small", summary(mean))
    put(tmp_path / "v9" / "second", summary(0.1, name="second"))
    found = history(tmp_path)
    assert means(found["small"]) == [0.4, 0.5, 0.6]
    assert [point.revision for point in found["small"]] == [str(Path(f"v{n}") / "small") for n in (1, 9, 10)]
    assert means(found["second"]) == [0.1]


def test_runs_on_disk_are_revisions_in_the_order_of_their_time(tmp_path: Path) -> None:
    asked = [Question(id=f"q{i}", text="", relevant={"a": 1}) for i in range(3)]
    for name, time, lists in (("z", "2026-01-01", ["ba"] * 3), ("a", "2026-01-02", ["a"] * 3)):
        run = written(tmp_path / "runs", evaluated(small_set(asked), [run_of("new", lists)]))
        folder = run.rename(run.with_name(name))
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        manifest["time"] = time
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (points,) = history(tmp_path / "runs").values()
    assert means(points) == [0.5, 1.0]
    assert [point.revision for point in points] == ["z", "a"]


def test_splits_are_histories_of_their_own(tmp_path: Path) -> None:
    put(tmp_path / "1", summary(0.4, split="dev"))
    put(tmp_path / "2", summary(0.5, split="test"))
    assert set(history(tmp_path)) == {"small, dev", "small, test"}


def test_the_page_draws_lines_that_end_at_a_break(repository: Path, tmp_path: Path) -> None:
    out = tmp_path / "h.html"
    assert _run(["report", "history", str(repository), "--html", str(out), "--lang", "zh"]) == 0
    text = out.read_text(encoding="utf-8")
    charts = json.loads(unpacked(text)["charts-0"])
    for lang in ("en", "zh"):
        rows = [row for values in charts[lang]["trend-0"]["datasets"].values() for row in values]
        mine = [row for row in rows if row.get("system") == "new"]
        assert [row["mean"] for row in mine] == [0.4, 0.5, 0.6, 0.7]
        parts = [row["part"] for row in mine]
        assert parts[0] == parts[1] != parts[2] == parts[3]
        rules = [row["revision"] for row in rows if set(row) == {"revision"}]
        assert rules == [mine[2]["revision"]]
    page = Page(text)
    assert next(one["lang"] for tag, one in page.elements if tag == "html") == "zh"
    assert page.text.count("data changed") == 1


def test_what_the_verdict_was_about_is_in_the_trend_though_others_have_better_means(tmp_path: Path) -> None:
    value = summary(0.4)
    extra = [{**value["results"][0], "system": f"s{i}", "mean": 0.5 + i / 100} for i in range(9)]
    careful = {**value["results"][0], "system": "careful", "mean": 0.35}
    put(tmp_path / "small", {**value, "results": [*value["results"], *extra, careful], "pick": "careful"})
    charts = json.loads(unpacked(history_html(history(tmp_path)))["charts-0"])["en"]
    (rows,) = charts["trend-0"]["datasets"].values()
    assert {"old", "careful", "s8"} <= {row["system"] for row in rows}


def test_intervals_of_systems_stand_beside_each_other(tmp_path: Path) -> None:
    put(tmp_path / "small", summary(0.4))
    charts = json.loads(unpacked(history_html(history(tmp_path)))["charts-0"])["en"]
    assert all(layer["encoding"]["xOffset"]["field"] == "system" for layer in charts["trend-0"]["layer"])


def test_a_break_stands_left_of_every_system_of_its_revision(repository: Path) -> None:
    """The systems of a revision stand beside each other: a line through their middle would part them."""
    charts = json.loads(unpacked(history_html(history(repository)))["charts-0"])["en"]
    (rule,) = [one for one in charts["trend-0"]["layer"] if "strokeDash" in one["mark"]]
    assert rule["encoding"]["x"]["bandPosition"] == 0


def test_the_page_lies_in_the_folder_by_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path / "small", summary(0.4))
    assert _run(["report", "history", str(tmp_path)]) == 0
    assert (tmp_path / "history.html").is_file()
    assert str(tmp_path / "history.html") in capsys.readouterr().out


def test_a_lower_is_better_measure_has_its_best_below(tmp_path: Path) -> None:
    value = summary(0.4, primary="Leak")
    value["results"] = [{**one, "measure": "Leak"} for one in value["results"]]
    put(tmp_path, value)
    (points,) = history(tmp_path).values()
    assert points[0].best() == "old"  # 0.3


def test_a_system_without_a_figure_is_no_best(tmp_path: Path) -> None:
    value = summary(0.4)
    value["results"][1] = {**value["results"][1], "mean": None, "low": None, "high": None, "n": 0}
    put(tmp_path, value)
    (points,) = history(tmp_path).values()
    assert points[0].best() == "old"
    assert replace(points[0], at={key: one for key, one in points[0].at.items() if key[0] == "new"}).best() == "new"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "holds no summary.json"),
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "not a summary of a run or report"),
        ('{"dataset": "d"}', "not a summary of a run or report"),
    ],
)
def test_folders_without_a_report(content: str | None, says: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "summary.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=says):
        history(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        history(tmp_path / "none")
