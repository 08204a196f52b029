"""Nothing private leaves a run through a report: a canary in every text is looked for in every file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from report_support import evaluated, everything, run_of, small_set, traced, written

from recallbench.cli import _run
from recallbench.datasets.model import LabelledSet, Question, Session
from recallbench.evaluation.evaluate import Evaluation
from recallbench.runs.store import hidden
from recallbench.systems.base import SystemRun
from recallstack.ranking.rows import Memory
from recallstack.systems.preretrieval.contract import ContextEntry

TEXT = "kanarienvogel"
"""In every text of the set; must be in no file unless texts are asked for."""
NAME = "name-of-someone"
"""In every id; must be in no published file."""
NOTE = "said-by-the-system"


def private_set() -> LabelledSet:
    memories = [
        Memory(id=f"{NAME}-m{i}", title=TEXT, content=f"{TEXT} {i}", corpus="main", agent_scope=TEXT) for i in range(6)
    ]
    questions = [
        Question(
            id=f"{NAME}-q{i}",
            text=f"{TEXT}?",
            context=(ContextEntry(role="user", text=TEXT),),
            relevant={f"{NAME}-m{i}": 2, f"{NAME}-m{i + 1}": 1},
            not_relevant=(f"{NAME}-m{i + 2}",),
            forbidden=(f"{NAME}-m{i + 3}",),
            categories=("exact",) if i else ("typo",),
            lang="en" if i else "zh",
            cluster=f"{NAME}-c{i}",
            session=Session(agent_scope=TEXT, channel=TEXT),
            note=TEXT,
        )
        for i in range(3)
    ]
    return small_set(questions, memories)


def systems() -> list[SystemRun]:
    ids = [[f"{NAME}-m{i}", f"{NAME}-m{i + 3}"] for i in range(2)]
    ids.append([f"{NAME}-m5", f"{NAME}-m2"])
    losses = [{f"{NAME}-m{i}": "kept", f"{NAME}-m{i + 1}": "out-fused"} for i in range(3)]
    rows = [(i, "fused", 1, f"{NAME}-m{i}") for i in range(3)]
    one = run_of("one", ids, notes=(f"{NOTE} {NAME}",), **traced(losses, rows))
    # The second finds at once what the first has behind a forbidden row: a question to look at.
    # It always returns one row, which a check tells with its name.
    two = run_of("folder/two", [(f"{NAME}-m5",), (f"{NAME}-m5",), (f"{NAME}-m2",)])
    spec = {"system": "stdio", "command": [f"/home/{NAME}/run"], "model": f"/home/{NAME}/model", "name": "owner/model"}
    return [one, replace(two, spec=spec)]


def measured(runs: list[SystemRun]) -> Evaluation:
    return evaluated(private_set(), runs)


def reports(folder: Path, out: Path, *options: str) -> dict[str, str]:
    """Every file of every kind of report."""
    arguments = ["report", str(folder), "--html", str(out / "r.html"), "--markdown", str(out / "md")]
    assert _run([*arguments, "--badge", str(out / "badge"), *options]) == 0
    assert _run(["report", "history", str(out / "md")]) == 0
    found = everything(out)
    kinds = {Path(name).suffix for name in found}
    assert kinds == {".html", ".md", ".svg", ".json", ".csv", ".parquet"}
    assert len(found) >= 14
    return found


def holding(files: dict[str, str], what: str) -> set[str]:
    return {name for name, text in files.items() if what in text}


@pytest.mark.parametrize("text_in_run", [False, True])
def test_no_text_in_any_file_of_a_report(text_in_run: bool, tmp_path: Path) -> None:
    run = written(tmp_path / "runs", measured(systems()), text=text_in_run)
    files = reports(run, tmp_path / "out")
    assert holding(files, TEXT) == set()
    # The search can fail: ids are there, the packed data of the page too.
    assert "r.html" in holding(files, NAME)
    assert str(Path("md/questions.parquet")) in holding(files, NAME)


def test_no_text_in_any_file_of_a_run(tmp_path: Path) -> None:
    run = written(tmp_path, measured(systems()))
    assert holding(everything(run), TEXT) == set()


@pytest.mark.parametrize(("published_run", "text_in_run"), [(False, False), (False, True), (True, False)])
def test_published_reports_hide_ids_paths_and_notes(published_run: bool, text_in_run: bool, tmp_path: Path) -> None:
    run = written(tmp_path / "runs", measured(systems()), publish=published_run, text=text_in_run)
    files = reports(run, tmp_path / "out", "--publish")
    for private in (TEXT, NAME, NOTE, "folder/two", str(tmp_path)):
        assert holding(files, private) == set(), private
    # Each id is there as its hash, once hashed whichever way it came.
    assert "r.html" in holding(files, hidden(f"{NAME}-q0"))
    assert "r.html" in holding(files, hidden(f"{NAME}-m0"))
    assert "r.html" in holding(files, f"system-{hidden('folder/two')}")
    assert "r.html" in holding(files, "owner/model")
    assert "r.html" in holding(files, f"one 2, system-{hidden('folder/two')} 1")  # in the message of a check
    assert holding(files, '"text": ') == holding(files, '"mt":') == set()


def test_a_published_run_hides_its_labels(tmp_path: Path) -> None:
    """The labels of a run on disk, from which tables are made, are hashed too."""
    run = written(tmp_path, measured(systems()[:1]), publish=True)
    files = everything(run)
    assert holding(files, NAME) == set()
    assert "labels.parquet" in holding(files, hidden(f"{NAME}-m0"))


def test_texts_are_shown_when_asked_for(tmp_path: Path) -> None:
    run = written(tmp_path / "runs", measured(systems()), text=True)
    files = reports(run, tmp_path / "out", "--include-text")
    with_text = {"r.html", *(str(Path("md") / name) for name in ("report.md", "questions.csv", "questions.parquet"))}
    assert holding(files, TEXT) == with_text


def test_time_and_machine_are_not_published(tmp_path: Path) -> None:
    import json

    run = written(tmp_path / "runs", measured(systems()))
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    shown = reports(run, tmp_path / "shown")
    hides = reports(run, tmp_path / "hides", "--publish")
    assert holding(shown, manifest["time"]) >= {"r.html", str(Path("md/report.md"))}
    assert holding(hides, manifest["time"]) == set()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--include-text", "--publish"), "give one of them"),
        (("--include-text",), "holds no texts; make it with"),
    ],
)
def test_contradictions_get_one_line(
    options: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = written(tmp_path / "runs", measured(systems()))
    assert _run(["report", str(run), *options]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (run / "report.html").exists()
