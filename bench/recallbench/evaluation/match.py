"""From returned lists and labels to the ranks that measures need."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from recallbench.datasets.model import LabelledSet, Question
from recallbench.measures import Measure
from recallbench.measures.ranked import RankedLabels
from recallbench.measures.tokens import estimate_tokens
from recallbench.systems.base import SystemRun
from recallstack.ranking.candidates import NO_ROW
from recallstack.ranking.rows import Corpus

PADDING = -1


def from_arrays(
    labels: NDArray[np.int32],
    grades: NDArray[np.int16],
    ids: NDArray[np.int32],
    failed: NDArray[np.bool_] | None = None,
    default_rel: int = 1,
) -> RankedLabels:
    """Ranks of labels in lists of positions.

    labels: int32 `[Q, L]`, -1 padding. grades: int16 `[Q, L]`, -1 padding. ids: int32 `[Q, N]`, best first,
    no repeats, -1 from where a list has ended.
    """
    ranks = np.zeros(labels.shape, np.int32)
    for column in range(labels.shape[1]):
        same = ids == labels[:, column, None]
        place = same.argmax(axis=1) if ids.shape[1] else np.zeros(len(ids), np.int64)
        found = same[np.arange(len(ids)), place] if ids.shape[1] else np.zeros(len(ids), np.bool_)
        ranks[:, column] = np.where(found & (labels[:, column] >= 0), place + 1, 0)
    returned = (ids != NO_ROW).sum(axis=1).astype(np.int32)
    bad = np.zeros(len(ids), np.bool_) if failed is None else failed
    return RankedLabels(ranks, grades, returned, bad, default_rel=default_rel)


def from_lists(
    labels: Sequence[Mapping[str, int]],
    lists: Sequence[Sequence[str]],
    failed: NDArray[np.bool_] | None = None,
    default_rel: int = 1,
) -> RankedLabels:
    """Ranks of labels in lists of ids, in the order of the lists; a repeated id counts at its first place.

    labels: for each question, memory id -> grade (0 or below: judged not relevant).
    """
    places = [first_places(one) for one in lists]
    width = max(map(len, labels), default=0)
    ranks = np.zeros((len(labels), width), np.int32)
    grades = np.full((len(labels), width), PADDING, np.int16)
    for row, (one, place) in enumerate(zip(labels, places, strict=True)):
        ranks[row, : len(one)] = [place.get(name, 0) for name in one]
        grades[row, : len(one)] = [max(grade, 0) for grade in one.values()]
    bad = np.zeros(len(labels), np.bool_) if failed is None else failed
    return RankedLabels(ranks, grades, np.array(list(map(len, places)), np.int32), bad, default_rel=default_rel)


def from_dicts(
    qrels: Mapping[str, Mapping[str, int]], run: Mapping[str, Mapping[str, float]], default_rel: int = 1
) -> tuple[list[str], RankedLabels]:
    """Ranks of a run file's documents in trec_eval's order: score descending, then document id descending.

    Scores compare as float64 (trec_eval holds them as float32). Returns the questions of `qrels`, in order, and
    their ranks; a question that the run lacks got an empty list. Ranks are counted, no list is sorted.
    """
    questions = list(qrels)
    lists = [run.get(question, {}) for question in questions]
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    scores = np.fromiter(chain.from_iterable(one.values() for one in lists), np.float64, int(lengths.sum()))
    place = np.repeat(np.arange(len(lists)), lengths)
    labels = list(qrels.values())
    shape = (len(labels), max(map(len, labels), default=0))
    ranks, grades = np.zeros(shape, np.int32), np.full(shape, PADDING, np.int16)
    own = np.full(shape, np.nan)
    for row, (one, returned) in enumerate(zip(labels, lists, strict=True)):
        grades[row, : len(one)] = [max(grade, 0) for grade in one.values()]
        own[row, : len(one)] = [returned.get(name, np.nan) for name in one]
    for column in range(shape[1]):
        mine = own[:, column]
        higher = np.bincount(place[scores > mine[place]], minlength=len(lists))
        equal = np.bincount(place[scores == mine[place]], minlength=len(lists))
        ranks[:, column] = np.where(np.isnan(mine), 0, higher + 1)
        for row in np.flatnonzero(equal > 1).tolist():  # equals stand by id, the greater one first
            name = next(islice(labels[row], column, None))
            tied = (other for other, score in lists[row].items() if score == mine[row])
            ranks[row, column] += sum(other > name for other in tied)
    returned_rows = lengths.astype(np.int32)
    return questions, RankedLabels(
        ranks, grades, returned_rows, np.zeros(len(lists), np.bool_), default_rel=default_rel
    )


def first_places(ids: Sequence[str]) -> dict[str, int]:
    """id -> 1-based rank, repeats dropped."""
    out = dict(zip(ids, range(1, len(ids) + 1), strict=True))
    return out if len(out) == len(ids) else dict(zip(dict.fromkeys(ids), range(1, len(out) + 1), strict=True))


def ranked_labels(labelled: LabelledSet, run: SystemRun) -> RankedLabels:
    """Everything that the measures need to know of one system's answers to a set."""
    questions = labelled.questions
    plain = from_lists([labels_of(question) for question in questions], run.ids, run.failed, labelled.info.default_rel)
    places = [first_places(one) for one in run.ids]
    chars = np.zeros(len(questions))
    tokens = np.zeros(len(questions))
    texts: dict[tuple[str, str], tuple[int, int]] = {}
    for row, (question, place) in enumerate(zip(questions, places, strict=True)):
        corpus = labelled.corpora[question.corpus]
        for name in place:
            key = (question.corpus, name)
            if key not in texts:
                texts[key] = text_size(corpus, name)
            chars[row] += texts[key][0]
            tokens[row] += texts[key][1]
    superseded, successor = _supersessions(labelled, places)
    return RankedLabels(
        plain.ranks,
        plain.grades,
        plain.returned,
        plain.failed,
        forbidden=_padded(
            [[place.get(name, 0) for name in q.forbidden] for q, place in zip(questions, places, strict=True)]
        ),
        superseded=superseded,
        successor=successor,
        expects_empty=np.array([question.expects_empty for question in questions], np.bool_),
        semantic=run.semantic,
        chars=chars,
        tokens=tokens,
        default_rel=plain.default_rel,
    )


