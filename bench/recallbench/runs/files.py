"""The tables of a run: what came back, what was measured, where memories stood, which questions failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from recallbench.evaluation.evaluate import Evaluation
from recallbench.systems.base import SystemRun


def write_tables(folder: Path, evaluation: Evaluation) -> None:
    """`hits.parquet`, `measures.parquet`, `trace.parquet`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    labelled, names = evaluation.labelled, [question.id for question in evaluation.labelled.questions]

    def save(file: str, columns: dict[str, Any]) -> None:
        pq.write_table(pa.table(columns), folder / file, compression="zstd")

    hits = [
        (run.system, names[q], rank, memory, score, match)
        for run in evaluation.runs
        for q, (ids, scores) in enumerate(zip(run.ids, run.scores, strict=True))
        for rank, (memory, score, match) in enumerate(zip(ids, scores, _matches(run, q), strict=True), 1)
    ]
    save(
        "hits.parquet",
        {
            "system": pa.array([row[0] for row in hits], pa.string()).dictionary_encode(),
            "question": pa.array([row[1] for row in hits], pa.string()).dictionary_encode(),
            "rank": pa.array([row[2] for row in hits], pa.int32()),
            "memory": pa.array([row[3] for row in hits], pa.string()).dictionary_encode(),
            "score": pa.array([row[4] for row in hits], pa.float64(), from_pandas=True),  # no score is null
            "match": pa.array([row[5] for row in hits], pa.string()).dictionary_encode(),
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


def _matches(run: SystemRun, question: int) -> tuple[str, ...]:
    """How each row of a question was matched; what a recipe returns is ours."""
    return run.observed.matches[question] if run.observed else ("id",) * len(run.ids[question])


def write_errors(folder: Path, evaluation: Evaluation) -> None:
    """`errors.jsonl`: each question without a valid answer, and why; no file where there is none."""
    rows = list(_errors(evaluation))
    if rows:
        with (folder / "errors.jsonl").open("wb") as out:
            for row in rows:
                out.write(msgspec.json.encode(row) + b"\n")


def _errors(evaluation: Evaluation) -> Iterator[dict[str, str]]:
    for run in evaluation.runs:
        reasons = run.observed.errors if run.observed else ("",) * len(run.ids)
        for question, failed, why in zip(evaluation.labelled.questions, run.failed, reasons, strict=True):
            if failed:
                yield {"system": run.system, "question": question.id, "error": why or "no valid answer"}


def write_texts(folder: Path, evaluation: Evaluation) -> None:
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
