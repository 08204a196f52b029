"""Labels resolved to memory ids of the question's corpus, while the memories pass by once."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from recallbench.datasets.jsonl import listed, nearest
from recallbench.datasets.labels import ANSWERS, Either, Label, QuestionRow, history, written
from recallbench.datasets.model import Question
from recallbench.datasets.skips import Skips
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory

Place = Callable[[str, str], str]
"""(question id, memory id) -> `file:line` of a label, for formats that keep labels in a file of their own."""

_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_MARKS = re.compile(r"[*_`~=#>|\[\]]")
SHOWN_WORDS = 40
"""Characters of a snippet that a message quotes: enough to find the label, not the memory."""


@dataclass(eq=False, slots=True)
class _Hits:
    """Memories that hold a snippet: how many, and the first of them (a snippet may be in every row)."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, memory: str) -> None:
        self.count += 1
        if len(self.first) < 5:
            self.first.append(memory)


@dataclass(eq=False, slots=True)
class _Wanted:
    """What the labels of one corpus ask for, and what of it was seen. read: snippets as a reader sees them."""

    ids: dict[str, bool] = field(default_factory=dict)
    snippets: dict[str, _Hits] = field(default_factory=dict)
    read: dict[str, _Hits] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)


class _Lost(NamedTuple):
    """A label that meets no memory or too many; `missing` is its id where it is one."""

    where: str
    question: str
    field: str
    message: str
    missing: str | None = None


def _plain(text: str) -> str:
    return " ".join(text.split())


def _as_read(text: str) -> str:
    """The words without the marks of Markdown and in one case: what somebody copies from a page that shows them."""
    return _plain(_MARKS.sub("", _LINK.sub(r"\1", text))).casefold()


def _posix(file: str) -> str:
    return file.replace("\\", "/")


