"""A run on disk, read back into an Evaluation, so that tables of a report are made by the code of tables of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.evaluation.evaluate import Evaluation
from recallbench.evaluation.trust import Check
from recallbench.measures import parse_measure
from recallbench.runs.store import FORMAT
from recallbench.runs.tables import FACTS
from recallbench.systems.base import SystemRun, TraceRow
from recallstack.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Float = NDArray[np.float64]
FILES = ("manifest.json", "summary.json", "hits.parquet", "measures.parquet", "trace.parquet", *FACTS)
TEXTS = "texts.jsonl"


@dataclass(frozen=True, eq=False)
class StoredRun:
    """What a report is made from.

    evaluation: without memories (corpora are empty). manifest: of the run. memories: how many the set has.
    folders: where it was read from; several if runs of the same questions were put together. tokens: float64
    `[S, Q]`, of what came back. latency: system -> median in milliseconds, where it was timed. texts: (kind, corpus,
    id) -> text, kind `question` or `memory`; empty unless the run was made with texts.
    """

    evaluation: Evaluation
    manifest: dict[str, Any]
    memories: int
    folders: tuple[Path, ...]
    tokens: Float
    latency: dict[str, float]
    texts: dict[tuple[str, str, str], str]

    @property
    def name(self) -> str:
        return self.evaluation.labelled.info.name

    def without_texts(self) -> StoredRun:
        """The same with no text: what a report shows unless it is asked for more."""
        return replace(self, texts={})

    @property
    def identity(self) -> tuple[Any, ...]:
        """What two runs must share for their systems to stand in one table."""
        settings = self.manifest["settings"]
        return (
            self.name,
            self.manifest["dataset"]["memories"],
            self.manifest["dataset"]["labels"],
            self.evaluation.depth,
            self.evaluation.split,
            settings.get("query"),
            self.manifest["published"],
            tuple(question.id for question in self.evaluation.labelled.questions),
        )


def run_folders(paths: Sequence[Path]) -> list[Path]:
    """The run folders that these paths are or hold. Raises InputError for a path that is none and holds none."""
    out: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            raise InputError(f"{path}: no such folder; give the folder of a run, as `recallbench run` prints it")
        if (path / "manifest.json").is_file():
            out[path] = None
            continue
        inside = sorted(one.parent for one in path.glob("*/manifest.json") if not one.parent.name.startswith("."))
        if not inside:
            raise InputError(f"{path}: not a run (it has no manifest.json) and holds none; give the folder of a run")
        out.update(dict.fromkeys(inside))
    return list(out)


def load_run(folder: Path) -> StoredRun:
    """One run. Raises InputError that names the file that is missing or damaged."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the folder of a run, as `recallbench run` prints it")
    for name in FILES:
        if not (folder / name).is_file():
            hint = "it was made by an older recallbench" if name in FACTS else "it is not whole"
            raise InputError(f"{folder / name}: no such file; {hint}: run again")
    manifest, summary = _json(folder / "manifest.json"), _json(folder / "summary.json")
    if manifest.get("format") != FORMAT:
        found = f"a run of format {manifest.get('format')!r}, this recallbench reads {FORMAT}"
        raise InputError(f"{folder / 'manifest.json'}: {found}; run again, or report with the version that made it")
    try:
        return _assembled(folder, manifest, summary)
    except (KeyError, TypeError, IndexError) as error:
        raise InputError(f"{folder}: not a run that this version can read ({error!r}); run again") from None


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot read: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: not a JSON object")
    return value


def _table(path: Path) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        frame: pd.DataFrame = pq.read_table(path).to_pandas()
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: cannot read: {' '.join(str(error).split())}") from None
    return frame


