"""TREC run files and qrels. Ids are percent-encoded where they hold white space or `%`, so that they round-trip."""

from __future__ import annotations

import functools
import gzip
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from recallstack.errors import InputError

_UNSAFE = re.compile(r"[\s%\x00-\x1f\x7f-\x9f]|\ufeff")

EMPTY = "%"
"""Field of an empty id: a `%` alone, which no other id becomes."""


def quote_id(name: str) -> str:
    """An id as one field: white space, control characters, a byte-order mark and `%` percent-encoded as UTF-8."""
    encoded = _UNSAFE.sub(lambda found: quote(found[0], safe=""), name)
    return encoded or EMPTY


def unquote_id(field: str) -> str:
    """The id that `quote_id` made a field of; a field without `%XX` is itself."""
    if field == EMPTY:
        return ""
    return unquote(field, errors="strict") if "%" in field else field


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8-sig", newline=None) as source:
            for number, line in enumerate(source, 1):
                if line.strip():
                    yield number, line
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: cannot read: {getattr(error, 'strerror', None) or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from None


def _id(field: str, where: str) -> str:
    try:
        return unquote_id(field)
    except UnicodeDecodeError:
        raise InputError(f"{where}: {field!r} is not percent-encoded UTF-8") from None


def read_run(path: Path) -> dict[str, dict[str, float]]:
    """question -> document -> score of `question Q0 document rank score tag` lines (gzip by suffix).

    The order is in the scores: read them with `recallbench.trec.order.trec_order`. Raises InputError, with file and
    line, for a line of another shape, a score that is no finite number, or a document twice in a question.
    """
    out: dict[str, dict[str, float]] = {}
    for number, line in _lines(path):
        where, fields = f"{path}:{number}", line.split()
        if len(fields) != 6:
            raise InputError(f"{where}: {len(fields)} fields; a run line is: question Q0 document rank score tag")
        question, document = _id(fields[0], where), _id(fields[2], where)
        try:
            score = float(fields[4])
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise InputError(f"{where}: score {fields[4]!r} is not a finite number")
        mine = out.setdefault(question, {})
        if document in mine:
            raise InputError(f"{where}: document {document!r} occurs twice for question {question!r}")
        mine[document] = score
    if not out:
        raise InputError(f"{path}: holds no line of a run")
    return out


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """question -> document -> grade of `question 0 document grade` lines, white space or tabs between fields.

    Grades below 0 are kept (they count as not relevant). Raises InputError, with file and line, for a line of
    another shape, a grade that is no whole number, or a pair that occurs twice with different grades.
    """
    out: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        where, fields = f"{path}:{number}", line.split()
        if len(fields) != 4:
            raise InputError(f"{where}: {len(fields)} fields; a qrels line is: question 0 document grade")
        question, document = _id(fields[0], where), _id(fields[2], where)
        try:
            grade = float(fields[3])
        except ValueError:
            grade = math.nan
        if not grade.is_integer():
            raise InputError(f"{where}: grade {fields[3]!r} is not a whole number")
        mine = out.setdefault(question, {})
        if mine.setdefault(document, int(grade)) != int(grade):
            raise InputError(f"{where}: {question!r} and {document!r} already have grade {mine[document]}")
    if not out:
        raise InputError(f"{path}: holds no label")
    return out


def write_run(path: Path, lists: Mapping[str, Sequence[str]], tag: str) -> None:
    """Write lists of ids as a run; scores fall strictly by rank, so that reading them back changes nothing.

    Repeated ids are written at their first place.
    """
    field = functools.cache(quote_id)  # the same ids come back for many questions
    end = quote_id(tag)
    with path.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as out:
        for question, ids in lists.items():
            start, unique = quote_id(question), dict.fromkeys(ids)
            out.writelines(
                f"{start} Q0 {field(document)} {rank} {len(unique) - rank + 1} {end}\n"
                for rank, document in enumerate(unique, 1)
            )


def write_qrels(path: Path, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write labels as qrels."""
    with path.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as out:
        for question, labels in qrels.items():
            for document, grade in labels.items():
                out.write(f"{quote_id(question)} 0 {quote_id(document)} {grade}\n")
