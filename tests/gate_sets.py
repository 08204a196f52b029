"""A set of one question a memory, and systems whose lists are written down: what the gate's tests judge."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.gate.judge import GateResult, judge
from recallbench.gate.policy import Policy, policy_of
from recallbench.systems.base import Observed, SystemRun
from recallstack.ranking.rows import Corpus, Memory

COUNT = 40


def made_set(
    count: int = COUNT,
    clusters: int = 0,
    categories: Mapping[str, Collection[int]] | None = None,
    forbidden: Collection[int] = (),
    judged: Collection[str] = (),
    chinese: Collection[int] = (),
) -> LabelledSet:
    """Question q-N is answered by memory m-N alone. categories: name -> numbers of its questions. forbidden: numbers of
    questions that must not get x-0. judged: further memories that every question's labels call not relevant.
    chinese: numbers of questions in zh; if there are any, the others are in en."""
    memories = [Memory(id=f"m-{n}", content=f"memory {n}") for n in range(count)]
    memories += [Memory(id=f"x-{n}", content=f"other {n}") for n in range(30)]
    questions = [
        Question(
            id=f"q-{n}",
            text=f"question {n}",
            lang="" if not chinese else "zh" if n in chinese else "en",
            relevant={f"m-{n}": 2},
            not_relevant=tuple(judged),
            cluster=f"c-{n % clusters}" if clusters else None,
            categories=tuple(name for name, members in (categories or {}).items() if n in members),
            forbidden=("x-0",) if n in forbidden else (),
        )
        for n in range(count)
    ]
    return hashed(SetInfo(name="made", version="1"), {"main": Corpus("main", memories)}, questions)


def system(
    labelled: LabelledSet,
    ranks: Mapping[int, int] | None = None,
    name: str = "plugin",
    *,
    failed: Collection[int] = (),
    leaks: Collection[int] = (),
    ms: Sequence[float] | None = None,
    losses: Mapping[int, str] | None = None,
    fill: str = "x-",
) -> SystemRun:
    """Returns each answer at rank 1, or at the rank given (0: not at all), between other memories; five rows.

    leaks: questions that get the forbidden x-0 too. ms: times of the questions. losses: question -> stage.
    """
    count = len(labelled.questions)
    ids = []
    for n in range(count):
        others = [f"{fill}{place}" for place in range(1, 6)]
        rank = (ranks or {}).get(n, 1)
        if rank:
            others.insert(rank - 1, f"m-{n}")
        if n in leaks:
            others.insert(0, "x-0")
        ids.append(() if n in failed else tuple(others[:5]))
    observed = None
    if ms is not None:
        nothing = ("",) * count
        observed = Observed(nothing, ((),) * count, tuple(ms), (False,) * count)
    lost = tuple({f"m-{n}": losses[n]} if n in losses else {} for n in range(count)) if losses else ()
    return SystemRun(
        name,
        {"system": name},
        tuple(ids),
        tuple(tuple(float(-rank) for rank in range(len(one))) for one in ids),
        np.array([len(one) for one in ids], np.int32),
        np.array([n in failed for n in range(count)], np.bool_),
        lost,
        observed=observed,
    )


def policy(**values: Any) -> Policy:
    """A policy; the labels of these sets are complete unless it says otherwise."""
    return policy_of({"unjudged": "not-relevant", **values}, "test")


def gated(labelled: LabelledSet, before: SystemRun, after: SystemRun, rules: Policy, **more: Any) -> GateResult:
    """The result of one system against one baseline."""
    return judge(labelled, [before], [after], rules, depth=5, against="before", **more)
