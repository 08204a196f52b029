"""A run on disk: written whole or not at all, the same bytes for the same inputs (protocols, a run on disk)."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from recallbench.datasets.model import LabelledSet
from recallbench.evaluation import Evaluation
from recallbench.measures import Measure
from recallbench.summary import summary_markdown, summary_values
from recallbench.systems.base import SystemRun, TraceRow
from recallbench.trec import write_run
from recallstack.errors import InputError

LIBRARIES = ("recallbench", "numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "faiss-cpu", "rank-bm25")
VARYING = ("time", "machine")
"""The keys of a manifest that may differ between two runs of the same inputs."""


def run_id(
    labelled: LabelledSet,
    specs: Sequence[Mapping[str, Any]],
    measures: Sequence[Measure],
    settings: Mapping[str, Any],
) -> str:
    """`<set>-<12 hex digits>`: a hash of everything that the result depends on."""
    parts = {
        "recallbench": version("recallbench"),
        "memories": labelled.memories_hash,
        "labels": labelled.labels_hash,
        "systems": [dict(spec) for spec in specs],
        "measures": [str(measure) for measure in measures],
        "settings": dict(settings),
    }
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    return f"{slug(labelled.info.name)}-{digest[:12]}"


def slug(name: str) -> str:
    """A file name of a system or set: letters, digits, `.`, `_`, `+`, `-`; a hash where something was replaced."""
    plain = re.sub(r"[^\w.+-]", "_", name, flags=re.ASCII)
    if plain == name and plain not in (".", ".."):
        return plain
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


class RunFolder:
    """One run being written: answers are kept as they come, and the folder gets its name when all is there."""

    def __init__(self, out: Path, name: str, resume: bool = False) -> None:
        """Prepare `<out>/.<name>.partial`; without `resume` what an interrupted run left there is dropped.

        Raises InputError if `out` cannot be written.
        """
        self.path = out / name
        self.partial = out / f".{name}.partial"
        with _writing(out):
            out.mkdir(parents=True, exist_ok=True)
            if not resume and self.partial.exists():
                shutil.rmtree(self.partial)
            (self.partial / "answers").mkdir(parents=True, exist_ok=True)
            probe = self.partial / ".probe"
            probe.write_bytes(b"")
            probe.unlink()

    def held(self, system: str, questions: int) -> SystemRun | None:
        """The answers that an interrupted run kept, or None."""
        file = self.partial / "answers" / f"{slug(system)}.json"
        if not file.exists():
            return None
        try:
            raw = msgspec.json.decode(file.read_bytes(), type=_Held)
        except (msgspec.DecodeError, OSError):
            return None  # cut off while it was written: the system is asked again
        if raw.system != system or len(raw.ids) != questions:
            return None
        return raw.thaw()

    def keep(self, run: SystemRun) -> None:
        """Keep one system's answers for `--resume`. Raises InputError if they cannot be written."""
        with self._or_nothing():
            file = self.partial / "answers" / f"{slug(run.system)}.json"
            file.write_bytes(msgspec.json.encode(_Held.freeze(run)))

    def finish(
        self,
        evaluation: Evaluation,
        manifest: Mapping[str, Any],
        *,
        baseline: str | None = None,
        publish: bool = False,
        include_text: bool = False,
        lead: Callable[[Evaluation], str] | None = None,
    ) -> Path:
        """Write all files and give the folder its name. Raises InputError if a file cannot be written.

        lead: Markdown that `summary.md` begins with, made from the evaluation as it is written.
        """
        with self._or_nothing():
            shutil.rmtree(self.partial / "answers")
            if publish:
                evaluation = published(evaluation)
            _write_all(self.partial, evaluation, manifest, baseline, include_text, lead(evaluation) if lead else "")
            old = self.path.with_name(f".{self.path.name}.old")
            if old.exists():
                shutil.rmtree(old)
            if self.path.exists():
                self.path.rename(old)
            self.partial.rename(self.path)
            if old.exists():
                shutil.rmtree(old)
        return self.path

    @contextlib.contextmanager
    def _or_nothing(self) -> Iterator[None]:
        try:
            with _writing(self.partial.parent):
                yield
        except InputError:
            shutil.rmtree(self.partial, ignore_errors=True)
            raise


