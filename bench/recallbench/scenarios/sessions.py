"""Session replay: a labelled set's questions asked as turns of sessions, measured on what was injected.

No ranking figure shows a query that is read one turn late or a vector that is never ready. Here the questions go
through the event log, the prefetch and the injection of the reference stack, on virtual time, with each documented
bug alone, all together and none.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from recallbench.datasets.model import LabelledSet, Question
from recallbench.datasets.scope import scope_of
from recallbench.evaluation.aggregate import cells, differences
from recallbench.evaluation.evaluate import Evaluation
from recallbench.scenarios.virtual_time import VirtualLoop
from recallbench.systems.base import SystemRun
from recallbench.text.tables import table
from recallstack.errors import InputError
from recallstack.ranking.injection import Scope
from recallstack.ranking.pipeline import Retrieve
from recallstack.ranking.recipes import INJECTION_SWITCHES, InjectRecipe, to_dict, with_switches
from recallstack.systems.session.clock import RealClock
from recallstack.systems.session.host import Host
from recallstack.systems.session.prefetch import Embed, QueryVectors, Vector
from recallstack.systems.session.sources import BatchSource, CandidateSource, embed_with
from recallstack.systems.session.switches import Switches
from recallstack.systems.session.turn import Assembly, InjectionSession

NONE, ALL = "no-bug", "all-bugs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the questions are played.

    turns: questions in one session. steps: model requests in one turn. latency_ms: of the embedding service.
    step_ms: how long the model takes for a step. timeout_ms: how long a step waits for its vector. rewinds,
    cancels: share of turns before which another question is asked and rewound, or queued and cancelled.
    seed: of the order of the questions and of what is rewound and cancelled.
    """

    turns: int = 8
    steps: int = 2
    latency_ms: float = 300
    step_ms: float = 1_000
    timeout_ms: float = 2_000
    rewinds: float = 0.1
    cancels: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("turns", "steps"):
            if getattr(self, name) < 1:
                raise InputError(f"replay: {name} is {getattr(self, name)}; it must be at least 1")
        for name in ("latency_ms", "step_ms", "timeout_ms"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"replay: {name} is {getattr(self, name)}; it must be a number of at least 0")
        for name in ("rewinds", "cancels"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"replay: {name} is {getattr(self, name)}; it must be from 0 to 1")


@dataclass(frozen=True, slots=True)
class Bug:
    """A documented bug of the way from a message to the injected block.

    session: switches of the session that are turned on; recipe: switches of injection that are turned off.
    """

    name: str
    help: str
    session: tuple[str, ...] = ()
    recipe: tuple[str, ...] = ()


BUGS = (
    Bug("stale-query", "step 1 asks with the turn before", session=("query_from_visible_messages",)),
    Bug("missing-vector", "the vector is not awaited", session=("prefetch_not_awaited",)),
    Bug("vector-excludes-bm25", "a vector hit silences BM25", recipe=("dual",)),
    Bug("truncate-before-filter", "the pool is cut before the filter", recipe=("overfetch",)),
    Bug("one-pool", "two lists share the room of one", recipe=("capacity",)),
    Bug("rerank-overrides-fusion", "the cosine reorders what was fused", recipe=("rerank",)),
)
"""Seed 000, points 1 and 2, in its order."""


def variants() -> tuple[Bug, ...]:
    """No bug, each documented bug alone, all together."""
    together = Bug(
        ALL,
        "all of them",
        tuple(name for bug in BUGS for name in bug.session),
        tuple(name for bug in BUGS for name in bug.recipe),
    )
    return (Bug(NONE, "the fixed stack"), *BUGS, together)


def system_name(bug: str, step: int) -> str:
    """The name of what was injected with a bug in, at a step."""
    return f"{bug}.step{step}"


class Replay:
    """One variant, played once for all its steps. recipe: of the fixed stack; the bug is put into it."""

    def __init__(self, recipe: InjectRecipe, bug: Bug, settings: Settings, retrieve: Retrieve) -> None:
        self.bug = bug
        self.settings = settings
        on = {name for name in INJECTION_SWITCHES if getattr(recipe, name)} - set(bug.recipe)
        self.recipe = replace(with_switches(recipe, on), name=bug.name)
        self._switches = Switches(**dict.fromkeys(bug.session, True))
        self._retrieve = retrieve
        self._played: tuple[LabelledSet, list[list[Assembly]]] | None = None

    def systems(self) -> list[ReplayStep]:
        """A system for each step of a turn."""
        return [ReplayStep(self, step) for step in range(1, self.settings.steps + 1)]

    def played(self, labelled: LabelledSet) -> list[list[Assembly]]:
        """What was injected for each question of the set, in order, at each step."""
        if self._played is None or self._played[0] is not labelled:
            with asyncio.Runner(loop_factory=VirtualLoop) as runner:
                self._played = (labelled, runner.run(self._play(labelled)))
        return self._played[1]

    async def _play(self, labelled: LabelledSet) -> list[list[Assembly]]:
        out: list[list[Assembly]] = [[] for _ in labelled.questions]
        random_ = random.Random(self.settings.seed)
        for name, corpus in labelled.corpora.items():
            places = [i for i, one in enumerate(labelled.questions) if one.corpus == name]
            if not places:
                continue
            texts = [labelled.questions[i].text for i in places]
            source = BatchSource(corpus, self.recipe, texts, self._retrieve)
            embed = _late(embed_with(corpus, self.recipe.vector, texts), self.settings.latency_ms)
            mapped = labelled.has_channels
            for session in sessions(labelled.questions, places, self.settings.turns, random_, mapped):
                scope = scope_of(labelled.questions[session[0]], mapped)
                await self._session(labelled.questions, session, scope, source, embed, random_, out)
        return out

    async def _session(
        self,
        questions: Sequence[Question],
        places: Sequence[int],
        scope: Scope,
        source: CandidateSource,
        embed: Embed,
        random_: random.Random,
        out: list[list[Assembly]],
    ) -> None:
        clock = RealClock()
        vectors = QueryVectors(embed, clock, self._switches)
        session = InjectionSession(
            self.recipe, source, vectors, scope=scope, timeout_ms=self.settings.timeout_ms, switches=self._switches
        )
        host = Host(session.log)
        for place in places:
            other = questions[random_.choice(places)].text
            if random_.random() < self.settings.rewinds:
                begun = len(session.log.events)
                await self._turn(session, host, other)
                host.rewind(begun)
            host.splice(questions[place].text)
            if random_.random() < self.settings.cancels:
                host.splice(other)
                host.cancel()
            out[place] = await self._answered(session, host)
        await session.close()

    async def _turn(self, session: InjectionSession, host: Host, text: str) -> None:
        host.splice(text)
        await self._answered(session, host)

    async def _answered(self, session: InjectionSession, host: Host) -> list[Assembly]:
        """The turn of the message that waits, as the host plays it: the message is appended after step 1's prompt."""
        out = []
        host.claim()
        for step in range(1, self.settings.steps + 1):
            host.pre_step("enter")
            out.append(await session.assemble(step))
            host.append_claimed()
            await session.vectors.clock.sleep(self.settings.step_ms)
            if step < self.settings.steps:
                host.tool("done")
        host.assistant("done")
        host.end_turn()
        return out


