"""Pandas in and out: labelled sets from and to data frames, and a system whose answers are a data frame."""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from recallbench.datasets.jsonl import invalid, nearest
from recallbench.datasets.labels import QuestionRow
from recallbench.datasets.model import LabelledSet, SetInfo
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import Stream, gather
from recallbench.systems.base import SystemRun
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T", bound=msgspec.Struct)


class Frames(NamedTuple):
    """A labelled set as two data frames, texts included: one row a memory, one row a question."""

    memories: pd.DataFrame
    questions: pd.DataFrame


def from_frames(
    memories: pd.DataFrame, questions: pd.DataFrame, *, name: str = "frames", default_rel: int = 2, depth: int = 20
) -> LabelledSet:
    """A labelled set from data frames; columns are the fields of memories and questions (docs: `memories.jsonl`).

    memories: `id` and `content` must be there. questions: `text` must be there; without `id` they are q1, q2, …
    `relevant` holds an id, a list of ids (grade 2, answers) or a dict of id and grade. A missing value (NaN, None, NaT)
    is a field left out. default_rel: the least grade that a binary measure counts. depth: rows asked of a system.
    Raises InputError, with the frame and the row (as for `iloc`), for a bad value, a repeated id, or a label that names
    no memory.

    >>> import pandas as pd
    >>> memories = pd.DataFrame({"id": ["m1", "m2"], "content": ["The kettle is on the left", "Tea at 80 degrees"]})
    >>> questions = pd.DataFrame({"text": ["where is the kettle", "how hot is tea"], "relevant": ["m1", {"m2": 2}]})
    >>> from_frames(memories, questions, name="kitchen")
    kitchen 0: 2 questions, 2 memories
    """
    for frame, what, needed in ((memories, "memories", ("id", "content")), (questions, "questions", ("text",))):
        for column in needed:
            if column not in frame.columns:
                have = ", ".join(map(str, frame.columns)) or "none"
                raise InputError(f"{what}: no column {column!r}; columns there: {have}")
    if "id" not in questions.columns:
        questions = questions.assign(id=[f"q{number}" for number in range(1, len(questions) + 1)])
    stream = Stream(
        SetInfo(name, default_rel=default_rel, depth=depth),
        functools.partial(_rows, memories, "memories", Memory),
        functools.partial(_rows, questions, "questions", QuestionRow),
        "memories",
        "questions",
    )
    return gather(stream)


def to_frames(labelled: LabelledSet) -> Frames:
    """The set as data frames that `from_frames` takes. They hold the texts of memories and questions.

    Columns that no row uses are left out.

    >>> from recallbench import load
    >>> frames = to_frames(load("mneme-memories"))
    >>> len(frames.memories), len(frames.questions)
    (666, 389)
    """
    rows = [one for corpus in labelled.corpora.values() for one in corpus.memories]
    return Frames(_frame(rows), _frame(labelled.questions))


def _frame(rows: Any) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame([msgspec.to_builtins(one, builtin_types=(dt.datetime,)) for one in rows])


def _rows(frame: pd.DataFrame, what: str, kind: type[T], skips: Skips) -> Iterator[tuple[str, T]]:
    """(where, value) of each row; bad ones are given to `skips`."""
    known = [field.name for field in msgspec.structs.fields(kind)]
    for column in frame.columns:
        if column not in known:
            raise InputError(f"{what}: unknown column {column!r}; {nearest(str(column), known)}")
    for place, values in enumerate(frame.to_dict("records")):
        where = f"{what}.iloc[{place}]"
        given = {str(key): value for key, raw in values.items() if (value := _plain(raw)) is not None}
        if kind is QuestionRow and isinstance(given.get("relevant"), str):
            given["relevant"] = [given["relevant"]]
        try:
            yield where, msgspec.convert(given, kind)
        except msgspec.ValidationError as error:
            skips.bad(f"{where}: {invalid(error)}")


def _plain(value: Any) -> Any:
    """A cell as a plain value, None where it is missing."""
    import pandas as pd

    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, np.ndarray)):
        return [_plain(one) for one in (sorted(value) if isinstance(value, set) else value)]
    if value is None or value is pd.NaT or (isinstance(value, float) and np.isnan(value)) or value is pd.NA:
        return None
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime(warn=False)
    return value.item() if isinstance(value, np.generic) else value


