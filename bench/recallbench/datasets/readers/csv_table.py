"""A set from a spreadsheet: `questions.csv`, with `memories.csv`, `memories.jsonl` or `notes/`."""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from recallbench.datasets import jsonl
from recallbench.datasets.labels import Either, QuestionRow
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.datasets.readers import native
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import Stream, gather
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory

QUESTION_COLUMNS: Mapping[str, str] = {
    "question": "the text; must be there",
    "relevant": "what answers it (grade 2): memory ids or snippets of their text, separated by ;",
    "helps": "what helps without answering (grade 1), in the same form",
    "not_relevant": "judged and not relevant, in the same form",
    "forbidden": "must never be returned, in the same form",
    "id": "of the question; else q1, q2, … by row",
    "corpus": "else main",
    "lang": "such as zh or en",
    "category": "one or more, separated by ;",
    "cluster": "of questions that are not independent",
    "split": "dev or test",
    "now": "time of asking, such as 2026-05-01 or 2026-05-01T09:00:00Z",
    "expects_empty": "true where nothing answers the question",
    "note": "for readers",
}
"""The columns of `questions.csv`, in any order."""
MEMORY_COLUMNS = (
    "id", "content", "title", "corpus", "type", "importance", "quality", "archived", "forgotten", "created_at",
    "updated_at", "agent_scope", "workspace_scope", "sensitivity", "tags", "supersedes",
)  # fmt: skip
"""The columns of `memories.csv`: fields of a memory, tags separated by ;. `id` and `content` must be there."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""Old spreadsheets end lines with a carriage return alone."""


def read(folder: Path) -> LabelledSet:
    """The folder in memory; see `stream`. Raises InputError with file and line."""
    return gather(stream(folder))


def stream(folder: Path) -> Stream:
    """A folder with questions.csv and memories.csv (or memories.jsonl, or notes/); dataset.toml is optional.

    Files are UTF-8 with a header line and commas; an empty cell says nothing. Raises InputError for what is
    missing.
    """
    path, table = folder / "questions.csv", folder / "memories.csv"
    if not path.is_file():
        raise InputError(f"{path}: no such file; its columns are {', '.join(QUESTION_COLUMNS)}")
    toml = folder / native.TOML
    info = native.read_info(toml) if toml.is_file() else SetInfo(name=folder.resolve().name)
    if table.is_file() and (folder / native.NOTES).is_dir():
        raise InputError(f"{folder}: has both {table.name} and {native.NOTES}/; keep one of them")
    if table.is_file():
        memories, memories_in = (lambda skips: _memories(table, skips)), str(table)
    else:
        memories, memories_in = native.memories_of(folder)
    return Stream(info, memories, lambda skips: _questions(path, skips), memories_in, str(path))


def _rows(
    path: Path, known: tuple[str, ...], needed: tuple[str, ...], skips: Skips
) -> Iterator[tuple[str, dict[str, str]]]:
    """(file:line where the row begins, cells that are not empty by column) of each row."""
    reader = csv.reader(list(_lines(path)), strict=True)  # whole: an error must not leave the file open
    header: list[str] | None = None
    begins = 1
    try:
        for row in reader:
            where, begins = f"{path}:{begins}", reader.line_num + 1
            if not any(cell.strip() for cell in row):
                continue
            if header is None:
                header = [cell.strip() for cell in row]
                _check_header(header, where, known, needed)
            elif len(row) != len(header):
                skips.bad(f"{where}: {len(row)} cells under {len(header)} columns")
            else:
                yield where, {name: cell for name, cell in zip(header, row, strict=True) if cell.strip()}
    except csv.Error as error:
        raise InputError(f"{path}:{begins}: broken CSV: {error}") from None


def _lines(path: Path) -> Iterator[str]:
    with contextlib.closing(jsonl.raw_lines(path)) as lines:
        for number, raw in enumerate(lines, 1):
            try:
                yield from _LINE.findall(raw.decode("utf-8"))
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{path}:{number}: byte {error.start + 1} is not UTF-8; save the file as UTF-8"
                ) from None


def _check_header(header: list[str], where: str, known: tuple[str, ...], needed: tuple[str, ...]) -> None:
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise InputError(f"{where}: the columns are not separated by commas; save the table as CSV with commas")
    for name in header:
        if name not in known:
            raise InputError(f"{where}: unknown column {name!r}; {jsonl.nearest(name, known)}")
        if header.count(name) > 1:
            raise InputError(f"{where}: column {name!r} occurs twice")
    for name in needed:
        if name not in header:
            raise InputError(f"{where}: column {name!r} is missing")


def _split(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(";") if part.strip()]


def _questions(path: Path, skips: Skips) -> Iterator[tuple[str, Question]]:
    for number, (where, cells) in enumerate(_rows(path, tuple(QUESTION_COLUMNS), ("question",), skips), 1):
        try:
            row = _question(number, cells, where)
        except InputError as error:
            skips.bad(str(error))
            continue
        yield where, row


def _question(number: int, cells: dict[str, str], where: str) -> QuestionRow:
    if "question" not in cells:
        raise InputError(f"{where}: the cell under question is empty")
    values: dict[str, object] = {
        "id": cells.get("id", f"q{number}").strip(),
        "text": cells["question"],
        "categories": _split(cells.get("category", "")),
    }
    for name in ("corpus", "lang", "cluster", "split", "now", "expects_empty", "note"):
        if name in cells:
            values[name] = cells[name].strip()
    if _DAY.fullmatch(str(values.get("now", ""))):
        values["now"] = f"{values['now']}T00:00:00Z"
    row = _convert(values, QuestionRow, where)

    def labels(column: str, grade: int | None = None) -> tuple[Either, ...]:
        return tuple(Either(snippet=part, grade=grade) for part in _split(cells.get(column, "")))

    return msgspec.structs.replace(
        row,
        relevant=labels("relevant") + labels("helps", 1),
        not_relevant=labels("not_relevant"),
        forbidden=labels("forbidden"),
    )


def _convert(values: dict[str, object], row_type: type[jsonl.T], where: str) -> jsonl.T:
    """Cells as a row: `strict=False` reads numbers, times and true or false from their text."""
    try:
        return msgspec.convert(values, row_type, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {jsonl.one_line(str(error))}") from None


def _memories(path: Path, skips: Skips) -> Iterator[tuple[str, Memory]]:
    for where, cells in _rows(path, MEMORY_COLUMNS, ("id", "content"), skips):
        values: dict[str, object] = {
            name: cell if name in ("title", "content") else cell.strip() for name, cell in cells.items()
        }
        if "tags" in cells:
            values["tags"] = _split(cells["tags"])
        try:
            memory = _convert(values, Memory, where)
        except InputError as error:
            skips.bad(str(error))
            continue
        yield where, memory
