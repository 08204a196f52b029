"""A set from a spreadsheet: `questions.csv`, with `memories.csv`, `memories.jsonl` or `notes/`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from recallbench.datasets import jsonl, native
from recallbench.datasets.hashing import hashed
from recallbench.datasets.labels import Label, QuestionRow, Resolver
from recallbench.datasets.model import LabelledSet, SetInfo
from recallstack.errors import InputError
from recallstack.rows import Corpus, Memory

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
    "now": "time of asking, ISO 8601",
    "expects_empty": "true where nothing answers the question",
    "note": "for readers",
}
"""The columns of `questions.csv`, in any order."""
MEMORY_COLUMNS = (
    "id", "content", "title", "corpus", "type", "importance", "quality", "archived", "forgotten", "created_at",
    "updated_at", "agent_scope", "workspace_scope", "sensitivity", "tags", "supersedes",
)  # fmt: skip
"""The columns of `memories.csv`: fields of a memory, tags separated by ;. `id` and `content` must be there."""


def read(folder: Path) -> LabelledSet:
    """A folder with questions.csv and memories.csv (or memories.jsonl, or notes/); dataset.toml is optional.

    Files are UTF-8 with a header line and commas; an empty cell says nothing. Raises InputError with file
    and line.
    """
    path = folder / "questions.csv"
    if not path.is_file():
        raise InputError(f"{path}: no such file; its columns are {', '.join(QUESTION_COLUMNS)}")
    toml = folder / native.TOML
    info = native.read_info(toml) if toml.is_file() else SetInfo(name=folder.resolve().name)
    corpora = _corpora(folder)
    resolver = Resolver(corpora)
    questions = []
    for number, (line, cells) in enumerate(_rows(path, tuple(QUESTION_COLUMNS), ("question",)), 1):
        where = f"{path}:{line}"
        questions.append(resolver.question(_question(number, cells, where, corpora), where))
    if not questions:
        raise InputError(f"{path}: holds no question")
    resolver.finish()
    return hashed(info, corpora, questions)


def _rows(path: Path, known: tuple[str, ...], needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """(last line of the row, cells that are not empty by column) of each row."""
    reader = csv.reader(io.StringIO(jsonl.text(path), newline=""), strict=True)
    header: list[str] | None = None
    try:
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            if header is None:
                header = [cell.strip() for cell in row]
                _check_header(header, path, known, needed)
                continue
            if len(row) != len(header):
                raise InputError(f"{path}:{reader.line_num}: {len(row)} cells under {len(header)} columns")
            cells = {name: cell for name, cell in zip(header, row, strict=True) if cell.strip()}
            yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: broken CSV: {error}") from None


def _check_header(header: list[str], path: Path, known: tuple[str, ...], needed: tuple[str, ...]) -> None:
    for name in header:
        if name not in known:
            raise InputError(f"{path}:1: unknown column {name!r}; {jsonl.nearest(name, known)}")
        if header.count(name) > 1:
            raise InputError(f"{path}:1: column {name!r} occurs twice")
    for name in needed:
        if name not in header:
            raise InputError(f"{path}:1: column {name!r} is missing")


def _split(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(";") if part.strip()]


def _question(number: int, cells: dict[str, str], where: str, corpora: Mapping[str, Corpus]) -> QuestionRow:
    corpus = cells.get("corpus", "main").strip()

    def labels(column: str, grade: int | None = None) -> tuple[Label, ...]:
        ids = corpora[corpus].index if corpus in corpora else {}
        return tuple(
            Label(id=part, grade=grade) if part in ids else Label(snippet=part, grade=grade)
            for part in _split(cells.get(column, ""))
        )

    values: dict[str, object] = {
        "id": cells.get("id", f"q{number}").strip(),
        "text": cells.get("question", ""),
        "corpus": corpus,
        "categories": _split(cells.get("category", "")),
    }
    for name in ("lang", "cluster", "split", "now", "expects_empty", "note"):
        if name in cells:
            values[name] = cells[name].strip()
    row = _convert(values, QuestionRow, where)
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


def _corpora(folder: Path) -> dict[str, Corpus]:
    path = folder / "memories.csv"
    if not path.is_file():
        return native.read_corpora(folder)
    memories = []
    first: dict[tuple[str, str], int] = {}
    for line, cells in _rows(path, MEMORY_COLUMNS, ("id", "content")):
        values: dict[str, object] = {
            name: cell if name in ("title", "content") else cell.strip() for name, cell in cells.items()
        }
        if "tags" in cells:
            values["tags"] = _split(cells["tags"])
        memory = _convert(values, Memory, f"{path}:{line}")
        key = (memory.corpus, memory.id)
        if key in first:
            raise InputError(f"{path}:{line}: memory id {memory.id!r} is already at line {first[key]}")
        first[key] = line
        memories.append(memory)
    if not memories:
        raise InputError(f"{path}: holds no memory")
    return native.corpora_of(memories)
