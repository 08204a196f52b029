"""Which questions to look at first, and what happened to each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recallbench.reports.standing import Standing
from recallbench.reports.words import Both, outcome, say
from recallbench.text.numbers import number

LOOKED_AT = 3


@dataclass(frozen=True, slots=True)
class LookAt:
    """A question to look at. place: in the run; why: what happened to it."""

    place: int
    why: Both


def look_at(held: Standing, most: int = LOOKED_AT) -> list[LookAt]:
    """The questions where the pick falls most against the baseline, then those that most others answer better.

    Equals stay in the order of the set. Of an invalid run those that a system gave no valid answer to come before all.
    """
    evaluation = held.evaluation
    if not evaluation.valid:
        named = zip(evaluation.systems, evaluation.runs, strict=True)
        failed = [(int(q), name) for name, run in named for q in np.flatnonzero(run.failed)]
        if failed:
            return [LookAt(q, say("l.failed", system=name)) for q, name in sorted(failed)[:most]]
    sign = 1.0 if evaluation.measures[0].higher_is_better else -1.0
    values = sign * evaluation.values[:, 0]
    best, base = (evaluation.systems.index(name) for name in (held.pick, held.reference))
    counts = evaluation.counts[:, 0].all(axis=0)
    drops = [
        (values[base, q] - values[best, q], q)
        for q in np.flatnonzero(counts).tolist()
        if values[best, q] < values[base, q]
    ]
    out = [
        LookAt(q, _because(held, q, _drop(held, q))) for _, q in sorted(drops, key=lambda one: (-one[0], one[1]))[:most]
    ]
    seen, others = {one.place for one in out}, np.delete(values, best, axis=0)
    missed = [
        (float((others[:, q] - values[best, q]).clip(0).sum()), q)
        for q in np.flatnonzero(counts).tolist()
        if q not in seen and len(others) and others[:, q].max() > values[best, q]
    ]
    for _, q in sorted(missed, key=lambda one: (-one[0], one[1]))[: most - len(out)]:
        out.append(LookAt(q, _because(held, q, _missed(held, q, others))))
    return out


def _drop(held: Standing, q: int) -> Both:
    now, then = (
        number(float(held.evaluation.values[held.evaluation.systems.index(name), 0, q]))
        for name in (held.pick, held.reference)
    )
    return say("l.drop", best=held.pick, base=held.reference, now=now, then=then)


def _missed(held: Standing, q: int, others: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Both:
    evaluation = held.evaluation
    sign = 1.0 if evaluation.measures[0].higher_is_better else -1.0
    now = float(evaluation.values[evaluation.systems.index(held.pick), 0, q])
    better = int((others[:, q] > sign * now).sum())
    top = number(sign * float(others[:, q].max()))
    return say("l.missed", best=held.pick, now=number(now), count=better, others=len(others), top=top)


def _because(held: Standing, q: int, what: Both) -> Both:
    """What happened, and how the pick lost a relevant memory."""
    run = held.evaluation.runs[held.evaluation.systems.index(held.pick)]
    lost = [name for name in (run.losses[q].values() if run.losses else ()) if name != "kept"]
    tail = say("l.lost", outcome=outcome(lost[0])) if lost else _fell(held, q)
    return what if tail is None else Both(what.en + tail.en, what.zh + tail.zh)


def _fell(held: Standing, q: int) -> Both | None:
    """Of the relevant memories the one that stood highest in the reference's list, if the pick has it lower."""
    evaluation = held.evaluation
    now, then = (evaluation.runs[evaluation.systems.index(name)].ids[q] for name in (held.pick, held.reference))
    least = evaluation.labelled.info.default_rel
    relevant = [memory for memory, grade in evaluation.labelled.questions[q].relevant.items() if grade >= least]
    first = min((memory for memory in relevant if memory in then), key=then.index, default=None)
    if first is None or first not in now or now.index(first) <= then.index(first):
        return None
    return say("l.fell", memory=first, now=now.index(first) + 1, then=then.index(first) + 1)
