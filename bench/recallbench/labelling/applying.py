"""Judgements written into the labels of a native set."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from recallbench.datasets import jsonl
from recallbench.datasets.model import Question
from recallbench.datasets.readers import native
from recallbench.labelling.judging import FORBIDDEN, NOTHING, Judgement
from recallstack.errors import InputError


def apply(folder: Path, rows: Sequence[Judgement], judge: str, replace_old: bool = False) -> int:
    """Write judgements into `questions.jsonl` of a native set; how many were new.

    judge: who judged, added to `judged_by`. replace_old: a pair that is labelled takes the new grade, and a question
    that expected nothing may be answered; without it both are errors. The file is replaced whole or not at all; lines
    without a new judgement stay as they are, and so do labels by snippet or file, unless one of them gets another
    grade: then all labels of that question are written as ids. Raises InputError for a set that has no such file.
    """
    path = folder / native.QUESTIONS
    if not path.is_file():
        raise InputError(f"{path}: no such file; judgements go into a native set (see `recallbench datasets convert`)")
    questions = {one.id: one for one in native.read(folder).questions}
    by_question: dict[str, list[Judgement]] = {}
    for row in rows:
        if row.grade:
            by_question.setdefault(row.question, []).append(row)
    lines, new = [], 0
    for line in jsonl.text(path).removesuffix("\n").split("\n"):  # a text may hold other line separators
        values = msgspec.json.decode(line) if line.strip() else {}
        own = by_question.get(str(values.get("id")), [])
        changed = sum([_put(values, questions[row.question], row, replace_old) for row in own])
        if changed:
            values["judged_by"] = list(dict.fromkeys([*values.get("judged_by", []), judge]))
        new += changed
        lines.append(msgspec.json.encode(values).decode() if changed else line)
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # a read-only disk refuses that too
            partial.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}; nothing was changed") from None
    return new


def _put(values: dict[str, Any], question: Question, row: Judgement, replace_old: bool) -> bool:
    """One judgement into a question as written; whether anything was new."""
    grade = "0" if row.grade == NOTHING else row.grade
    old = _grade_of(question, row.memory)
    if old not in (None, grade) and not replace_old:
        raise InputError(
            f"{row.where}: {row.question} and {row.memory} are labelled {old}, not {grade}; "
            "give --replace to take the new grade"
        )
    if grade not in ("0", FORBIDDEN) and values.get("expects_empty"):
        if not replace_old:
            raise InputError(
                f"{row.where}: {row.question} expects that nothing answers it, and {row.memory} is judged {grade}; "
                "give --replace to drop expects_empty"
            )
        del values["expects_empty"]
    changed = old != grade
    if changed:
        if old is not None and _written_grade(values, row.memory) is None:
            _write_ids(values, question)
        _take_out(values, row.memory)
        if grade in ("0", FORBIDDEN):
            values.setdefault("not_relevant" if grade == "0" else "forbidden", []).append(row.memory)
        elif isinstance(values.get("relevant", {}), dict):
            values.setdefault("relevant", {})[row.memory] = int(grade)
        else:
            values["relevant"].append({"id": row.memory, "grade": int(grade)})
    if row.grade == NOTHING and not values.get("expects_empty"):
        if values.get("relevant"):
            raise InputError(
                f"{row.where}: {row.question} is judged n (nothing answers it), and has relevant memories; "
                "judge those anew first"
            )
        values["expects_empty"] = changed = True
    return changed


def _grade_of(question: Question, memory: str) -> str | None:
    if memory in question.relevant:
        return str(question.relevant[memory])
    if memory in question.forbidden:
        return FORBIDDEN
    return "0" if memory in question.not_relevant else None


def _write_ids(values: dict[str, Any], question: Question) -> None:
    """The labels as ids, in place of the snippets and files that they were written as."""
    for field in ("relevant", "not_relevant", "forbidden"):
        values.pop(field, None)
        if labels := getattr(question, field):
            values[field] = dict(labels) if field == "relevant" else list(labels)


def _written_grade(values: Mapping[str, Any], memory: str) -> str | None:
    """The grade of a memory that is labelled by its id; None also for labels by snippet or file."""
    for field, grade in (("forbidden", FORBIDDEN), ("not_relevant", "0")):
        if any(one == memory or (isinstance(one, dict) and one.get("id") == memory) for one in values.get(field, ())):
            return grade
    relevant = values.get("relevant", {})
    if isinstance(relevant, dict):
        return str(relevant[memory]) if memory in relevant else None
    for one in relevant:
        if one == memory or (isinstance(one, dict) and one.get("id") == memory):
            return str(one.get("grade", 2)) if isinstance(one, dict) else "2"
    return None


def _take_out(values: dict[str, Any], memory: str) -> None:
    for field in ("relevant", "not_relevant", "forbidden"):
        held = values.get(field)
        if isinstance(held, dict):
            held.pop(memory, None)
        elif held:
            values[field] = [
                one for one in held if one != memory and not (isinstance(one, dict) and one.get("id") == memory)
            ]
