"""A labelled set in memory: corpora, questions, labels."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from recallbench.text.display import Part, counted, to_html
from recallstack.ranking.rows import Corpus
from recallstack.systems.preretrieval.contract import ContextEntry

Text = Annotated[str, Meta(min_length=1)]
Grade = Annotated[int, Meta(ge=0, le=10)]
Split = Literal["dev", "test"]


class Session(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Who asks: what scope and channel the question comes from; None is unknown."""

    agent_scope: str | None = None
    workspace_scope: str | None = None
    channel: str | None = None


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One labelled question. `relevant` maps memory ids of its corpus to grades (2 answers, 1 helps).

    `context` is the conversation before `text`, oldest first; `text` is its newest message.
    """

    id: Text
    text: str
    context: tuple[ContextEntry, ...] = ()
    corpus: Text = "main"
    lang: str = ""
    categories: tuple[str, ...] = ()
    cluster: str | None = None
    split: Split | None = None
    now: dt.datetime | None = None
    relevant: Mapping[str, Grade] = msgspec.field(default_factory=dict)
    not_relevant: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    judged_by: tuple[str, ...] = ()
    session: Session = Session()
    expects_empty: bool = False
    note: str = ""


@dataclass(frozen=True, eq=False)
class SetInfo:
    """What `dataset.toml` says of a set; its keys are these fields, and only `name` must be there.

    name: of the set, in tables and manifests. version: raised whenever memories or labels change.
    description: one line. languages: codes such as `["zh", "en"]`. licence: of the data.
    provenance: where memories and questions come from, and who judged them.
    primary_measure: in the grammar of the measures. default_rel: the least grade that a binary measure
    counts. depth: rows asked of each system. memory_unit: what one memory is, such as `a chat turn`.
    """

    name: str
    version: str = "0"
    description: str = ""
    languages: tuple[str, ...] = ()
    licence: str = ""
    provenance: str = ""
    primary_measure: str = "nDCG@5"
    default_rel: int = 2
    depth: int = 20
    memory_unit: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class LabelledSet:
    """A labelled set, loaded and resolved: every label names a memory of the question's corpus.

    A notebook shows its counts, never a text.

    corpora: by name, in file order. questions: in file order. notes: what the reader mended or dropped,
    one line each (shown to the user, kept in the manifest). Hashes: see `hashing`; questions_hash covers what
    systems are asked, labels_hash what measures are made from. mapped: whether sessions have channels, in a part of a
    set; None: its own questions say so. snippets: (corpus, memory) -> the words by which labels name it, where they
    do; a foreign row that holds them counts for the memory.
    """

    info: SetInfo
    corpora: Mapping[str, Corpus]
    questions: tuple[Question, ...]
    notes: tuple[str, ...] = ()
    memories_hash: str = field(default="")
    labels_hash: str = field(default="")
    questions_hash: str = field(default="")
    mapped: bool | None = None
    snippets: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    @property
    def has_channels(self) -> bool:
        """Whether any session of the whole set has a channel.

        If none has, there is no session map and everyone is the owner (section 6). A part of a set with channels keeps
        its map, so that a session without one sees nothing there either.
        """
        if self.mapped is not None:
            return self.mapped
        return any(question.session.channel is not None for question in self.questions)

    def _parts(self) -> list[Part]:
        memories, asked = sum(map(len, self.corpora.values())), self.questions
        clusters = {one.cluster for one in asked if one.cluster}
        rows = [
            ["memories", f"{memories:,}" + (f" in {len(self.corpora)} corpora" if len(self.corpora) > 1 else "")],
            ["questions", f"{len(asked):,}" + (f" in {len(clusters)} clusters" if clusters else "")],
            *([name, _tally(each for one in asked for each in of(one))] for name, of in _TALLIED.items()),
            ["primary measure", f"{self.info.primary_measure}; grade {self.info.default_rel} and above is relevant"],
            ["licence", self.info.licence],
        ]
        return [Part(str(self), self.info.description, ("", ""), [row for row in rows if row[1]], self.notes)]

    def _repr_html_(self) -> str | None:
        return to_html(self._parts())

    def __repr__(self) -> str:
        asked, memories = len(self.questions), sum(map(len, self.corpora.values()))
        sizes = f"{counted(asked, 'question')}, {counted(memories, 'memory', 'memories')}"
        return f"{self.info.name} {self.info.version}: {sizes}"


_TALLIED: Mapping[str, Callable[[Question], tuple[str, ...]]] = {
    "languages": lambda one: (one.lang,) if one.lang else (),
    "splits": lambda one: (one.split,) if one.split else (),
    "categories": lambda one: one.categories,
}


def _tally(names: Iterable[str]) -> str:
    """`zh 240, en 149`, the most frequent first."""
    return ", ".join(f"{name} {count}" for name, count in Counter(names).most_common())
