"""Graded judgements of documents by query, as BEIR and TREC give them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recallbench.datasets import jsonl
from recallbench.datasets.model import Question, Split
from recallbench.datasets.resolve import Place
from recallbench.datasets.skips import Skips

HIGHEST = 10
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_QUERY_HEADS = frozenset({"query-id", "query_id", "queryid", "qid"})
_GRADE_HEADS = frozenset({"score", "grade", "rel", "relevance", "label"})

Lines = Callable[[Path, Skips], Iterator[tuple[int, list[str]]]]
"""(line number, [query, document, grade]) of each line; other cells where a line has another shape."""


@dataclass(eq=False)
class Judged:
    """The judgements of one query; grades below 1 mean judged and not relevant.

    where: `file:line` of the first of them.
    """

    where: str
    split: Split | None = None
    grades: dict[str, int] = field(default_factory=dict)

    def question(self, name: str, text: str) -> Question:
        return Question(
            id=name,
            text=text,
            split=self.split,
            relevant={document: grade for document, grade in self.grades.items() if grade > 0},
            not_relevant=tuple(document for document, grade in self.grades.items() if grade <= 0),
        )


def parse(path: Path, lines: Lines, skips: Skips, split: Split | None = None) -> dict[str, Judged]:
    """query id -> judgements of a file.

    A pair that is repeated with the same grade counts once. Raises InputError (or counts, if `skips` allows)
    for a line of another shape, a grade that is no whole number up to 10 (`1.0` is one, `0.5` is none: to
    round it would change the judgement), and a pair that is judged twice with different grades.
    """
    out: dict[str, Judged] = {}
    for number, cells in lines(path, skips):
        where = f"{path}:{number}"
        if len(cells) != 3 or not all(cells):
            skips.bad(f"{where}: expected a query id, a document id and a grade; ids that hold blanks need tabs")
            continue
        query, document, written = cells
        grade = float(written) if _NUMBER.fullmatch(written) else None
        if grade is None or not grade.is_integer():
            skips.bad(f"{where}: grade {written!r} is no whole number")
            continue
        if grade > HIGHEST:
            skips.bad(f"{where}: grade {written} is over {HIGHEST}")
            continue
        judged = out.setdefault(query, Judged(where, split))
        before = judged.grades.setdefault(document, max(int(grade), 0))
        if before != max(grade, 0):
            skips.bad(f"{where}: {query!r} {document!r} is already judged {before}, and here {written}")
    return out


def three(path: Path, skips: Skips) -> Iterator[tuple[int, list[str]]]:
    """BEIR: query, document, grade, separated by tabs (or white space, where a line has no tab); header or none."""
    first = True
    for number, line in jsonl.lines(path, skips):
        cells = line.split("\t") if "\t" in line else line.split()
        cells[-1] = cells[-1].strip()
        header = first and len(cells) == 3 and (cells[0].lower() in _QUERY_HEADS or cells[2].lower() in _GRADE_HEADS)
        first = False
        if not header:
            yield number, cells


def four(path: Path, skips: Skips) -> Iterator[tuple[int, list[str]]]:
    """TREC: query, iteration (unused), document, grade, separated by tabs or white space."""
    for number, line in jsonl.lines(path, skips):
        cells = line.split("\t") if line.count("\t") == 3 else line.split()
        yield number, [cells[0], cells[2], cells[3].strip()] if len(cells) == 4 else []


def place(paths: Iterable[Path], lines: Lines) -> Place:
    """Where a judgement is written: found when it is asked for, by one pass over the files."""

    def find(query: str, document: str) -> str:
        for path in paths:
            for number, cells in lines(path, Skips(allowed=True)):
                if cells[:2] == [query, document]:
                    return f"{path}:{number}"
        return "qrels"

    return find


def judged_questions(
    asked: Iterator[tuple[str, str, str]], judged: Mapping[str, Judged], skips: Skips, notes: list[str]
) -> Iterator[tuple[str, Question]]:
    """The questions of (where, id, text) that have judgements; `notes` becomes how many have none.

    A judged query that is not among those asked is given to `skips`.
    """
    unjudged, seen = 0, set[str]()
    for where, name, text in asked:
        if name in judged:
            seen.add(name)
            yield where, judged[name].question(name, text)
        else:
            unjudged += 1
    for name, one in judged.items():
        if name not in seen:
            skips.bad(f"{one.where}: query {name!r} is judged here, and is not among the queries")
    notes[:] = [f"queries without judgements, left out: {unjudged}"] if unjudged else []