def _assembled(folder: Path, manifest: dict[str, Any], summary: dict[str, Any]) -> StoredRun:
    questions = _questions(folder)
    at = {question.id: place for place, question in enumerate(questions)}
    systems, measures = list(manifest["systems"]), [parse_measure(one) for one in manifest["measures"]]
    values = _table(folder / "measures.parquet")
    shape = len(systems), len(measures), len(questions)
    if len(values) != np.prod(shape):
        raise InputError(f"{folder / 'measures.parquet'}: {len(values)} rows where {np.prod(shape)} belong; run again")
    answers = _table(folder / "answers.parquet")
    info = SetInfo(
        summary["dataset"],
        version=summary["version"],
        licence=manifest["dataset"]["licence"],
        default_rel=manifest["dataset"]["default_rel"],
        depth=summary["depth"],
    )
    evaluation = Evaluation(
        LabelledSet(info, {}, tuple(questions)),
        _runs(folder, manifest, at, answers),
        tuple(measures),
        values["value"].to_numpy(np.float64).reshape(shape),
        values["counts"].to_numpy(np.bool_).reshape(shape),
        summary["depth"],
        summary["split"],
        tuple(Check(one["level"], one["name"], one["system"], one["message"]) for one in summary["checks"]),
    )
    grid = len(systems), len(questions)
    return StoredRun(
        evaluation,
        manifest,
        summary["memories"],
        (folder,),
        answers["tokens"].to_numpy(np.float64).reshape(grid),
        {name: float(one["p50_ms"]) for name, one in manifest.get("latency", {}).items()},
        _texts(folder / TEXTS),
    )


def _questions(folder: Path) -> list[Question]:
    judged: dict[str, dict[str, dict[str, int]]] = {}
    for row in _table(folder / "labels.parquet").itertuples():
        judged.setdefault(str(row.question), {}).setdefault(str(row.kind), {})[str(row.memory)] = int(str(row.grade))
    out = []
    for values in _table(folder / "questions.parquet").to_dict("records"):
        mine = judged.get(values["question"], {})
        out.append(
            Question(
                id=values["question"],
                text="",
                corpus=values["corpus"],
                lang=values["lang"],
                categories=tuple(values["categories"]),
                cluster=_or_none(values["cluster"]),
                split=_or_none(values["split"]),
                relevant=mine.get("relevant", {}),
                not_relevant=tuple(mine.get("not_relevant", ())),
                forbidden=tuple(mine.get("forbidden", ())),
                expects_empty=bool(values["expects_empty"]),
            )
        )
    return out


def _or_none(value: Any) -> Any:
    return value if isinstance(value, str) else None


def _runs(folder: Path, manifest: dict[str, Any], at: dict[str, int], answers: pd.DataFrame) -> tuple[SystemRun, ...]:
    systems = list(manifest["systems"])
    ids: dict[str, list[list[str]]] = {name: [[] for _ in at] for name in systems}
    scores: dict[str, list[list[float]]] = {name: [[] for _ in at] for name in systems}
    hits = _table(folder / "hits.parquet")
    for system, question, memory, score in zip(
        hits["system"], hits["question"], hits["memory"], hits["score"], strict=True
    ):
        ids[system][at[question]].append(memory)
        scores[system][at[question]].append(score)
    losses: dict[str, list[dict[str, str]]] = {name: [{} for _ in at] for name in systems}
    lost = _table(folder / "losses.parquet")
    for system, question, memory, outcome in zip(
        lost["system"], lost["question"], lost["memory"], lost["outcome"], strict=True
    ):
        losses[system][at[question]][memory] = outcome
    trace: dict[str, list[TraceRow]] = {name: [] for name in systems}
    rows = _table(folder / "trace.parquet")
    for system, question, stage, rank, memory in zip(
        rows["system"], rows["question"], rows["stage"], rows["rank"], rows["memory"], strict=True
    ):
        trace[system].append(TraceRow(at[question], str(stage), int(rank), memory))
    failed = answers["failed"].to_numpy(np.bool_).reshape(len(systems), len(at))
    semantic = answers["semantic"].to_numpy(np.int32).reshape(len(systems), len(at))
    return tuple(
        SystemRun(
            name,
            manifest["systems"][name],
            tuple(map(tuple, ids[name])),
            tuple(map(tuple, scores[name])),
            semantic[s],
            failed[s],
            tuple(losses[name]) if any(losses[name]) else (),
            tuple(trace[name]),
        )
        for s, name in enumerate(systems)
    )


class _Text(msgspec.Struct):
    kind: str
    corpus: str
    id: str
    text: str


def _texts(path: Path) -> dict[tuple[str, str, str], str]:
    if not path.is_file():
        return {}
    out = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            one = msgspec.json.decode(line, type=_Text)
        except msgspec.DecodeError as error:
            raise InputError(f"{path}:{number}: cannot read: {error}") from None
        out[one.kind, one.corpus, one.id] = one.text
    return out