@contextlib.contextmanager
def _writing(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{error.filename or out}: cannot write the run: {error.strerror or error}; nothing was kept"
        ) from None


class _Held(msgspec.Struct):
    """A SystemRun as JSON."""

    system: str
    spec: dict[str, Any]
    ids: list[list[str]]
    scores: list[list[float | None]]
    semantic: list[int]
    failed: list[bool]
    losses: list[dict[str, str]]
    trace: list[tuple[int, str, int, str]]
    capacity: int | None
    notes: list[str]

    @classmethod
    def freeze(cls, run: SystemRun) -> _Held:
        return cls(
            run.system,
            dict(run.spec),
            [list(one) for one in run.ids],
            [list(one) for one in run.scores],
            run.semantic.tolist(),
            run.failed.tolist(),
            [dict(one) for one in run.losses],
            [(row.question, row.stage, row.rank, row.memory) for row in run.trace],
            run.capacity,
            list(run.notes),
        )

    def thaw(self) -> SystemRun:
        return SystemRun(
            self.system,
            self.spec,
            tuple(tuple(one) for one in self.ids),
            tuple(tuple(np.nan if s is None else s for s in one) for one in self.scores),
            np.array(self.semantic, np.int32),
            np.array(self.failed, np.bool_),
            tuple(self.losses),
            tuple(TraceRow(*row) for row in self.trace),
            self.capacity,
            tuple(self.notes),
        )


def manifest_of(
    evaluation: Evaluation, settings: Mapping[str, Any], *, seed: int | None, publish: bool = False
) -> dict[str, Any]:
    """What made the run. No header, no environment, no path of the machine; `time` and `machine` vary."""
    labelled = evaluation.labelled
    versions = {"python": platform.python_version()}
    for name in (*LIBRARIES, "numba", "sentence-transformers", "torch"):
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "format": 1,
        "versions": versions,
        "dataset": {
            "name": labelled.info.name,
            "version": labelled.info.version,
            "memories": labelled.memories_hash,
            "labels": labelled.labels_hash,
            "licence": labelled.info.licence,
        },
        "systems": {run.system: dict(run.spec) for run in evaluation.runs},
        "measures": [str(measure) for measure in evaluation.measures],
        "settings": dict(settings),
        "seed": seed,
        "published": publish,
        "time": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "implementation": sys.implementation.name,
        },
    }


