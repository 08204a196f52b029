"""`run:FILE`: saved answers as a system."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from made import refused
from systems_support import QUESTIONS, Outcome, python_command, run_system, small_set

from recallbench.cli import _run
from recallbench.systems.runfile import read_saved

Captured = pytest.CaptureFixture[str]
# q-1 at rank 1; q-2 at rank 2 by score, whatever stands first in the file; q-3 empty in JSON.
LISTS = {"q-1": {"m-1": 2.0, "m-2": 1.0}, "q-2": {"m-2": 0.5, "m-1": 0.75}, "q-4": {"m-1": 1.0, "m-4": 1.0}}


def trec(lists: dict[str, dict[str, float]]) -> str:
    return "".join(f"{q} Q0 {m} 1 {score} tag\n" for q, found in lists.items() for m, score in found.items())


def from_file(folder: Path, capsys: Captured, name: str, text: str | bytes, **settings: object) -> Outcome:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return run_system(folder, capsys, f"run:{name}", warm_up=None, **settings)


def test_a_trec_run_is_read_in_the_order_of_its_scores(tmp_path: Path, capsys: Captured) -> None:
    found = from_file(tmp_path, capsys, "it.trec", trec(LISTS), missing="empty")
    assert found.code == 0
    # q-4: a tie, and trec_eval puts the greater id first.
    assert found.rr == {"q-1": 1.0, "q-2": 0.5, "q-3": 0.0, "q-4": 1.0, "q-5": 0.0, "q-6": 0.0}
    assert found.manifest["systems"]["it"]["file"] == "it.trec"


def test_a_question_without_a_line_is_an_error_unless_it_is_said_to_be_empty(tmp_path: Path, capsys: Captured) -> None:
    found = from_file(tmp_path, capsys, "it.trec", trec(LISTS))
    assert found.code == 2
    assert set(found.failed) == {"q-3", "q-5", "q-6"}
    assert 'set missing = "empty"' in found.failed["q-3"]
    assert found.rr["q-2"] == 0.5


@pytest.mark.parametrize("pack", [False, True])
def test_json_can_say_an_empty_answer(pack: bool, tmp_path: Path, capsys: Captured) -> None:
    whole = {**LISTS, **{question: {} for question in QUESTIONS if question not in LISTS}}
    data = json.dumps(whole).encode()
    found = from_file(tmp_path, capsys, "it.json.gz" if pack else "it.json", gzip.compress(data) if pack else data)
    assert found.code == 0
    assert found.rr == {"q-1": 1.0, "q-2": 0.5, "q-3": 0.0, "q-4": 1.0, "q-5": 0.0, "q-6": 0.0}


def test_unknown_ids_are_an_error_of_their_question(tmp_path: Path, capsys: Captured) -> None:
    found = from_file(tmp_path, capsys, "it.trec", trec({**LISTS, "q-1": {"zzz": 1.0}}), missing="empty")
    assert found.code == 2
    assert set(found.failed) == {"q-1"}
    assert "unknown id, 'zzz'" in found.failed["q-1"]


def test_other_ids_and_an_id_map(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "ids.json").write_text(json.dumps({f"their {i}": f"m-{i}" for i in range(1, 7)}))
    lists = {q: {f"their%20{q[2:]}": 1.0} for q in QUESTIONS}
    found = from_file(tmp_path, capsys, "it.trec", trec(lists), id_map="ids.json")
    assert found.code == 0
    assert set(found.rr.values()) == {1.0}


def test_answers_to_other_questions_are_told(tmp_path: Path, capsys: Captured) -> None:
    lists = {**{q: {"m-1": 1.0} for q in QUESTIONS}, "q-77": {"m-1": 1.0}}
    found = from_file(tmp_path, capsys, "it.trec", trec(lists))
    assert found.code == 0
    assert "the file also answers 1 questions that were not asked (q-77)" in found.checks["system-note"]


def test_a_run_of_ours_gives_the_same_values_again(tmp_path: Path, capsys: Captured) -> None:
    """Also where the answer to a question was empty, which TREC cannot say: the run's folder is known to be whole."""
    first = run_system(tmp_path, capsys, f"stdio:{python_command('empty', str(tmp_path))}", name="first", stop_s=0.5)
    assert first.folder is not None
    assert first.rr["q-3"] == 0.0
    (tmp_path / "b").mkdir()
    again = run_system(tmp_path / "b", capsys, f"run:{first.folder / 'runs' / 'first.trec'}", warm_up=None)
    assert again.code == 0
    assert again.rr == first.rr


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "{", "is no JSON in UTF-8"),
        ("a.json", "[]", "a run is {question: {document: score, …}, …}"),
        ("a.json", '{"q": ["d"]}', "question 'q': a run is"),
        ("a.json", '{"q": {"d": "1"}}', "question 'q', document 'd': the score is not a finite number"),
        ("a.json", '{"q": {"d": NaN}}', "the score is not a finite number"),
        ("a.json", '{"q": {"d": true}}', "the score is not a finite number"),
        ("a.trec", "q Q0 d 1 nan t\n", "a.trec:1: score 'nan' is not a finite number"),
        ("a.trec", "q d 1\n", "a.trec:1: 3 fields"),
    ],
)
def test_a_bad_file_is_refused(name: str, text: str, said: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / name).write_text(text)
    assert said in refused(read_saved, tmp_path / name)
    # Before anything is run, through the command line too.
    assert _run(["run", "--dataset", str(small_set(tmp_path / "s")), "--system", f"run:{tmp_path / name}"]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "cannot read" in refused(read_saved, tmp_path / "no.trec")
    assert "cannot read" in refused(read_saved, tmp_path / "no.json")