class FrameSystem:
    """Answers that are already there, as a system under test (see `system_from_frame`)."""

    def __init__(self, name: str, lists: Mapping[str, tuple[tuple[str, ...], tuple[float, ...]]]) -> None:
        self.name = name
        self._lists = lists
        content = msgspec.json.encode({question: found[0] for question, found in lists.items()}, order="deterministic")
        self.spec = {"system": "frame", "content": hashlib.sha256(content).hexdigest()[:12]}

    def run(self, labelled: LabelledSet, depth: int) -> SystemRun:
        """The first `depth` rows of each question; a question without a row got an empty answer.

        Raises InputError for a memory that the question's corpus does not hold, or where no question is of the set.
        """
        asked = {question.id for question in labelled.questions}
        if not asked & set(self._lists):
            raise InputError(f"system {self.name!r}: none of its questions is in set {labelled.info.name!r}")
        ids, scores = [], []
        for question in labelled.questions:
            mine, values = self._lists.get(question.id, ((), ()))
            index = labelled.corpora[question.corpus].index
            unknown = next((one for one in mine if one not in index), None)
            if unknown is not None:
                raise InputError(
                    f"system {self.name!r}: question {question.id!r}: no memory {unknown!r} in corpus "
                    f"{question.corpus!r}; {nearest(unknown, index)}"
                )
            ids.append(mine[:depth])
            scores.append(values[:depth])
        more = [one for one in self._lists if one not in asked]
        notes = (f"the frame also answers {len(more)} questions that were not asked",) if more else ()
        return SystemRun(
            self.name,
            self.spec,
            tuple(ids),
            tuple(scores),
            np.array(list(map(len, ids)), np.int32),
            np.zeros(len(ids), np.bool_),
            notes=notes,
        )


def system_from_frame(name: str, frame: pd.DataFrame) -> FrameSystem:
    """A system whose answers are the rows of a data frame with the columns `question` and `memory`.

    Order within a question: by the column `rank` (ascending), else by `score` (descending), else as the rows stand;
    equals keep the order of the rows. Raises InputError for a missing column or value, or a memory twice in a question.

    >>> import pandas as pd
    >>> from recallbench import Experiment
    >>> memories = pd.DataFrame({"id": ["m1", "m2"], "content": ["The kettle is on the left", "Tea at 80 degrees"]})
    >>> kitchen = from_frames(memories, pd.DataFrame({"text": ["where is the kettle"], "relevant": ["m1"]}))
    >>> answers = pd.DataFrame({"question": ["q1", "q1"], "memory": ["m2", "m1"], "score": [0.2, 0.9]})
    >>> Experiment(kitchen, [system_from_frame("mine", answers)], ["RR"]).wide()["RR"].tolist()
    [1.0]
    """
    for column in ("question", "memory"):
        if column not in frame.columns:
            raise InputError(f"system {name!r}: the frame has no column {column!r}")
    used = [column for column in ("question", "memory", "rank", "score") if column in frame.columns]
    for column in used:
        missing = np.flatnonzero(frame[column].isna().to_numpy())
        if len(missing):
            raise InputError(f"system {name!r}: row iloc[{missing[0]}] has no {column}")
    ordered = frame[used].reset_index(drop=True)
    if "rank" in used:
        ordered = ordered.sort_values("rank", kind="stable")
    elif "score" in used:
        ordered = ordered.sort_values("score", ascending=False, kind="stable")
    twice = ordered[ordered.duplicated(["question", "memory"])]
    if len(twice):
        one = twice.iloc[0]
        raise InputError(f"system {name!r}: question {one['question']!r} has memory {one['memory']!r} twice")
    lists = {}
    for question, part in ordered.groupby("question", sort=False):
        scores = part["score"].astype(float) if "score" in used else [1.0 / rank for rank in range(1, len(part) + 1)]
        lists[str(question)] = (tuple(map(str, part["memory"])), tuple(float(one) for one in scores))
    return FrameSystem(name, lists)
