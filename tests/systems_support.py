"""A small labelled set, a faulty system on stdio, and what is left behind."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import tomli_w
from made import native_set

from recallbench.cli import _run

FAULTY = Path(__file__).parent / "faulty_system.py"
QUESTIONS = [f"q-{number}" for number in range(1, 7)]
WORDS = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"]


def small_set(folder: Path) -> Path:
    """Six questions; memory m-N answers q-N and nothing else is relevant."""
    return native_set(
        folder,
        [
            {"id": f"m-{number}", "content": f"the long word number {number} is {word}"}
            for number, word in enumerate(WORDS, 1)
        ],
        [
            {"id": f"q-{number}", "text": f"which word is {word}?", "relevant": {f"m-{number}": 2}}
            for number, word in enumerate(WORDS, 1)
        ],
    )


@dataclass(frozen=True)
class Outcome:
    """What a run of one system came to. rr: question -> reciprocal rank. failed: question -> its error."""

    code: int
    out: str
    err: str
    folder: Path | None
    rr: dict[str, float]
    failed: dict[str, str]
    checks: dict[str, list[str]]
    manifest: dict[str, Any]


def python_command(*arguments: str, script: Path = FAULTY) -> str:
    """A command of this interpreter, quoted for `stdio:`."""
    return " ".join(f'"{word}"' for word in (sys.executable, "-I", "-S", str(script), *arguments))


def run_system(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    spec: str,
    *options: str,
    dataset: Path | None = None,
    name: str = "it",
    in_process: bool = False,
    **settings: Any,
) -> Outcome:
    """`recallbench run` of one configured system beside a recipe; nothing may be left of it.

    in_process: the system is a server in a thread of this process, whose own files are not counted.
    """
    config = folder / "recallbench.toml"
    table = {key: value for key, value in {"spec": spec, "warm_up": 0, **settings}.items() if value is not None}
    config.write_text(tomli_w.dumps({"systems": {name: table}}), encoding="utf-8")
    dataset = dataset or small_set(folder / "set")
    out = folder / "out"
    arguments = ["--dataset", str(dataset), "--system", name, "--system", "bm25-okapi", "--measure", "RR"]
    with nothing_left(str(folder), count_files=not in_process):
        code = _run(["run", *arguments, "--config", str(config), "--out", str(out), "--allow-zero", name, *options])
    printed = capsys.readouterr()
    folders = [one for one in out.iterdir() if not one.name.startswith(".")] if out.exists() else []
    if not folders:
        return Outcome(code, printed.out, printed.err, None, {}, {}, {}, {})
    [path] = folders
    return read_outcome(path, name, code, printed.out, printed.err)


def read_outcome(path: Path, name: str, code: int = 0, out: str = "", err: str = "") -> Outcome:
    """What stands in a run's folder of one system."""
    import pyarrow.parquet as pq

    rows = [row for row in pq.read_table(path / "measures.parquet").to_pylist() if row["system"] == name]
    errors = path / "errors.jsonl"
    lines = errors.read_text(encoding="utf-8").splitlines() if errors.exists() else []
    failed = {row["question"]: row["error"] for row in map(json.loads, lines)}
    checks: dict[str, list[str]] = {}
    for check in json.loads((path / "summary.json").read_text(encoding="utf-8"))["checks"]:
        if check["system"] in (name, ""):
            checks.setdefault(check["name"], []).append(check["message"])
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    rr = {row["question"]: row["value"] for row in rows if row["measure"] == "RR"}
    return Outcome(code, out, err, path, rr, failed, checks, manifest)


@contextlib.contextmanager
def nothing_left(word: str, count_files: bool = True) -> Iterator[None]:
    """No child process, no open file more than before, and no process whose command holds the word."""
    me = psutil.Process()
    before, files = {one.pid for one in me.children(recursive=True)}, me.num_fds()
    yield
    assert {one.pid for one in me.children(recursive=True)} - before == set()
    assert not count_files or me.num_fds() <= files
    # A grandchild that was killed is taken away by the system, not by us.
    _, alive = psutil.wait_procs(running(word), timeout=5)
    assert alive == []


def running(word: str) -> list[psutil.Process]:
    """Processes of this machine, but for this one, whose command holds the word."""
    found = []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if one.pid != psutil.Process().pid and any(word in part for part in one.cmdline()):
                found.append(one)
    return found
