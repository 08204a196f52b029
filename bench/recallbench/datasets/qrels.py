"""Graded judgements of documents by query, as BEIR and TREC give them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from recallbench.datasets import jsonl
from recallbench.datasets.stream import Skips

HIGHEST = 10


@dataclass(eq=False)
class Judged:
    """The judgements of one query. Grades below 1 mean judged and not relevant."""

    relevant: dict[str, int] = field(default_factory=dict)
    not_relevant: list[str] = field(default_factory=list)


def parse(rows: Iterator[tuple[int, list[str]]], path: Path, skips: Skips) -> dict[str, Judged]:
    """query id -> judgements, from (line number, [query, document, grade]).

    Raises InputError (or counts, if `skips` allows) for a grade that is no integer up to 10 and for a pair
    that is judged twice with different grades.
    """
    out: dict[str, Judged] = {}
    for number, cells in rows:
        if len(cells) != 3 or not all(cells):
            skips.bad(f"{path}:{number}: expected a query id, a document id and a grade")
            continue
        query, document, written = cells
        try:
            grade = int(written)
        except ValueError:
            skips.bad(f"{path}:{number}: grade {written!r} is no integer")
            continue
        if grade > HIGHEST:
            skips.bad(f"{path}:{number}: grade {grade} is over {HIGHEST}")
            continue
        judged = out.setdefault(query, Judged())
        before = judged.relevant.get(document, 0 if document in judged.not_relevant else None)
        if before is not None:
            if before != max(grade, 0):
                skips.bad(f"{path}:{number}: {query!r} {document!r} is judged {before} and {grade}")
        elif grade > 0:
            judged.relevant[document] = grade
        else:
            judged.not_relevant.append(document)
    return out


def tab_separated(path: Path) -> Iterator[tuple[int, list[str]]]:
    """BEIR: query, document, grade, separated by tabs; a first line with a grade that is no number is a header."""
    for number, line in jsonl.lines(path):
        cells = [cell.strip() for cell in line.split("\t")]
        if number == 1 and len(cells) == 3 and not cells[2].lstrip("+-").isdigit():
            continue
        yield number, cells


def trec(path: Path) -> Iterator[tuple[int, list[str]]]:
    """TREC: query, iteration (unused), document, grade, separated by white space."""
    for number, line in jsonl.lines(path):
        cells = line.split()
        yield number, [cells[0], *cells[2:]] if len(cells) == 4 else []
