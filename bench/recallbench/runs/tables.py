"""What a report needs of a run beside its measures: questions, labels, what systems answered, what was lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallbench.datasets.model import LabelledSet
from recallbench.evaluation.evaluate import Evaluation
from recallbench.evaluation.match import first_places, text_size
from recallbench.systems.base import SystemRun

FACTS = ("questions.parquet", "labels.parquet", "answers.parquet", "losses.parquet")
"""The files that `write_facts` writes."""


def sizes_of(labelled: LabelledSet, runs: Sequence[SystemRun]) -> NDArray[np.float64]:
    """float64 `[S, Q]`: estimated tokens of what each system returned; taken before ids are hidden."""
    out = np.zeros((len(runs), len(labelled.questions)))
    known: dict[tuple[str, str], int] = {}
    for s, run in enumerate(runs):
        for q, (question, ids) in enumerate(zip(labelled.questions, run.ids, strict=True)):
            for name in first_places(ids):
                key = question.corpus, name
                if key not in known:
                    known[key] = text_size(labelled.corpora[question.corpus], name)[1]
                out[s, q] += known[key]
    return out


def write_facts(folder: Path, evaluation: Evaluation, sizes: NDArray[np.float64]) -> None:
    """Write the files of FACTS. sizes: as `sizes_of` gives them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    questions, runs = evaluation.labelled.questions, evaluation.runs
    names = [question.id for question in questions]

    def save(file: str, columns: dict[str, Any]) -> None:
        pq.write_table(pa.table(columns), folder / file, compression="zstd")

    save(
        "questions.parquet",
        {
            "question": pa.array(names, pa.string()),
            "corpus": pa.array([one.corpus for one in questions], pa.string()),
            "lang": pa.array([one.lang for one in questions], pa.string()),
            "categories": pa.array([list(one.categories) for one in questions], pa.list_(pa.string())),
            "cluster": pa.array([one.cluster for one in questions], pa.string()),
            "split": pa.array([one.split for one in questions], pa.string()),
            "expects_empty": pa.array([one.expects_empty for one in questions], pa.bool_()),
        },
    )
    labels = [
        (one.id, kind, memory, grade)
        for one in questions
        for kind, mine in (
            ("relevant", one.relevant),
            ("not_relevant", dict.fromkeys(one.not_relevant, 0)),
            ("forbidden", dict.fromkeys(one.forbidden, 0)),
        )
        for memory, grade in mine.items()
    ]
    save(
        "labels.parquet",
        {
            "question": pa.array([row[0] for row in labels], pa.string()),
            "kind": pa.array([row[1] for row in labels], pa.string()).dictionary_encode(),
            "memory": pa.array([row[2] for row in labels], pa.string()),
            "grade": pa.array([row[3] for row in labels], pa.int16()),
        },
    )
    save(
        "answers.parquet",
        {
            "system": pa.array([run.system for run in runs for _ in names], pa.string()).dictionary_encode(),
            "question": pa.array(names * len(runs), pa.string()).dictionary_encode(),
            "failed": pa.array([bool(one) for run in runs for one in run.failed], pa.bool_()),
            "semantic": pa.array([int(one) for run in runs for one in run.semantic], pa.int32()),
            "tokens": pa.array(sizes.reshape(-1), pa.float64()),
        },
    )
    lost = [
        (run.system, name, memory, outcome)
        for run in runs
        for name, mine in zip(names, run.losses, strict=False)
        for memory, outcome in mine.items()
    ]
    save(
        "losses.parquet",
        {
            "system": pa.array([row[0] for row in lost], pa.string()).dictionary_encode(),
            "question": pa.array([row[1] for row in lost], pa.string()).dictionary_encode(),
            "memory": pa.array([row[2] for row in lost], pa.string()),
            "outcome": pa.array([row[3] for row in lost], pa.string()).dictionary_encode(),
        },
    )
