"""Checks of a labelled set: what a loader cannot see and a reader of results would trip over."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from recallbench.datasets.model import LabelledSet, Question
from recallbench.datasets.scope import scope_of
from recallbench.datasets.similar import trigrams
from recallstack.errors import InputError
from recallstack.ranking.rows import Corpus, Memory
from recallstack.ranking.tokens import tokenize

NEAR_DUPLICATE = 0.8
"""Jaccard similarity of character trigrams from which two memories are near-duplicates (a choice)."""
COPIED = 0.8
"""Share of a question's tokens that its memory holds, from which the question copies it (a choice)."""
FEW_IN_CATEGORY = 20
"""Under this many questions a category's mean says little (the built-in sets aim above it)."""
WORD_CATEGORIES = frozenset({"exact", "identifier", "scattered"})
"""Categories whose questions hold the memory's words by intent."""
_LARGE = 5_000

Level = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. where: the question, memory or category that it is about."""

    level: Level
    where: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Findings, errors first; statistics: plain numbers by name."""

    findings: tuple[Finding, ...]
    statistics: Mapping[str, Any]


def check(labelled: LabelledSet) -> CheckReport:
    """Check a loaded set (a loader has already refused repeated ids and labels without a memory)."""
    shares = _copied_shares(labelled)
    found = [
        *_settings(labelled),
        *_labels(labelled),
        *_questions(labelled),
        *_splits(labelled),
        *_visible(labelled),
        *_near_duplicates(labelled),
        *_copies(labelled, shares),
        *_balance(labelled),
        *(Finding("info", "reader", note) for note in labelled.notes),
    ]
    order = {"error": 0, "warning": 1, "info": 2}
    statistics = {
        "memories": sum(map(len, labelled.corpora.values())),
        "questions": len(labelled.questions),
        "mean share of a question's tokens in its memories": sum(shares.values()) / max(1, len(shares)),
    }
    return CheckReport(tuple(sorted(found, key=lambda one: order[one.level])), statistics)


def _answers(question: Question) -> list[str]:
    return [name for name, grade in question.relevant.items() if grade > 0]


def _settings(labelled: LabelledSet) -> Iterator[Finding]:
    from recallbench.measures import parse_measure

    try:
        parse_measure(labelled.info.primary_measure)
    except InputError as error:
        yield Finding("error", "dataset.toml", f"primary_measure: {error}")


def contradictions(labelled: LabelledSet) -> list[Finding]:
    """What no reading of the labels can satisfy; cheap enough for every run."""
    return [*_labels(labelled), *_splits(labelled)]


def _labels(labelled: LabelledSet) -> Iterator[Finding]:
    for question in labelled.questions:
        answers = _answers(question)
        if question.expects_empty and answers:
            yield Finding("error", question.id, f"expects_empty, and yet relevant: {', '.join(answers)}")
        both = sorted(set(answers) & set(question.forbidden))
        if both:
            yield Finding("error", question.id, f"relevant and forbidden at once: {', '.join(both)}")
        both = sorted(set(answers) & set(question.not_relevant))
        if both:
            yield Finding("error", question.id, f"relevant and not_relevant at once: {', '.join(both)}")


def _questions(labelled: LabelledSet) -> Iterator[Finding]:
    texts: dict[tuple[str, str, str, str], str] = {}
    for question in labelled.questions:
        if not question.expects_empty and not _answers(question):
            yield Finding(
                "warning", question.id, "no relevant memory and not expects_empty: it counts nowhere in recall"
            )
        if not question.text.strip():
            yield Finding("warning", question.id, "the question has no text")
        key = (question.corpus, question.text.strip().lower(), repr(question.context), repr(question.session))
        first = texts.setdefault(key, question.id)
        if first != question.id:
            yield Finding("warning", question.id, f"the same text and session as question {first}")


def _splits(labelled: LabelledSet) -> Iterator[Finding]:
    splits: dict[str, set[str]] = defaultdict(set)
    for question in labelled.questions:
        if question.cluster and question.split:
            splits[question.cluster].add(question.split)
    for cluster, names in splits.items():
        if len(names) > 1:
            yield Finding("error", f"cluster {cluster}", "stands in dev and in test; move it whole into one")


