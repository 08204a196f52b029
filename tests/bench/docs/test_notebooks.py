"""The notebooks are what their twins make, and hold nothing that may not be committed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

NOTEBOOKS = ROOT / "notebooks"
COMMITTED = sorted(NOTEBOOKS.glob("*.ipynb"))
NAMES = [path.stem for path in COMMITTED]

sys.path.insert(0, str(NOTEBOOKS))
import build  # noqa: E402

sys.path.remove(str(NOTEBOOKS))


class Cell(dict):
    """A cell or notebook as nbformat has it: keys are attributes too."""

    __getattr__ = dict.__getitem__


def cell(source: str, **output: object) -> Cell:
    outputs = [output] if output else []
    return Cell(cell_type="code", source=source, outputs=outputs)


def notebook(*cells: Cell) -> Cell:
    return Cell(cells=list(cells))


def read(path: Path) -> Cell:
    return json.loads(path.read_text(encoding="utf-8"), object_hook=Cell)


def test_every_twin_has_its_notebook() -> None:
    assert [path.stem for path in build.twins([])] == NAMES
    assert len(NAMES) == 5


@pytest.mark.parametrize("path", COMMITTED, ids=NAMES)
def test_what_is_committed_may_be(path: Path) -> None:
    """No error, no standard error, no path of a machine; with the data at hand: no text of LoCoMo."""
    one = read(path)
    assert any(output for each in one.cells for output in each.get("outputs", ()))
    assert build.faults(one, build.locomo_texts()) == []


def test_no_prose_of_a_twin_is_a_text_of_locomo() -> None:
    texts = build.locomo_texts()
    if not texts:
        pytest.skip("RECALLBENCH_DATA is not set: the real labelled data is not part of the project")
    assert len(texts) > 5_000  # of 5,882 turns and 1,986 questions, less short and repeated ones
    held = "".join(path.read_text(encoding="utf-8") for path in NOTEBOOKS.glob("*.md"))
    assert [text for text in texts if text in held] == []


def test_faults_are_found() -> None:
    bad = [
        (cell("x", output_type="error", ename="ValueError", evalue="no"), "ValueError: no"),
        (cell("x", output_type="stream", name="stderr", text="careful"), "standard error: careful"),
        (cell("x", output_type="stream", name="stdout", text="in /home/me/x.py"), "a path of a machine: /home/me"),
        (cell("open('/tmp/x')"), "a path of a machine: /tmp/x"),
        (cell("x", output_type="execute_result", data={"text/html": ["<p>said once", " upon a time</p>"]}), "LoCoMo"),
    ]
    for one, says in bad:
        found = build.faults(notebook(one), ["once upon a time"])
        assert len(found) == 1, says
        assert says in found[0]
    good = cell("x", output_type="stream", name="stdout", text="path/home of a recipe, 3/4")
    assert build.faults(notebook(good), ["once upon a time"]) == []


def test_differences_are_found() -> None:
    def shows(text: str, kind: str = "text/plain") -> Cell:
        return notebook(cell("x", output_type="execute_result", data={kind: text}))

    assert build.differences(shows("1"), shows("1"), outputs=True) == []
    assert "is not what the code makes" in build.differences(shows("1"), shows("2"), outputs=True)[0]
    assert build.differences(shows("1"), shows("2"), outputs=False) == []
    assert build.differences(shows("a", "image/png"), shows("b", "image/png"), outputs=True) == []
    assert "not those of the twin" in build.differences(notebook(cell("x")), notebook(cell("y")), outputs=False)[0]


@pytest.mark.notebooks
@pytest.mark.timeout(900)
def test_notebooks_run_from_clean_and_are_what_is_committed() -> None:
    """With RECALLBENCH_DATA their printed output and tables are compared too."""
    done = subprocess.run(
        [sys.executable, str(NOTEBOOKS / "build.py"), "--check"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