class ReplayStep:
    """What one variant injected at one step, as a system under test."""

    def __init__(self, replay: Replay, step: int) -> None:
        self._replay = replay
        self._step = step
        self.name = system_name(replay.bug.name, step)

    @property
    def spec(self) -> dict[str, Any]:
        """Everything that the answers depend on."""
        own = {"bug": self._replay.bug.name, "session": list(self._replay.bug.session), "step": self._step}
        return {**to_dict(self._replay.recipe), "replay": {**own, **asdict(self._replay.settings)}}

    def run(self, labelled: LabelledSet, depth: int) -> SystemRun:
        """What was injected for every question of the set at this step, at most `depth` memories."""
        played = [one[self._step - 1] for one in self._replay.played(labelled)]
        ids = tuple(one.ids[:depth] for one in played)
        return SystemRun(
            self.name,
            self.spec,
            ids,
            tuple(tuple(float(-rank) for rank in range(1, len(one) + 1)) for one in ids),
            np.array([sum(one.semantic[:depth]) for one in played], np.int32),
            np.zeros(len(played), np.bool_),
            capacity=self._replay.recipe.max_items,
            notes=tuple(dict.fromkeys(note for one in played for note in one.notes)),
        )


def replay_systems(recipe: InjectRecipe, settings: Settings, retrieve: Retrieve) -> list[ReplayStep]:
    """Every variant at every step: no bug, each bug alone, all together. The first is the baseline of a table."""
    return [step for bug in variants() for step in Replay(recipe, bug, settings, retrieve).systems()]


def sessions(
    questions: Sequence[Question], places: Sequence[int], turns: int, random_: random.Random, mapped: bool
) -> Iterator[list[int]]:
    """The questions in shuffled order, cut into sessions of one scope and at most `turns` turns.

    mapped: as in `scope_of`.
    """
    by_scope: dict[Scope, list[int]] = {}
    for place in places:
        by_scope.setdefault(scope_of(questions[place], mapped), []).append(place)
    for group in by_scope.values():
        random_.shuffle(group)
        yield from (group[start : start + turns] for start in range(0, len(group), turns))


def _late(embed: Embed, latency_ms: float) -> Embed:
    """An embedding service that takes its time."""

    async def late(query: str) -> Vector:
        await asyncio.sleep(latency_ms / 1000)
        vector: Vector = np.asarray(await embed(query), np.float64)
        return vector

    return late


def cost_table(evaluation: Evaluation) -> str:
    """Markdown: what each bug costs in the primary measure, at each step, against no bug at that step."""
    primary = str(evaluation.measures[0])
    steps = sorted({int(name.rpartition(".step")[2]) for name in evaluation.systems})
    rows = []
    mean = {one.system: one.interval for one in cells(evaluation) if one.measure == primary}
    cost: dict[str, Any] = {}
    for step in steps:
        base = system_name(NONE, step)
        cost.update(
            {
                one.system: one.interval
                for one in differences(evaluation, base)
                if one.measure == primary and one.system.endswith(f".step{step}")
            }
        )
    for bug in variants():
        row = [bug.name, bug.help]
        for step in steps:
            name = system_name(bug.name, step)
            row.append(f"{mean[name].mean:.3f}")
            row.append("" if bug.name == NONE else "{0.mean:+.3f} [{0.low:+.3f}, {0.high:+.3f}]".format(cost[name]))
        rows.append(row)
    header = ["bug put back", "what it does"]
    for step in steps:
        header += [f"{primary} at step {step}", f"difference at step {step}"]
    text = "\n\n".join(
        [
            "## What each bug costs",
            table(header, rows, "ll" + "r" * (2 * len(steps))),
            "Each bug alone in the fixed stack. Paired differences by question with 95 % intervals; below 0 is worse.",
        ]
    )
    return text + "\n"