class Resolver:
    """Turns questions as written into questions whose labels are ids; memory is bounded by the labels.

    A snippet stands for the one memory of the corpus whose title or content holds it (a run of white space
    counts as one blank; where none does, marks of Markdown and case are looked away from); a file for all
    memories whose source is that file. Where several labels mean the same memory, the highest grade counts.

    Call `ask` for every question, then `see` for every memory, then `question` for every question, then
    `finish`.
    """

    def __init__(self, place: Place | None = None) -> None:
        self._place = place
        self._wanted: dict[str, _Wanted] = {}
        self._corpora: dict[str, None] = {}
        self._lost: list[_Lost] = []
        self._seen: dict[str, str] = {}

    def ask(self, row: Question) -> None:
        """Note what the labels of a question need."""
        wanted = self._wanted.setdefault(row.corpus, _Wanted())
        for _, label in written(row):
            if label.id is not None:
                wanted.ids[label.id] = False
            if label.file is not None:
                wanted.files[_posix(label.file)] = []
            if label.snippet is not None:
                wanted.snippets[_plain(label.snippet)] = _Hits()
                wanted.read[_as_read(label.snippet)] = _Hits()
                if isinstance(label, Either):
                    wanted.ids[label.snippet] = False

    def see(self, memory: Memory) -> None:
        """Look at one memory for all labels of its corpus."""
        self._corpora.setdefault(memory.corpus)
        wanted = self._wanted.get(memory.corpus)
        if wanted is None:
            return
        if memory.id in wanted.ids:
            wanted.ids[memory.id] = True
        if wanted.snippets:
            text = _plain(memory.text)
            for snippet, hits in wanted.snippets.items():
                if snippet and snippet in text:
                    hits.add(memory.id)
            text = _as_read(memory.text)
            for snippet, hits in wanted.read.items():
                if snippet and snippet in text:
                    hits.add(memory.id)
        if wanted.files and memory.source is not None:
            mine = wanted.files.get(_posix(memory.source.file))
            if mine is not None:
                mine.append(memory.id)

    def question(self, row: Question, where: str) -> Question:
        """The question with its labels resolved. `where` (file:line) begins every InputError.

        Labels that meet no memory, or several where one is meant, are left out and told by `finish`.
        """
        start = f"{where}: question {row.id!r}"
        if row.id in self._seen:
            raise InputError(f"{start} is already at {self._seen[row.id]}; question ids must be unique")
        if row.corpus not in self._corpora:
            raise InputError(f"{start}: no memory is in corpus {row.corpus!r}; {nearest(row.corpus, self._corpora)}")
        fields = {name: getattr(row, name) for name in Question.__struct_fields__}
        if isinstance(row, QuestionRow):
            fields["context"] = history(row.context, start)
        relevant: dict[str, int] = {}
        others: dict[str, dict[str, None]] = {"not_relevant": {}, "forbidden": {}}
        for name, label in written(row):
            _check(label, name, start)
            for memory in self._ids(label, row, name, where):
                if name == "relevant":
                    grade = ANSWERS if label.grade is None else label.grade
                    relevant[memory] = max(grade, relevant.get(memory, 0))
                else:
                    others[name][memory] = None
        self._seen[row.id] = where
        fields["relevant"] = relevant
        fields.update({name: tuple(ids) for name, ids in others.items()})
        return Question(**fields)

    def snippets(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """(corpus, memory) -> the words by which labels name it, white space as one blank; each stands in it alone."""
        out: dict[tuple[str, str], tuple[str, ...]] = {}
        for corpus, wanted in self._wanted.items():
            for words, hits in wanted.snippets.items():
                if words and hits.count == 1 and not wanted.ids.get(words):
                    key = (corpus, hits.first[0])
                    out[key] = (*out.get(key, ()), words)
        return out

    def finish(self, skips: Skips) -> None:
        """Raise InputError if labels were lost: the first place, and the ids of all; or count each of them."""
        if not self._lost:
            return
        ids = list(dict.fromkeys(one.missing for one in self._lost if one.missing is not None))
        first = self._lost[0]
        if not skips.allowed and first.missing is not None and len(ids) > 1:
            raise InputError(
                f"{self._start(first)}: labels of this set name {len(ids)} ids that are in no corpus of theirs:"
                f" {listed(ids)}"
            )
        for one in self._lost:
            skips.bad(functools.partial(self._reason, one))

    def _reason(self, lost: _Lost) -> str:
        return f"{self._start(lost)}: {lost.message}"

    def _start(self, lost: _Lost) -> str:
        where = lost.where
        if self._place is not None and lost.missing is not None:
            where = self._place(lost.question, lost.missing)
        return f"{where}: question {lost.question!r}: {lost.field}"

    def _ids(self, label: Label, row: Question, name: str, where: str) -> Collection[str]:
        """The memories that a label means; a label that is lost means none."""
        wanted, missing = self._wanted[row.corpus], None
        if label.id is not None:
            if wanted.ids[label.id]:
                return (label.id,)
            message, missing = f"no memory of corpus {row.corpus!r} has the id {label.id!r}", label.id
        elif label.file is not None:
            found = wanted.files[_posix(label.file)]
            if found:
                return found
            message = f"no memory of corpus {row.corpus!r} was read from file {label.file!r}"
        else:
            snippet = label.snippet or ""
            if isinstance(label, Either) and wanted.ids[snippet]:
                return (snippet,)
            hits = wanted.snippets[_plain(snippet)]
            hits = hits if hits.count else wanted.read[_as_read(snippet)]
            if hits.count == 1:
                return hits.first
            message = _several(label, hits)
        self._lost.append(_Lost(where, row.id, name, message, missing))
        return ()


def _check(label: Label, field: str, start: str) -> None:
    if sum(one is not None for one in (label.id, label.snippet, label.file)) != 1:
        raise InputError(f"{start}: {field}: a label needs exactly one of id, snippet and file")
    if field != "relevant" and label.grade is not None:
        raise InputError(f"{start}: {field}: a grade stands in relevant only")


def _several(label: Label, hits: _Hits) -> str:
    """What to say of a snippet that is not in exactly one memory."""
    words = _plain(label.snippet or "")
    words = repr(words if len(words) <= SHOWN_WORDS else words[:SHOWN_WORDS] + "…")
    if not hits.count:
        either = "has this id or holds the snippet" if isinstance(label, Either) else "holds the snippet"
        return f"no memory {either} {words}; quote its words exactly"
    more = f" and {hits.count - len(hits.first)} more" if hits.count > len(hits.first) else ""
    return (
        f"{hits.count} memories ({listed(hits.first)}{more}) hold the snippet {words};"
        " quote more of the one that is meant, or give its id"
    )
