"""Judgements as a CSV file that a spreadsheet can edit, and how two passes agree."""

from __future__ import annotations

import contextlib
import csv
import io
import unicodedata
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recallbench.datasets.model import LabelledSet, Question
from recallbench.labelling.pool import Pair
from recallstack.errors import InputError

COLUMNS = ("question", "memory", "grade", "note", "question_text", "memory_text")
"""Only the first four are read back."""
FORBIDDEN = "f"
NOTHING = "n"
GRADES = ("0", "1", "2", FORBIDDEN, NOTHING)
"""0 does not help, 1 helps, 2 answers, f must not come back for this session, n does not help, and nothing in the set
answers this question. Empty: not judged yet."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Judgement:
    """One row. grade: one of GRADES, or empty. where: file and line. first: the grade of an earlier pass, if kept."""

    question: str
    memory: str
    grade: str = ""
    note: str = ""
    where: str = ""
    first: str = ""


def rows_of(labelled: LabelledSet, pairs: Iterable[Pair]) -> list[Judgement]:
    """Pairs as rows without a grade."""
    return [Judgement(pair.question, pair.memory) for pair in pairs]


def shown_texts(labelled: LabelledSet, row: Judgement) -> tuple[str, str]:
    """What a judge reads: the question with its conversation and session, and the memory."""
    question = {one.id: one for one in labelled.questions}[row.question]
    return _question_text(question), _memory_text(labelled, question, row.memory)


def _question_text(question: Question) -> str:
    lines = [f"{entry.role}: {entry.text}" for entry in question.context]
    lines.append(f"user: {question.text}" if lines else question.text)
    session = question.session
    known = {"agent": session.agent_scope, "workspace": session.workspace_scope, "channel": session.channel}
    told = [f"{name} {value}" for name, value in known.items() if value]
    if question.now is not None:
        told.append(f"asked at {question.now:%Y-%m-%d %H:%M}")
    return "\n".join([*lines, *([f"({', '.join(told)})"] if told else [])])


def _memory_text(labelled: LabelledSet, question: Question, name: str) -> str:
    corpus = labelled.corpora[question.corpus]
    memory = corpus.memories[corpus.index[name]]
    told = [f"updated {memory.updated_at:%Y-%m-%d}"] if memory.updated_at else []
    told += [f"supersedes {memory.supersedes}"] if memory.supersedes else []
    told += [
        f"{what} {value}"
        for what, value in (("agent", memory.agent_scope), ("workspace", memory.workspace_scope))
        if value
    ]
    told += [memory.sensitivity] if memory.sensitivity != "public" else []
    text = memory.text.strip()
    return f"{text}\n({', '.join(told)})" if told else text


def write(path: Path, labelled: LabelledSet, rows: Sequence[Judgement]) -> None:
    """Write the rows with their texts, whole or not at all. Raises InputError if the file cannot be written.

    Cells that a spreadsheet would take for a formula begin with an apostrophe.
    """
    questions = {one.id: _question_text(one) for one in labelled.questions}
    by_id = {one.id: one for one in labelled.questions}
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\r\n")
    table.writerow(COLUMNS)
    for row in rows:
        text = _memory_text(labelled, by_id[row.question], row.memory)
        cells = (row.question, row.memory, row.grade, row.note, questions[row.question], text)
        table.writerow([f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells])
    if path.is_dir() or not path.name:
        raise InputError(f"{path}: is a folder; name a file such as pool.csv")
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(out.getvalue(), encoding="utf-8-sig", errors="replace", newline="")
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # a read-only disk refuses that too
            partial.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def read(path: Path, labelled: LabelledSet) -> list[Judgement]:
    """The rows of a file. Raises InputError with file and line: a column is missing, an unknown question or memory,
    a grade that is none, a pair twice with different grades."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file, strict=True)
            table.fieldnames = [(name or "").strip().lower() for name in table.fieldnames or ()]
            missing = [name for name in COLUMNS[:3] if name not in table.fieldnames]
            if missing:
                other = next((mark for mark in (";", "\t") if any(mark in name for name in table.fieldnames)), "")
                hint = f"; save it with commas, not {other!r}" if other else ""
                raise InputError(
                    f"{path}:1: the column {missing[0]!r} is missing; the first line names the columns{hint}"
                )
            rows, line = [], table.line_num
            for cells in table:  # a record may span lines: texts do
                rows.append(_row(cells, labelled, f"{path}:{line + 1}"))
                line = table.line_num
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8; save the file as CSV in UTF-8") from None
    except csv.Error as error:
        raise InputError(f"{path}: not a CSV file (from line {table.line_num} on): {error}") from None
    seen: dict[tuple[str, str], Judgement] = {}
    for row in rows:
        first = seen.setdefault((row.question, row.memory), row)
        if first.grade != row.grade:
            raise InputError(f"{row.where}: {row.question} and {row.memory} have another grade at {first.where}")
    return list(seen.values())


