"""A run read back is the evaluation that was written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_support import evaluated, run_of, small_set, stored, traced, written

from recallbench.datasets.model import Question
from recallbench.evaluation.aggregate import cells, differences
from recallbench.evaluation.evaluate import Evaluation
from recallbench.runs.load import FILES, load_run
from recallbench.runs.merge import load_runs
from recallstack.errors import InputError

QUESTIONS = (
    Question(
        id="q 1", text="one", relevant={"a": 2, "b": 1}, categories=("x", "y"), lang="en", cluster="c1", split="dev"
    ),
    Question(id="问题", text="two", relevant={"c": 1}, not_relevant=("d",), forbidden=("e",), lang="zh", cluster="c2"),
    Question(id="q3", text="three", expects_empty=True),
)
LOSSES = ({"a": "kept", "b": "out-fused"}, {"c": "filtered"}, {})
TRACE = [(0, "fused", 1, "a"), (0, "final", 1, "a"), (0, "fused", 3, "b")]


def evaluation() -> Evaluation:
    one = run_of("one", ["ab", "ec", ""], **traced(LOSSES, TRACE))
    two = run_of("two", ["ba", "", "f"], failed=np.array([False, True, False]))
    return evaluated(small_set(QUESTIONS), [one, two])


def test_what_was_written_is_read(tmp_path: Path) -> None:
    was = evaluation()
    run = stored(tmp_path, was, baseline="one")
    now = run.evaluation
    assert np.array_equal(now.values, was.values)
    assert np.array_equal(now.counts, was.counts)
    assert (now.systems, now.measures, now.depth, now.split) == (was.systems, was.measures, was.depth, was.split)
    assert now.checks == was.checks
    assert [one.ids for one in now.runs] == [one.ids for one in was.runs]
    assert [one.scores for one in now.runs] == [one.scores for one in was.runs]
    assert now.runs[0].losses == LOSSES
    assert now.runs[0].trace == was.runs[0].trace
    assert now.runs[1].losses == ()
    assert now.runs[1].failed.tolist() == [False, True, False]
    kept = [replace_text(question) for question in was.labelled.questions]
    assert list(now.labelled.questions) == kept
    assert run.memories == 8
    assert run.texts == {}


def replace_text(question: Question) -> Question:
    """A run without texts knows all of a question but its text."""
    import msgspec

    return msgspec.structs.replace(question, text="")


def test_tables_of_the_run_and_of_the_report_agree(tmp_path: Path) -> None:
    was = evaluation()
    now = stored(tmp_path, was).evaluation
    for by in (None, "category", "lang", "split"):
        assert cells(now, by) == cells(was, by)
    assert differences(now, "one") == differences(was, "one")


def test_tokens_are_those_of_the_texts(tmp_path: Path) -> None:
    run = stored(tmp_path, evaluation())
    # "text of a" has 9 characters: 3 tokens (four to one, rounded up); two rows, two rows, none.
    assert run.tokens[0].tolist() == [6, 6, 0]


def test_texts_are_there_when_the_run_holds_them(tmp_path: Path) -> None:
    run = stored(tmp_path, evaluation(), text=True)
    assert run.texts["question", "main", "问题"] == "two"
    assert run.texts["memory", "main", "e"].strip() == "text of e"
    assert ("memory", "main", "h") not in run.texts  # neither labelled nor returned


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    folder = written(tmp_path, evaluation())
    (folder / name).unlink()
    with pytest.raises(InputError, match="run") as caught:
        load_run(folder) if name != "manifest.json" else load_runs([folder])
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("name", ["hits.parquet", "measures.parquet", "manifest.json", "summary.json"])
def test_a_damaged_file_is_named(name: str, tmp_path: Path) -> None:
    folder = written(tmp_path, evaluation())
    (folder / name).write_bytes(b"PAR1 not a table")
    with pytest.raises(InputError, match=name):
        load_run(folder)


def test_a_run_of_another_form_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path, evaluation())
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    del manifest["dataset"]["labels"], manifest["dataset"]["default_rel"]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(InputError, match="not a run that this version can read"):
        load_run(folder)


@pytest.mark.parametrize("other", [0, 2, "1", None])
def test_a_run_of_another_format_is_refused(other: object, tmp_path: Path) -> None:
    """Its files may lie there under the same names and mean something else."""
    folder = written(tmp_path, evaluation())
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format": other}), encoding="utf-8")
    with pytest.raises(InputError, match=f"manifest.json: a run of format {other!r}, this recallbench reads 1"):
        load_run(folder)


def test_a_folder_of_runs_and_a_folder_without(tmp_path: Path) -> None:
    folder = written(tmp_path / "out", evaluation())
    assert [run.folders for run in load_runs([tmp_path / "out"])] == [(folder,)]
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "none"):
        with pytest.raises(InputError, match=path.name):
            load_runs([path])


def test_runs_of_the_same_questions_become_one(tmp_path: Path) -> None:
    labelled = small_set(QUESTIONS)
    first = evaluated(labelled, [run_of("one", ["ab", "ec", ""])], ("RR", "R@2"))
    second = evaluated(
        labelled, [run_of("one", ["ab", "ec", ""]), run_of("two", ["ba", "c", ""])], ("R@2", "RR", "R@1")
    )
    third = evaluated(labelled, [run_of("one", ["ba", "c", ""])], ("RR", "R@2"))
    paths = [written(tmp_path / str(place), one) for place, one in enumerate((first, second, third))]
    (run,) = load_runs(paths)
    # The same system with the same answers stands once; the same name with others is named after its run.
    assert run.evaluation.systems == ("one", "two", f"one ({paths[2].name})")
    assert list(map(str, run.evaluation.measures)) == ["RR", "R@2"]
    # RR of q 1 and of 问题: one finds a first and c second, two and the other "one" find b first and c first.
    assert run.evaluation.values[:, 0, :2].tolist() == [[1.0, 0.5], [1.0, 1.0], [1.0, 1.0]]
    assert run.evaluation.values[1, 1, :2].tolist() == [1.0, 1.0]
    assert len(run.tokens) == 3


def test_runs_with_other_labels_stay_apart(tmp_path: Path) -> None:
    labelled = small_set(QUESTIONS)
    other = small_set((QUESTIONS[0], QUESTIONS[1], Question(id="q3", text="three", relevant={"a": 1})))
    systems = [run_of("one", ["ab", "ec", ""])]
    paths = [written(tmp_path / str(place), evaluated(one, systems)) for place, one in enumerate((labelled, other))]
    assert len(load_runs(paths)) == 2


def test_runs_without_a_measure_in_common(tmp_path: Path) -> None:
    labelled, systems = small_set(QUESTIONS), [run_of("one", ["ab", "ec", ""])]
    paths = [written(tmp_path / name, evaluated(labelled, systems, (name,))) for name in ("RR", "R@2")]
    with pytest.raises(InputError, match="no measure in common"):
        load_runs(paths)


def test_a_run_of_systems_that_varied_only_in_spec(tmp_path: Path) -> None:
    """The checks of both runs are kept, each once."""
    labelled = small_set(QUESTIONS)
    one = evaluated(labelled, [run_of("one", ["ab", "ec", ""])])
    two = evaluated(labelled, [replace(run_of("two", ["bb", "c", ""]), spec={"other": 1})])
    (run,) = load_runs([written(tmp_path / "1", one), written(tmp_path / "2", two)])
    names = [check.name for check in run.evaluation.checks]
    assert names.count("no-relevant") == 1
    assert "repeated-ids" in names