def labels_of(question: Question) -> dict[str, int]:
    """Memory id -> grade of everything that was judged; forbidden memories count as judged not relevant."""
    judged: dict[str, int] = dict.fromkeys((*question.not_relevant, *question.forbidden), 0)
    return {**judged, **question.relevant}


def text_size(corpus: Corpus, name: str) -> tuple[int, int]:
    """Characters and estimated tokens of a memory's text; 0 for an id that the corpus does not hold."""
    if name not in corpus.index:
        return 0, 0
    text = corpus.memories[corpus.index[name]].text.strip()
    return len(text), estimate_tokens(text)


def _ranks_of(names: Sequence[str], place: Mapping[str, int]) -> list[int]:
    return [place.get(name, 0) for name in names]


def _padded(rows: Sequence[Sequence[int]]) -> NDArray[np.int32]:
    out = np.full((len(rows), max(map(len, rows), default=0)), PADDING, np.int32)
    for row, values in enumerate(rows):
        out[row, : len(values)] = values
    return out


def newest_successors(corpus: Corpus) -> dict[str, str]:
    """Superseded id -> the newest memory of its chain. A chain that runs in a circle ends where it closes."""
    follows = {m.supersedes: m.id for m in corpus.memories if m.supersedes is not None and m.supersedes in corpus.index}
    out = {}
    for old, new in follows.items():
        seen = {old}
        while new in follows and new not in seen:
            seen.add(new)
            new = follows[new]
        out[old] = new
    return out


def _supersessions(
    labelled: LabelledSet, places: Sequence[Mapping[str, int]]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Ranks of the superseded memories of each question, and of their newest successors.

    A question's superseded memories are those that one of its labels is in a chain with: labelled themselves, or
    followed by a labelled memory.
    """
    chains = {name: newest_successors(corpus) for name, corpus in labelled.corpora.items()}
    old_ranks, new_ranks = [], []
    for question, place in zip(labelled.questions, places, strict=True):
        newest = chains[question.corpus]
        labels = labels_of(question)
        mine = [old for old, new in newest.items() if old in labels or new in labels]
        wanted = [old for old in mine if question.relevant.get(old, 0) < labelled.info.default_rel]
        old_ranks.append([place.get(old, 0) for old in wanted])
        new_ranks.append([place.get(newest[old], 0) for old in wanted])
    return _padded(old_ranks), _padded(new_ranks)


def tie_bounds(
    measure: Measure, labelled: LabelledSet, run: SystemRun
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """(worst, best) float64 `[Q]` of a measure over all orders of equal scores; None where no scores tie.

    Best puts the memories of highest grade first within each group of equals and forbidden ones last, worst the
    reverse. A list whose scores do not fall along it has no such order and is left as it is.
    """
    tied = [_tie_groups(scores) for scores in run.scores]
    if not any(tied):
        return None
    labels = [{**labels_of(one), **dict.fromkeys(one.forbidden, -1)} for one in labelled.questions]
    sign = 1 if measure.higher_is_better else -1
    out = []
    for direction in (sign, -sign):
        lists = []
        for ids, groups, grades in zip(run.ids, tied, labels, strict=True):
            order = list(ids)
            for start, end in groups:
                order[start:end] = sorted(order[start:end], key=lambda name: direction * grades.get(name, 0))
            lists.append(tuple(order))
        out.append(measure.compute(ranked_labels(labelled, dataclasses.replace(run, ids=tuple(lists)))))
    return out[0], out[1]


def _tie_groups(scores: Sequence[float]) -> list[tuple[int, int]]:
    """(start, end) of each run of equal scores of at least two rows; none where the scores do not fall."""
    values = np.asarray(scores, np.float64)
    if len(values) < 2 or not (np.diff(values) <= 0).all():
        return []
    edges = np.flatnonzero(np.diff(values) != 0) + 1
    bounds = [0, *edges.tolist(), len(values)]
    return [(a, b) for a, b in itertools.pairwise(bounds) if b - a > 1]
