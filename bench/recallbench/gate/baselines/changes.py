"""What has changed in a labelled set since a baseline was saved: what is refused, what is scored anew."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from recallbench.datasets.jsonl import listed
from recallbench.datasets.model import LabelledSet
from recallbench.gate.baselines.model import Baseline, label_digests, memory_digests, question_digests
from recallstack.errors import InputError


@dataclass(frozen=True, slots=True)
class Difference:
    """Names that were added, that are gone, and whose content is another."""

    added: tuple[str, ...]
    gone: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.gone or self.changed)

    def __str__(self) -> str:
        parts = (("added", self.added), ("gone", self.gone), ("changed", self.changed))
        return "; ".join(f"{len(names)} {what} ({listed(names)})" for what, names in parts if names)


@dataclass(frozen=True, slots=True)
class Changes:
    """memories: of any corpus. questions: what is asked. labels: of questions that are asked as before."""

    memories: Difference
    questions: Difference
    labels: Difference


def counted(count: int, what: str) -> str:
    """`1 question`, `2 questions`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def changes(baseline: Baseline, labelled: LabelledSet) -> Changes:
    """Every difference between the set of a baseline and a set; none where the whole-set hashes are equal."""
    nothing = Difference((), (), ())
    memories = questions = labels = nothing
    if baseline.dataset.get("memories") != labelled.memories_hash:
        now = memory_digests(labelled)
        several = len({corpus for corpus, _ in (*now, *baseline.memories)}) > 1

        def shown(key: tuple[str, str]) -> str:
            return f"{key[0]}/{key[1]}" if several else key[1]

        memories = _difference(
            {shown(key): value for key, value in baseline.memories.items()},
            {shown(key): value for key, value in now.items()},
        )
    if baseline.dataset.get("questions") != labelled.questions_hash:
        questions = _difference(baseline.questions, question_digests(labelled.questions))
    if baseline.dataset.get("labels") != labelled.labels_hash:
        both = [question for question in labelled.questions if question.id in baseline.labels]
        found = label_digests(both)
        labels = Difference((), (), tuple(name for name, value in found.items() if baseline.labels[name] != value))
    return Changes(memories, questions, labels)


def _difference(before: Mapping[str, str], now: Mapping[str, str]) -> Difference:
    """The difference of two mappings of whose hashes it is known that they differ."""
    found = Difference(
        tuple(name for name in now if name not in before),
        tuple(name for name in before if name not in now),
        tuple(name for name, value in now.items() if name in before and before[name] != value),
    )
    return found or Difference((), (), ("one that the kept digits do not tell",))


def places_of(baseline: Baseline, labelled: LabelledSet, where: str) -> tuple[list[int], list[str]]:
    """(places of the set's questions in the baseline, notes on what is scored anew or left out).

    where: names the baseline in messages. Raises InputError where the baseline answered about other memories, or was
    not asked one of the questions as it is asked now.
    """
    found = changes(baseline, labelled)
    again = "save the baseline anew, or compare with --baseline-ref"
    if found.memories:
        raise InputError(
            f"{where}: was made on other memories than {labelled.info.name} has now: {found.memories}; {again}"
        )
    unasked: Collection[str] = (*found.questions.added, *found.questions.changed)
    if unasked:
        raise InputError(
            f"{where}: was not asked {len(unasked)} of the questions of {labelled.info.name} as they are now: "
            f"{listed(unasked)}; {again}"
        )
    order = {name: place for place, name in enumerate(baseline.questions)}
    notes = []
    if found.labels:
        names = found.labels.changed
        notes.append(
            f"labels changed since the baseline was saved, of {counted(len(names), 'question')} ({listed(names)}): "
            "it is scored anew from its stored lists"
        )
    left = len(found.questions.gone)
    if left:
        notes.append(f"{counted(left, 'question')} of the baseline left out: not asked now")
    return [order[question.id] for question in labelled.questions], notes
