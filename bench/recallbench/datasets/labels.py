"""Labels as they are written, resolved to memory ids of the question's corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from recallbench.datasets.jsonl import listed, nearest
from recallbench.datasets.model import Grade, Question
from recallstack.errors import InputError
from recallstack.rows import Corpus

ANSWERS: int = 2
"""Grade of a label that gives none: the memory answers the question."""


class Label(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A label by exactly one of id, snippet (words of one memory) and file (all memories read from it)."""

    id: str | None = None
    snippet: Annotated[str, Meta(min_length=1)] | None = None
    file: Annotated[str, Meta(min_length=1)] | None = None
    grade: Grade | None = None


class QuestionRow(Question, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A question as written: labels may be ids, snippets or files."""

    relevant: Mapping[str, Grade] | tuple[str | Label, ...] = msgspec.field(default_factory=dict)  # type: ignore[assignment]
    not_relevant: tuple[str | Label, ...] = ()  # type: ignore[assignment]
    forbidden: tuple[str | Label, ...] = ()  # type: ignore[assignment]


def _plain(text: str) -> str:
    return " ".join(text.split())


class Resolver:
    """Turns question rows into questions; labels that name no memory are collected and raised by `finish`.

    A snippet stands for the one memory of the corpus whose title or content holds it (a run of white space
    counts as one blank); a file for all memories whose source is that file. Where several labels mean the
    same memory, the highest grade counts.
    """

    def __init__(self, corpora: Mapping[str, Corpus]) -> None:
        self._corpora = corpora
        self._texts: dict[str, list[str]] = {}
        self._files: dict[str, dict[str, list[str]]] = {}
        self._missing: list[tuple[str, str, str, str, str]] = []
        self._seen: dict[str, str] = {}

    def question(self, row: QuestionRow, where: str) -> Question:
        """The question with its labels resolved. `where` (file:line) begins every InputError."""
        start = f"{where}: question {row.id!r}"
        if row.id in self._seen:
            raise InputError(f"{start} is already at {self._seen[row.id]}; question ids must be unique")
        self._seen[row.id] = where
        if not row.text.strip():
            raise InputError(f"{start}: text is empty")
        if row.corpus not in self._corpora:
            raise InputError(f"{start}: no memory is in corpus {row.corpus!r}; {nearest(row.corpus, self._corpora)}")
        written = row.relevant
        if isinstance(written, Mapping):
            graded = [(Label(id=one), grade) for one, grade in written.items()]
        else:
            labels = [Label(id=one) if isinstance(one, str) else one for one in written]
            graded = [(one, ANSWERS if one.grade is None else one.grade) for one in labels]
        relevant: dict[str, int] = {}
        for label, grade in graded:
            for memory in self._ids(label, row, "relevant", where):
                relevant[memory] = max(grade, relevant.get(memory, 0))
        fields = {name: getattr(row, name) for name in Question.__struct_fields__}
        fields["relevant"] = relevant
        fields["not_relevant"] = self._list(row.not_relevant, row, "not_relevant", where)
        fields["forbidden"] = self._list(row.forbidden, row, "forbidden", where)
        return Question(**fields)

    def finish(self) -> None:
        """Raise InputError if labels named no memory: the first place, then the ids of all."""
        if not self._missing:
            return
        where, question, field, corpus = self._missing[0][:4]
        ids = list(dict.fromkeys(one[4] for one in self._missing))
        start = f"{where}: question {question!r}: {field}"
        if len(ids) == 1:
            raise InputError(f"{start}: no memory of corpus {corpus!r} has the id {ids[0]!r}")
        raise InputError(
            f"{start}: labels of this set name {len(ids)} ids that are in no corpus of theirs: {listed(ids)}"
        )

    def _list(self, written: Sequence[str | Label], row: QuestionRow, field: str, where: str) -> tuple[str, ...]:
        out: dict[str, None] = {}
        for one in written:
            label = Label(id=one) if isinstance(one, str) else one
            if label.grade is not None:
                raise InputError(f"{where}: question {row.id!r}: {field}: a grade stands in relevant only")
            out.update(dict.fromkeys(self._ids(label, row, field, where)))
        return tuple(out)

    def _ids(self, label: Label, row: QuestionRow, field: str, where: str) -> list[str]:
        start = f"{where}: question {row.id!r}: {field}"
        if sum(one is not None for one in (label.id, label.snippet, label.file)) != 1:
            raise InputError(f"{start}: a label needs exactly one of id, snippet and file")
        corpus = self._corpora[row.corpus]
        if label.id is not None:
            if label.id in corpus.index:
                return [label.id]
            self._missing.append((where, row.id, field, row.corpus, label.id))
            return []
        if label.file is not None:
            found = self._by_file(corpus).get(label.file.replace("\\", "/"), [])
            if not found:
                raise InputError(f"{start}: no memory of corpus {row.corpus!r} was read from file {label.file!r}")
            return found
        found = self._by_snippet(corpus, label.snippet or "")
        if len(found) == 1:
            return found
        wrong = "no memory holds" if not found else f"{len(found)} memories ({listed(found)}) hold"
        mend = "quote its words exactly" if not found else "quote more of the one that is meant, or give its id"
        raise InputError(f"{start}: {wrong} the snippet {_plain(label.snippet or '')!r}; {mend}")

    def _by_file(self, corpus: Corpus) -> dict[str, list[str]]:
        if corpus.name not in self._files:
            files: dict[str, list[str]] = {}
            for memory in corpus.memories:
                if memory.source is not None:
                    files.setdefault(memory.source.file.replace("\\", "/"), []).append(memory.id)
            self._files[corpus.name] = files
        return self._files[corpus.name]

    def _by_snippet(self, corpus: Corpus, snippet: str) -> list[str]:
        if corpus.name not in self._texts:
            self._texts[corpus.name] = [_plain(text) for text in corpus.texts]
        needle = _plain(snippet)
        if not needle:
            return []
        return [
            memory.id for memory, text in zip(corpus.memories, self._texts[corpus.name], strict=True) if needle in text
        ]