def hidden_from(memory: Memory, question: Question, mapped: bool) -> str | None:
    """Why a session may not see a memory, or None. mapped: as in `datasets.scope`."""
    session = question.session
    if memory.archived or memory.forgotten:
        return "archived" if memory.archived else "forgotten"
    if memory.agent_scope and session.agent_scope and memory.agent_scope != session.agent_scope:
        return f"of agent {memory.agent_scope}, asked by {session.agent_scope}"
    if memory.workspace_scope and session.workspace_scope and memory.workspace_scope != session.workspace_scope:
        return f"of workspace {memory.workspace_scope}, asked in {session.workspace_scope}"
    if memory.sensitivity not in scope_of(question, mapped).levels:
        return f"{memory.sensitivity}, asked over {session.channel or 'no channel'}"
    return None


def _visible(labelled: LabelledSet) -> Iterator[Finding]:
    for question in labelled.questions:
        corpus = labelled.corpora[question.corpus]
        for name in _answers(question):
            why = hidden_from(corpus.memories[corpus.index[name]], question, labelled.has_channels)
            if why:
                yield Finding("warning", question.id, f"relevant memory {name} may not be seen: {why}")


def _near_pairs(corpus: Corpus) -> Iterator[tuple[str, str, float]]:
    """Pairs of near-duplicates, found by their rarest shared trigrams (prefix filter of a similarity join)."""
    grams = [trigrams(memory.text) for memory in corpus.memories]
    count = Counter(gram for one in grams for gram in one)
    buckets: dict[str, list[int]] = defaultdict(list)
    for row, one in enumerate(grams):
        rare = sorted(one, key=lambda gram: (count[gram], gram))
        for gram in rare[: len(one) - int(NEAR_DUPLICATE * len(one)) + 1]:
            buckets[gram].append(row)
    pairs = {pair for rows in buckets.values() for pair in combinations(rows, 2)}
    for a, b in sorted(pairs):
        shared = len(grams[a] & grams[b]) / len(grams[a] | grams[b])
        if shared >= NEAR_DUPLICATE:
            yield corpus.memories[a].id, corpus.memories[b].id, shared


def _near_duplicates(labelled: LabelledSet) -> Iterator[Finding]:
    judged = {
        question.id: {*question.relevant, *question.not_relevant, *question.forbidden}
        for question in labelled.questions
    }
    for name, corpus in labelled.corpora.items():
        if len(corpus) > _LARGE:
            yield Finding("info", f"corpus {name}", f"over {_LARGE} memories: near-duplicates were not looked for")
            continue
        asked = [question for question in labelled.questions if question.corpus == name]
        for a, b, shared in _near_pairs(corpus):
            for question in asked:
                for one, other in ((a, b), (b, a)):
                    if question.relevant.get(one, 0) > 0 and other not in judged[question.id]:
                        message = f"{other} has no label, and is {shared:.0%} alike to relevant {one}"
                        yield Finding("warning", question.id, message)


def _copied_shares(labelled: LabelledSet) -> dict[str, float]:
    """Question -> the greatest share of its tokens that one of its relevant memories holds."""
    out = {}
    for question in labelled.questions:
        tokens = set(tokenize(question.text))
        if not tokens:
            continue
        corpus = labelled.corpora[question.corpus]
        texts = [set(tokenize(corpus.memories[corpus.index[name]].text)) for name in _answers(question)]
        if texts:
            out[question.id] = max(len(tokens & text) / len(tokens) for text in texts)
    return out


def _copies(labelled: LabelledSet, shares: Mapping[str, float]) -> Iterator[Finding]:
    free = [q for q in labelled.questions if q.id in shares and not WORD_CATEGORIES & set(q.categories)]
    copied = [question.id for question in free if shares[question.id] >= COPIED]
    if copied and len(copied) / len(free) > 0.5:
        yield Finding(
            "warning",
            labelled.info.name,
            f"{len(copied)} of {len(free)} questions copy {COPIED:.0%} or more of their words from a memory: "
            "word matching will saturate",
        )


def _balance(labelled: LabelledSet) -> Iterator[Finding]:
    for category, count in Counter(name for q in labelled.questions for name in q.categories).items():
        if count < FEW_IN_CATEGORY:
            yield Finding(
                "info", f"category {category}", f"{count} questions; a mean over under {FEW_IN_CATEGORY} is rough"
            )
