"""Small runs for the tests of reports: systems with given answers, written and read back as a run on disk."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.evaluation.evaluate import Evaluation, evaluate
from recallbench.measures import parse_measure
from recallbench.reports.section import Section, sections
from recallbench.runs.load import StoredRun, load_run
from recallbench.runs.store import RunFolder, manifest_of
from recallbench.systems.base import SystemRun, TraceRow
from recallstack.ranking.rows import Corpus, Memory

Lists = Mapping[str, Sequence[str]]
"""System -> for each question the ids that it returned; ids of one letter may stand together."""


def small_set(questions: Sequence[Question], memories: Sequence[Memory] | str = "abcdefgh") -> LabelledSet:
    """A set of these questions over one corpus; a text gives memories of one letter each."""
    rows = [Memory(id=one, content=f"text of {one}") if isinstance(one, str) else one for one in memories]
    return hashed(SetInfo("small", version="1", default_rel=1), {"main": Corpus.of("main", rows)}, list(questions))


def run_of(name: str, lists: Sequence[Sequence[str]], **more: Any) -> SystemRun:
    """What a system with these answers returned."""
    ids = tuple(tuple(one) for one in lists)
    scores = tuple(tuple(1.0 - rank / 100 for rank in range(len(one))) for one in ids)
    count = len(ids)
    given = {"semantic": np.zeros(count, np.int32), "failed": np.zeros(count, np.bool_), **more}
    return SystemRun(name, {"fixed": name}, ids, scores, **given)


def evaluated(
    labelled: LabelledSet, runs: Sequence[SystemRun], measures: Sequence[str] = ("RR", "R@2", "Leak"), depth: int = 5
) -> Evaluation:
    return evaluate(labelled, runs, [parse_measure(one) for one in measures], depth)


def written(
    folder: Path, evaluation: Evaluation, *, baseline: str | None = None, publish: bool = False, text: bool = False
) -> Path:
    """The evaluation as a run on disk."""
    settings = {
        "depth": evaluation.depth,
        "split": None,
        "categories": [],
        "corpora": [],
        "query": "task",
        "baseline": baseline,
        "replay": None,
        "allow_zero": [],
        "publish": publish,
        "include_text": text,
    }
    out = RunFolder(folder, f"{evaluation.labelled.info.name}-0123456789ab")
    manifest = manifest_of(evaluation, settings, seed=None, publish=publish)
    return out.finish(evaluation, manifest, baseline=baseline, publish=publish, include_text=text)


def stored(folder: Path, evaluation: Evaluation, **options: Any) -> StoredRun:
    """Written and read back."""
    return load_run(written(folder, evaluation, **options))


def section_of(folder: Path, evaluation: Evaluation, **options: Any) -> Section:
    """The section of a report of this evaluation. options: of `written`, and `shown`: those of `sections`."""
    shown = options.pop("shown", {})
    return sections([stored(folder, evaluation, **options)], **shown)[0]


def traced(losses: Sequence[Mapping[str, str]], rows: Sequence[tuple[int, str, int, str]] = ()) -> dict[str, Any]:
    """Losses and trace rows (question, stage, rank, memory) for `run_of`."""
    return {"losses": tuple(losses), "trace": tuple(TraceRow(*one) for one in rows)}


class Page(HTMLParser):
    """The elements of an HTML document with their attributes, and its packed data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.shown: list[str] = []
        self._script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._script = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def handle_data(self, data: str) -> None:
        if not self._script:
            self.shown.append(data)

    @property
    def text(self) -> str:
        return "".join(self.shown)


def unpacked(html: str) -> dict[str, str]:
    """id -> what lies packed under it."""
    found = re.findall(r'<script type="application/gzip" id="([\w-]+)">([^<]*)</script>', html)
    return {name: gzip.decompress(base64.b64decode(data)).decode() for name, data in found}


def everything(folder: Path) -> dict[str, str]:
    """File -> all its content as text: HTML with its packed data unpacked, Parquet as its values."""
    import pyarrow.parquet as pq

    out = {}
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            text = json.dumps(table.to_pydict(), ensure_ascii=False, default=str) + str(table.schema.metadata)
        else:
            text = path.read_bytes().decode("utf-8")
            if path.suffix == ".html":
                text += "".join(value for name, value in unpacked(text).items() if name != "library")
        out[str(path.relative_to(folder))] = text
    return out
