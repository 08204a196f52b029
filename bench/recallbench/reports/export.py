"""The figures of a report for spreadsheets and notebooks: CSV and Parquet."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from recallbench.reports.section import Section
from recallbench.text.escape import cell

Value = str | float | int | None


def _csv(rows: Iterable[Sequence[Value]]) -> str:
    """Comma-separated, a byte-order mark in front so that spreadsheets read it as UTF-8; no cell is a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        writer.writerow([cell(one) if isinstance(one, str) else _written(one) for one in row])
    return "\ufeff" + out.getvalue()


def _written(value: float | int | None) -> str:
    if value is None or math.isnan(value):
        return ""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def results_csv(section: Section) -> str:
    """One row a grouping, group, system and measure: mean, interval, questions; the whole set first, all measures."""
    rows: list[Sequence[Value]] = [("by", "group", "system", "measure", "mean", "low", "high", "questions", "clusters")]
    held = section.held
    for system in held.order:
        for measure in map(str, held.evaluation.measures):
            one = held.means[system, measure]
            rows.append(("", "", system, measure, one.mean, one.low, one.high, one.n, one.clusters))
    for by, cells in section.groups.items():
        for found in cells:
            if found.measure in section.shown:
                one = found.interval
                rows.append(
                    (by, found.group, found.system, found.measure, one.mean, one.low, one.high, one.n, one.clusters)
                )
    return _csv(rows)


def questions_csv(section: Section) -> str:
    """One row a question: what it is, then the primary measure of every system; empty where it does not count."""
    evaluation = section.run.evaluation
    primary = section.held.primary
    texts = bool(section.run.texts)
    header = ["question", "corpus", "lang", "categories", "cluster", "split", *(["text"] if texts else [])]
    rows: list[Sequence[Value]] = [[*header, *(f"{primary} {name}" for name in evaluation.systems)]]
    for q, question in enumerate(evaluation.labelled.questions):
        values = [
            float(evaluation.values[s, 0, q]) if evaluation.counts[s, 0, q] else None
            for s in range(len(evaluation.systems))
        ]
        known: list[Value] = [
            question.id,
            question.corpus,
            question.lang,
            " ".join(question.categories),
            question.cluster or "",
            question.split or "",
        ]
        rows.append([*known, *([section.text_of(q)] if texts else []), *values])
    return _csv(rows)


def write_parquet(path: Path, section: Section) -> None:
    """One row a system, question and measure, typed, with the facts of the question."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    evaluation = section.run.evaluation
    questions = evaluation.labelled.questions
    grid = [(system, str(measure)) for system in evaluation.systems for measure in evaluation.measures]

    def repeated(values: Sequence[str | None]) -> pa.Array:
        return pa.array(list(values) * len(grid), pa.string()).dictionary_encode()

    columns = {
        "dataset": repeated([section.name] * len(questions)),
        "question": repeated([one.id for one in questions]),
        "corpus": repeated([one.corpus for one in questions]),
        "lang": repeated([one.lang for one in questions]),
        "categories": repeated([" ".join(one.categories) for one in questions]),
        "cluster": repeated([one.cluster for one in questions]),
        "split": repeated([one.split for one in questions]),
        "system": pa.array([one[0] for one in grid for _ in questions], pa.string()).dictionary_encode(),
        "measure": pa.array([one[1] for one in grid for _ in questions], pa.string()).dictionary_encode(),
        "value": pa.array(evaluation.values.reshape(-1), pa.float64()),
        "counts": pa.array(evaluation.counts.reshape(-1), pa.bool_()),
    }
    if section.run.texts:
        columns["text"] = repeated([section.text_of(q) for q in range(len(questions))])
    pq.write_table(pa.table(columns), path, compression="zstd")