def hidden(name: str) -> str:
    """A stable stand-in for an id: 12 hex digits of its SHA-256."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def published(evaluation: Evaluation) -> Evaluation:
    """The evaluation with ids of questions, memories, corpora and clusters replaced by stable hashes, no notes."""
    import dataclasses

    labelled = evaluation.labelled
    questions = tuple(
        msgspec.structs.replace(
            one,
            id=hidden(one.id),
            text="",
            note="",
            corpus=hidden(one.corpus),
            cluster=None if one.cluster is None else hidden(one.cluster),
        )
        for one in labelled.questions
    )
    runs = tuple(
        dataclasses.replace(
            run,
            ids=tuple(tuple(map(hidden, one)) for one in run.ids),
            losses=tuple({hidden(key): stage for key, stage in one.items()} for one in run.losses),
            trace=tuple(TraceRow(r.question, r.stage, r.rank, hidden(r.memory)) for r in run.trace),
            notes=(),
        )
        for run in evaluation.runs
    )
    checks = tuple(one for one in evaluation.checks if one.name not in ("system-note", "failed-questions"))
    failed = tuple(
        dataclasses.replace(one, message="some questions got no valid answer; each scores the worst value")
        for one in evaluation.checks
        if one.name == "failed-questions"
    )
    return dataclasses.replace(
        evaluation,
        labelled=dataclasses.replace(labelled, questions=questions, notes=()),
        runs=runs,
        checks=(*failed, *checks),
    )


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _write_all(
    folder: Path,
    evaluation: Evaluation,
    manifest: Mapping[str, Any],
    baseline: str | None,
    include_text: bool,
    lead: str,
) -> None:
    questions = [question.id for question in evaluation.labelled.questions]
    (folder / "runs").mkdir()
    for run in evaluation.runs:
        write_run(
            folder / "runs" / f"{slug(run.system)}.trec",
            dict(zip(questions, run.ids, strict=True)),
            run.system,
        )
    _write_tables(folder, evaluation)
    if include_text:
        _write_texts(folder, evaluation)
    (folder / "manifest.json").write_bytes(_json(manifest))
    (folder / "summary.json").write_bytes(_json(summary_values(evaluation, baseline)))
    summary = "\n".join([*([lead] if lead else []), summary_markdown(evaluation, baseline)])
    (folder / "summary.md").write_text(summary, encoding="utf-8", newline="\n")


def _write_tables(folder: Path, evaluation: Evaluation) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    labelled, names = evaluation.labelled, [question.id for question in evaluation.labelled.questions]

    def save(file: str, columns: dict[str, Any]) -> None:
        pq.write_table(pa.table(columns), folder / file, compression="zstd")

    hits = [
        (run.system, names[q], rank, memory, score)
        for run in evaluation.runs
        for q, (ids, scores) in enumerate(zip(run.ids, run.scores, strict=True))
        for rank, (memory, score) in enumerate(zip(ids, scores, strict=True), 1)
    ]
    save(
        "hits.parquet",
        {
            "system": pa.array([row[0] for row in hits], pa.string()).dictionary_encode(),
            "question": pa.array([row[1] for row in hits], pa.string()).dictionary_encode(),
            "rank": pa.array([row[2] for row in hits], pa.int32()),
            "memory": pa.array([row[3] for row in hits], pa.string()).dictionary_encode(),
            "score": pa.array([row[4] for row in hits], pa.float64()),
            "match": pa.array(["id"] * len(hits), pa.string()).dictionary_encode(),
        },
    )
    systems, measures, count = evaluation.systems, [str(m) for m in evaluation.measures], len(names)
    grid = [(system, measure) for system in systems for measure in measures]
    save(
        "measures.parquet",
        {
            "dataset": pa.array([labelled.info.name] * (len(grid) * count), pa.string()).dictionary_encode(),
            "corpus": pa.array([q.corpus for q in labelled.questions] * len(grid), pa.string()).dictionary_encode(),
            "system": pa.array([one[0] for one in grid for _ in names], pa.string()).dictionary_encode(),
            "question": pa.array(names * len(grid), pa.string()).dictionary_encode(),
            "measure": pa.array([one[1] for one in grid for _ in names], pa.string()).dictionary_encode(),
            "value": pa.array(evaluation.values.reshape(-1), pa.float64()),
            "counts": pa.array(evaluation.counts.reshape(-1), pa.bool_()),
        },
    )
    trace = [(run.system, row) for run in evaluation.runs for row in run.trace]
    save(
        "trace.parquet",
        {
            "system": pa.array([one[0] for one in trace], pa.string()).dictionary_encode(),
            "question": pa.array([names[one[1].question] for one in trace], pa.string()).dictionary_encode(),
            "stage": pa.array([one[1].stage for one in trace], pa.string()).dictionary_encode(),
            "rank": pa.array([one[1].rank for one in trace], pa.int32()),
            "memory": pa.array([one[1].memory for one in trace], pa.string()).dictionary_encode(),
        },
    )


def _write_texts(folder: Path, evaluation: Evaluation) -> None:
    """`texts.jsonl`: the text of every question and of every memory that came back or is labelled."""
    labelled = evaluation.labelled
    wanted: dict[tuple[str, str], None] = {}
    for q, question in enumerate(labelled.questions):
        for memory in (*question.relevant, *(m for run in evaluation.runs for m in run.ids[q])):
            if memory in labelled.corpora[question.corpus].index:
                wanted[question.corpus, memory] = None
    rows: list[dict[str, str]] = [
        {"kind": "question", "corpus": q.corpus, "id": q.id, "text": q.text} for q in labelled.questions
    ]
    for corpus, memory in sorted(wanted):
        one = labelled.corpora[corpus]
        rows.append({"kind": "memory", "corpus": corpus, "id": memory, "text": one.memories[one.index[memory]].text})
    with (folder / "texts.jsonl").open("wb") as out:
        for row in rows:
            out.write(msgspec.json.encode(row) + b"\n")