def _row(cells: Mapping[str, Any], labelled: LabelledSet, where: str) -> Judgement:
    def cell(name: str) -> str:
        return str(cells.get(name) or "").strip()

    def name_in(column: str, known: Container[str]) -> str:
        """As written, else without what spreadsheets and hands add: blanks around it, an apostrophe before it."""
        raw = str(cells.get(column) or "")
        forms = (raw, raw.removeprefix("'"), raw.strip(), raw.strip().removeprefix("'"))
        return next((form for form in forms if form in known), raw)

    questions = {one.id: one for one in labelled.questions}
    question = name_in("question", questions)
    if question not in questions:
        raise InputError(f"{where}: no question {question!r} in {labelled.info.name}")
    index = labelled.corpora[questions[question].corpus].index
    memory = name_in("memory", index)
    if memory not in index:
        raise InputError(f"{where}: no memory {memory!r} in the corpus of question {question}")
    grade = _grade(cell("grade"))
    if grade and grade not in GRADES:
        raise InputError(f"{where}: grade is {cell('grade')!r}; use one of {', '.join(GRADES)}, or leave it empty")
    return Judgement(question, memory, grade, cell("note"), where, cell("first"))


def _grade(written: str) -> str:
    """2.0 and 2,00 (spreadsheets), and full-width digits (Chinese input methods) are the digit that they show."""
    plain = unicodedata.normalize("NFKC", written).lower()
    whole, mark, rest = plain.replace(",", ".").partition(".")
    return whole if mark and rest and not rest.strip("0") else plain


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two passes over the same pairs. kappa: Cohen's, unweighted; weighted: with linear weights on the grades.

    A kappa between two passes of the makers says how consistent they are; it is no agreement of users.
    """

    pairs: int
    same: int
    kappa: float
    weighted: float
    table: Mapping[tuple[str, str], int]
    differing: tuple[tuple[Judgement, str], ...]


def agreement(labelled: LabelledSet, second: Sequence[Judgement]) -> Agreement:
    """The labels of the set (first pass) against a second pass (Cohen 1960; weights: Cohen 1968).

    A column `first` in the file stands for the labels, where they were changed by what the second pass showed.
    Raises InputError where no pair was judged twice.
    """
    from sklearn.metrics import cohen_kappa_score

    questions = {one.id: one for one in labelled.questions}
    first: list[str] = []
    twice: list[Judgement] = []
    for row in second:
        question = questions[row.question]
        grade = str(min(question.relevant[row.memory], 2)) if row.memory in question.relevant else None
        grade = "0" if grade is None and row.memory in question.not_relevant else grade
        grade = row.first or grade  # labels may have changed since: by this very comparison
        if row.grade in ("0", "1", "2") and grade is not None:
            first.append(grade)
            twice.append(row)
    if not twice:
        raise InputError("no pair of the file was judged in both passes; see `datasets pool --again`")
    grades = [row.grade for row in twice]
    cells = {(a, b): 0 for a in "012" for b in "012"}
    for pair in zip(first, grades, strict=True):
        cells[pair] += 1
    same = sum(a == b for a, b in zip(first, grades, strict=True))
    one_grade = len({*first, *grades}) == 1  # kappa is 0/0 there
    return Agreement(
        len(twice),
        same,
        1.0 if one_grade else float(cohen_kappa_score(first, grades)),
        1.0 if one_grade else float(cohen_kappa_score(first, grades, weights="linear")),
        cells,
        tuple((replace(row), old) for row, old in zip(twice, first, strict=True) if row.grade != old),
    )
