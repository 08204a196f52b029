"""A baseline as a folder: made for git, so that a change of one answer is a change of one line.

```
DIR/
  baseline.json          format, set (name, version, hashes), depth, systems with their specs, versions, machine, time
  memories.csv           corpus, id, digest of each memory
  questions.csv          id, digest of what is asked, digest of its labels
  answers/SYSTEM.jsonl   one line a question: returned ids in order, measures
```

No text of a memory or question is in it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from recallbench.datasets import jsonl
from recallbench.gate.baselines.model import FORMAT, Baseline, SystemBaseline
from recallbench.runs.store import VARYING, slug
from recallstack.errors import InputError

HEAD, MEMORIES, QUESTIONS, ANSWERS = "baseline.json", "memories.csv", "questions.csv", "answers"


class _Answer(msgspec.Struct, omit_defaults=True):
    """One line of `answers/`. A value of null is one that is not finite."""

    question: str
    ids: tuple[str, ...]
    values: dict[str, float | None]
    semantic: int = 0
    failed: bool = False


class _System(msgspec.Struct):
    file: str
    spec: dict[str, Any]
    capacity: int | None = None


class _Head(msgspec.Struct):
    format: int
    dataset: dict[str, Any]
    depth: int
    systems: dict[str, _System]
    versions: dict[str, str]
    time: str
    machine: dict[str, Any]
    revision: str = ""


def save(baseline: Baseline, folder: Path) -> bool:
    """Write a baseline, whole or not at all; False where one with the same answers is there already, and stays.

    Raises InputError if `folder` holds something else, or cannot be written.
    """
    if folder.exists() and not (folder / HEAD).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: is there and is no baseline; name a new folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        shell = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=folder.parent))
        try:
            fresh = shell / "baseline"
            fresh.mkdir()
            _write(baseline, fresh)
            if _same(fresh, folder):
                return False
            if folder.exists():
                folder.rename(shell / "old")
            fresh.rename(folder)
        finally:
            shutil.rmtree(shell, ignore_errors=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}; nothing was changed") from None
    return True


def _write(baseline: Baseline, folder: Path) -> None:
    asked = list(baseline.questions)
    (folder / ANSWERS).mkdir()
    head = _Head(
        FORMAT,
        dict(baseline.dataset),
        baseline.depth,
        {name: _System(slug(name), dict(one.spec), one.capacity) for name, one in baseline.systems.items()},
        dict(baseline.versions),
        baseline.time,
        dict(baseline.machine),
        baseline.revision,
    )
    values = json.dumps(msgspec.to_builtins(head), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / HEAD).write_text(values + "\n", encoding="utf-8", newline="\n")
    rows = ((corpus, name, value) for (corpus, name), value in baseline.memories.items())
    _write_csv(folder / MEMORIES, ("corpus", "memory", "digest"), rows)
    labels = ((name, baseline.questions[name], baseline.labels[name]) for name in asked)
    _write_csv(folder / QUESTIONS, ("question", "asked", "labels"), labels)
    encode = msgspec.json.Encoder().encode
    for name, one in baseline.systems.items():
        with (folder / ANSWERS / f"{slug(name)}.jsonl").open("wb") as out:
            for place, question in enumerate(asked):
                found = {measure: each[place] for measure, each in one.values.items()}
                kept = {measure: value if math.isfinite(value) else None for measure, value in found.items()}
                row = _Answer(question, one.ids[place], kept, one.semantic[place], one.failed[place])
                out.write(encode(row) + b"\n")


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(header)
    table.writerows(rows)
    path.write_bytes(text.getvalue().encode("utf-8", "surrogatepass"))


def _same(fresh: Path, folder: Path) -> bool:
    """Whether two baselines differ in time, machine, versions and revision at most."""
    if not (folder / HEAD).is_file():
        return False

    def contents(root: Path) -> dict[str, bytes]:
        files = {one.relative_to(root).as_posix(): one for one in sorted(root.rglob("*")) if one.is_file()}
        return {name: path.read_bytes() for name, path in files.items() if name != HEAD}

    def head(root: Path) -> dict[str, Any]:
        try:
            values = json.loads((root / HEAD).read_bytes())
        except ValueError:
            return {}
        return {key: value for key, value in values.items() if key not in (*VARYING, "versions", "revision")}

    return head(fresh) == head(folder) and contents(fresh) == contents(folder)


def load(folder: Path) -> Baseline:
    """A baseline from its folder. Raises InputError, with file and line, for one that is missing, broken or edited."""
    path = folder / HEAD
    if not path.is_file():
        raise InputError(f"{folder}: no baseline there ({HEAD} is missing); make one with `recallbench baseline save`")
    head = jsonl.decode(jsonl.text(path), str(path), msgspec.json.Decoder(_Head))
    if head.format != FORMAT:
        raise InputError(f"{path}: format {head.format}; this recallbench reads format {FORMAT}: save it anew")
    memories = {(row[0], row[1]): row[2] for row in _read_csv(folder / MEMORIES, ("corpus", "memory", "digest"))}
    asked = _read_csv(folder / QUESTIONS, ("question", "asked", "labels"))
    questions, labels = {row[0]: row[1] for row in asked}, {row[0]: row[2] for row in asked}
    if not head.systems:
        raise InputError(f"{path}: holds no system")
    systems = {name: _system(folder, name, one, list(questions)) for name, one in head.systems.items()}
    return Baseline(
        head.dataset,
        head.depth,
        memories,
        questions,
        labels,
        systems,
        head.versions,
        head.machine,
        head.time,
        head.revision,
    )


def _system(folder: Path, name: str, system: _System, questions: Sequence[str]) -> SystemBaseline:
    if slug(name) != system.file:
        raise InputError(f"{folder / HEAD}: systems.{name}.file: must be {slug(name)!r}, not {system.file!r}")
    path = folder / ANSWERS / f"{slug(name)}.jsonl"
    rows = list(jsonl.rows(path, _Answer))
    for (number, row), wanted in zip(rows, questions, strict=False):
        if row.question != wanted:
            raise InputError(f"{path}:{number}: question {row.question!r} where {wanted!r} is due; save it anew")
        if set(row.values) != set(rows[0][1].values):
            raise InputError(f"{path}:{number}: has other measures than the first line; save it anew")
    if len(rows) != len(questions):
        raise InputError(f"{path}: {len(rows)} answers to {len(questions)} questions; save it anew")
    answers = [row for _, row in rows]
    measures = list(answers[0].values) if answers else []
    return SystemBaseline(
        system.spec,
        tuple(one.ids for one in answers),
        tuple(one.semantic for one in answers),
        tuple(one.failed for one in answers),
        {measure: tuple(_value(one.values[measure]) for one in answers) for measure in measures},
        system.capacity,
    )


def _value(value: float | None) -> float:
    return math.inf if value is None else value


def _read_csv(path: Path, header: Sequence[str]) -> list[list[str]]:
    if not path.is_file():
        raise InputError(f"{path}: is missing; save the baseline anew")
    try:
        rows = list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8", "surrogatepass"), newline="")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not rows or rows[0] != list(header):
        raise InputError(f"{path}:1: the first line must be {','.join(header)}")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise InputError(f"{path}:{number}: {len(row)} cells; a line is {','.join(header)}")
    return rows[1:]
