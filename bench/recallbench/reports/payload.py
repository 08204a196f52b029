"""The data of the table of questions, small enough to lie inside the page.

Numbers are written as columns, equal columns once, lists of memories as places in the union of a question's lists; all
of it is one JSON value, compressed with gzip. `report.js` reads it.
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from recallbench.reports.look import LookAt
from recallbench.reports.section import Section
from recallbench.systems.base import TraceRow

DIGITS = 4
"""Decimals of a value in the table of questions."""


class _Columns:
    """Columns of numbers, each kept once."""

    def __init__(self) -> None:
        self.held: list[list[Any]] = []
        self._at: dict[str, int] = {}

    def add(self, column: list[Any]) -> int:
        key = json.dumps(column)
        if key not in self._at:
            self._at[key] = len(self.held)
            self.held.append(column)
        return self._at[key]


class _Codes:
    """Names as numbers, in the order of their first appearance."""

    def __init__(self) -> None:
        self._at: dict[Any, int] = {}

    def of(self, name: Any) -> int:
        return self._at.setdefault(name, len(self._at))

    @property
    def names(self) -> list[Any]:
        return list(self._at)


def packed(value: Any) -> str:
    """A JSON value or a text, compressed with gzip, as Base64; the same bytes for the same value."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("utf-8", "backslashreplace"), 9, mtime=0)).decode("ascii")


def questions_payload(section: Section, top: int) -> dict[str, Any]:
    """What the table of questions shows. top: rows of each list; longer ones are counted."""
    evaluation = section.run.evaluation
    questions = evaluation.labelled.questions
    memories, corpora, langs, categories = _Codes(), _Codes(), _Codes(), _Codes()
    out: dict[str, Any] = {
        "systems": list(evaluation.systems),
        "first": section.held.pick,
        "second": section.held.second or section.held.pick,
        "measures": [str(measure) for measure in evaluation.measures],
        "higher": [measure.higher_is_better for measure in evaluation.measures],
        "rel": evaluation.labelled.info.default_rel,
        "id": [question.id for question in questions],
        "corpus": [corpora.of(question.corpus) for question in questions],
        "lang": [langs.of(question.lang) for question in questions],
        "cats": [[categories.of(name) for name in question.categories] for question in questions],
        "split": [question.split or "" for question in questions],
        "empty": [q for q, question in enumerate(questions) if question.expects_empty],
        "look": [_look(one) for one in section.verdict.look],
    }
    out.update(corpora=corpora.names, langs=langs.names, categories=categories.names)
    out.update(_values(section))
    out.update(_labels(section, memories))
    out.update(_lists(section, memories, top))
    out.update(_trace(section))
    out["m"] = [name for _, name in memories.names]
    if section.run.texts:
        out["text"] = [section.text_of(q) for q in range(len(questions))]
        out["mt"] = [section.run.texts.get(("memory", *key), "") for key in memories.names]
    return out


def _look(one: LookAt) -> dict[str, Any]:
    return {"q": one.place, "en": one.why.en, "zh": one.why.zh}


def _values(section: Section) -> dict[str, Any]:
    evaluation, columns = section.run.evaluation, _Columns()
    at = [
        [
            columns.add([_rounded(v) if c else None for v, c in zip(values.tolist(), counts.tolist(), strict=True)])
            for values, counts in zip(of_system, counted, strict=True)
        ]
        for of_system, counted in zip(evaluation.values, evaluation.counts, strict=True)
    ]
    failed = [np.flatnonzero(run.failed).tolist() for run in evaluation.runs]
    return {"v": columns.held, "vi": at, "failed": failed}


def _rounded(value: float) -> float | int | str:
    """Few digits; whole numbers without a decimal point. JSON has no infinity: a text stands for it."""
    if not math.isfinite(value):
        return "∞"
    short = round(value, DIGITS)
    return int(short) if short == int(short) else short


def _labels(section: Section, memories: _Codes) -> dict[str, Any]:
    """Labels question by question: counts, memories, grades; -1 is a forbidden memory. Relevant ones come first."""
    counts, codes, grades = [], [], []
    for question in section.run.evaluation.labelled.questions:
        mine = [(memory, grade) for memory, grade in question.relevant.items() if grade > 0]
        mine += [(memory, 0) for memory, grade in question.relevant.items() if grade <= 0]
        mine += [(memory, 0) for memory in question.not_relevant]
        mine += [(memory, -1) for memory in question.forbidden]
        counts.append(len(mine))
        codes += [memories.of((question.corpus, memory)) for memory, _ in mine]
        grades += [grade for _, grade in mine]
    return {"ln": counts, "lm": codes, "lg": grades}


def _lists(section: Section, memories: _Codes, top: int) -> dict[str, Any]:
    evaluation, columns = section.run.evaluation, _Columns()
    unions = []
    for q, question in enumerate(evaluation.labelled.questions):
        union = _Codes()
        for run in evaluation.runs:
            for memory in _first(run.ids[q], top):
                union.of(memory)
        unions.append((question.corpus, union))
    at = []
    for run in evaluation.runs:
        shown = [
            [union.of(memory) for memory in _first(ids, top)] for ids, (_, union) in zip(run.ids, unions, strict=True)
        ]
        more = [len(dict.fromkeys(ids)) - len(one) for ids, one in zip(run.ids, shown, strict=True)]
        at.append([columns.add(_flat(shown)), columns.add([len(one) for one in shown]), columns.add(more)])
    return {
        "un": [len(union.names) for _, union in unions],
        "um": [memories.of((corpus, memory)) for corpus, union in unions for memory in union.names],
        "lists": columns.held,
        "li": at,
    }


def _first(ids: Sequence[str], top: int) -> list[str]:
    return list(dict.fromkeys(ids))[:top]


def _flat(rows: Iterable[Sequence[int]]) -> list[int]:
    return [one for row in rows for one in row]


def _in_order(trace: Sequence[TraceRow]) -> list[str]:
    """The stages of a system in the order in which they follow each other in every question, where there is one."""
    follows: dict[str, dict[str, None]] = {}
    for before, after in itertools.pairwise(trace):
        follows.setdefault(before.stage, {})
        if before.question == after.question and before.stage != after.stage:
            follows.setdefault(after.stage, {})[before.stage] = None
    if trace:
        follows.setdefault(trace[-1].stage, {})
    try:
        return list(TopologicalSorter(follows).static_order())
    except CycleError:
        return list(follows)


def _trace(section: Section) -> dict[str, Any]:
    """For each system the rank of each relevant memory after each of its stages, and what became of it."""
    evaluation, columns, outcomes = section.run.evaluation, _Columns(), _Codes()
    place: dict[tuple[int, str], int] = {}
    for q, question in enumerate(evaluation.labelled.questions):
        for memory, grade in question.relevant.items():
            if grade > 0:
                place[q, memory] = len(place)
    stages, lost = [], []
    for run in evaluation.runs:
        ranks: dict[str, list[int]] = {}
        for row in run.trace:
            if (row.question, row.memory) in place:
                ranks.setdefault(row.stage, [0] * len(place))[place[row.question, row.memory]] = row.rank
        stages.append([[name, columns.add(ranks[name])] for name in _in_order(run.trace) if name in ranks])
        codes = [-1] * len(place)
        for q, one in enumerate(run.losses):
            for memory, name in one.items():
                if (q, memory) in place:
                    codes[place[q, memory]] = outcomes.of(name)
        lost.append(columns.add(codes) if run.losses else -1)
    return {"stages": stages, "tc": columns.held, "lost": lost, "outcomes": outcomes.names}
