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

from recallbench.datasets.model import LabelledSet
from recallbench.evaluation.evaluate import Evaluation
from recallbench.evaluation.latency import latencies
from recallbench.evaluation.summary import summary_markdown, summary_values
from recallbench.measures import Measure
from recallbench.runs.answers import Held
from recallbench.runs.files import write_errors, write_tables, write_texts
from recallbench.runs.tables import sizes_of, write_facts
from recallbench.systems.base import Observed, SystemRun, TraceRow
from recallbench.trec.files import write_run
from recallstack.errors import InputError

LIBRARIES = ("recallbench", "numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "faiss-cpu", "rank-bm25")
FORMAT = 1
"""Of the folder of a run; another one is not read."""
VARYING = ("time", "machine", "latency")
"""The keys of a manifest that may differ between two runs of the same inputs."""
PRIVATE = ("command", "files", "url", "file")
"""Keys of a system's spec that tell where it is; hashed in a published run."""


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


LONGEST_SLUG = 80
"""Characters of a name that a file name keeps: file systems allow 255 bytes, and prefixes and suffixes come to it."""


def slug(name: str) -> str:
    """A file name of a system or set: letters, digits, `.`, `_`, `+`, `-`; a hash where that changed or cut it."""
    plain = re.sub(r"[^\w.+-]", "_", name, flags=re.ASCII)
    if plain == name and plain not in (".", "..") and len(plain) <= LONGEST_SLUG:
        return plain
    return f"{plain[:LONGEST_SLUG]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


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
            raw = msgspec.json.decode(file.read_bytes(), type=Held)
        except (msgspec.DecodeError, OSError):
            return None  # cut off while it was written: the system is asked again
        if raw.system != system or len(raw.ids) != questions:
            return None
        return raw.thaw()

    def keep(self, run: SystemRun) -> None:
        """Keep one system's answers for `--resume`. Raises InputError if they cannot be written."""
        with self._or_nothing():
            file = self.partial / "answers" / f"{slug(run.system)}.json"
            file.write_bytes(msgspec.json.encode(Held.freeze(run)))

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
            sizes = sizes_of(evaluation.labelled, evaluation.runs)
            if publish:
                evaluation = published(evaluation)
            write_facts(self.partial, evaluation, sizes)
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
        "format": FORMAT,
        "versions": versions,
        "dataset": {
            "name": labelled.info.name,
            "version": labelled.info.version,
            "memories": labelled.memories_hash,
            "labels": labelled.labels_hash,
            "licence": labelled.info.licence,
            "default_rel": labelled.info.default_rel,
        },
        "systems": {run.system: manifest_spec(run.spec, publish) for run in evaluation.runs},
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
        "latency": {name: one.values() for name, one in latencies(evaluation.runs).items()},
    }


def manifest_spec(spec: Mapping[str, Any], publish: bool) -> dict[str, Any]:
    """A system's spec; published, without what tells where it is."""
    if not publish or "system" not in spec:
        return dict(spec)
    return {key: hidden(json.dumps(value)) if key in PRIVATE else value for key, value in spec.items()}


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
            relevant={hidden(memory): grade for memory, grade in one.relevant.items()},
            not_relevant=tuple(map(hidden, one.not_relevant)),
            forbidden=tuple(map(hidden, one.forbidden)),
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
            observed=None if run.observed is None else _public(run.observed),
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


def _public(seen: Observed) -> Observed:
    """What was observed, without the words of the system."""
    import dataclasses

    return dataclasses.replace(seen, errors=tuple("no valid answer" if one else "" for one in seen.errors))


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
    write_tables(folder, evaluation)
    write_errors(folder, evaluation)
    if include_text:
        write_texts(folder, evaluation)
    (folder / "manifest.json").write_bytes(_json(manifest))
    (folder / "summary.json").write_bytes(_json(summary_values(evaluation, baseline)))
    summary = "\n".join([*([lead] if lead else []), summary_markdown(evaluation, baseline)])
    (folder / "summary.md").write_text(summary, encoding="utf-8", newline="\n")
