"""Injection driven by a session: events, the query, its vector, candidates, the kernel, the injected block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from recallstack.ranking.candidates import Candidates
from recallstack.ranking.channels import Retrieved
from recallstack.ranking.channels.indexes import per_corpus
from recallstack.ranking.embedders import Vectors
from recallstack.ranking.injection import Injection, Rules, Scope, build_rules, inject
from recallstack.ranking.recipes import InjectRecipe
from recallstack.ranking.rows import Corpus
from recallstack.systems.session.block import Block, BlockConfig, render
from recallstack.systems.session.clock import Clock
from recallstack.systems.session.host import Host
from recallstack.systems.session.log import SessionLog
from recallstack.systems.session.prefetch import TIMEOUT_MS, Embed, QueryVectors, Vector
from recallstack.systems.session.query import LiveQueries, step_query
from recallstack.systems.session.sources import CandidateSource, LiveSource
from recallstack.systems.session.switches import NO_SWITCHES, Switches


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Assembly:
    """What was injected before one step of a turn.

    query: what was asked with; empty if there was nothing. vector: whether its vector was there in time; if not,
    `no_vector` says why. waited_ms: how long the assembly took, on the clock. ids: injected, best first.
    semantic: which of them a channel brought (the rest was filled by rule). block: the text in the prompt.
    notes: what the channels had to say. stages: the lists after each stage, by name.
    """

    turn: int
    step: int
    query: str
    vector: bool
    no_vector: str
    waited_ms: float
    ids: tuple[str, ...]
    semantic: tuple[bool, ...]
    block: Block
    notes: tuple[str, ...]
    stages: Mapping[str, Candidates]
    corpus: Corpus

    def trace(self) -> dict[str, tuple[str, ...]]:
        """The ids that each stage left, best first."""
        return {name: _ids(self.corpus, rows) for name, rows in self.stages.items()}


class InjectionSession:
    """One session with injection before every step.

    vectors, live: may be shared by the sessions of a plugin. timeout_ms: how long a step waits for the vector.
    log: the session's own; a new one by default, on the clock of `vectors`.
    """

    def __init__(
        self,
        recipe: InjectRecipe,
        source: CandidateSource,
        vectors: QueryVectors,
        *,
        log: SessionLog | None = None,
        live: LiveQueries | None = None,
        scope: Scope = Scope(),  # noqa: B008 (a frozen value)
        timeout_ms: float = TIMEOUT_MS,
        block: BlockConfig = BlockConfig(),  # noqa: B008
        switches: Switches = NO_SWITCHES,
    ) -> None:
        self.log = SessionLog(now_ms=lambda: vectors.clock.now_ms) if log is None else log
        self.vectors = vectors
        self.live = LiveQueries(switches) if live is None else live
        self.log.listen(self.live.notice)
        self._recipe = recipe
        self._source = source
        self._timeout_ms = timeout_ms
        self._block = block
        self._switches = switches
        self._rules = _rules(source.corpus, scope, recipe)

    @classmethod
    def over(
        cls,
        corpus: Corpus,
        recipe: InjectRecipe,
        embed: Embed,
        clock: Clock,
        *,
        memory_vectors: Vectors | None = None,
        scope: Scope = Scope(),  # noqa: B008
        timeout_ms: float = TIMEOUT_MS,
        block: BlockConfig = BlockConfig(),  # noqa: B008
        switches: Switches = NO_SWITCHES,
    ) -> InjectionSession:
        """A session on its own. memory_vectors: as in `LiveSource`; `embed` must give vectors of the same space."""
        source = LiveSource(corpus, recipe, memory_vectors)
        vectors = QueryVectors(embed, clock, switches)
        return cls(recipe, source, vectors, scope=scope, timeout_ms=timeout_ms, block=block, switches=switches)

    def query(self) -> str:
        """What a step that is assembled now asks with."""
        return step_query(self.log, self.live, self._switches)

    async def assemble(self, step: int) -> Assembly:
        """Run before step `step` (1-based) of the turn that the log is in."""
        begun = self.vectors.clock.now_ms
        query = self.query()
        vector = await self.vectors.wait(query, self._timeout_ms) if query else None
        injection, notes = self.inject(query, vector)
        corpus = self._source.corpus
        rows = injection.final.ids[0][injection.final.present[0]].tolist()
        return Assembly(
            turn=self.log.turn,
            step=step,
            query=query,
            vector=vector is not None,
            no_vector="" if vector is not None else self._why_not(query),
            waited_ms=self.vectors.clock.now_ms - begun,
            ids=_ids(corpus, injection.final),
            semantic=tuple(injection.semantic[0, : len(rows)].tolist()),
            block=render([corpus.memories[row] for row in rows], self._block, self._switches),
            notes=notes,
            stages=injection.stages,
            corpus=corpus,
        )

    def inject(self, query: str, vector: Vector | None) -> tuple[Injection, tuple[str, ...]]:
        """The kernel's answer to one query, and the notes of the channels. Without a vector only BM25 is asked."""
        found = Retrieved(Candidates.empty(1)) if vector is None else self._source.vector(query, vector)
        bm25 = self._source.bm25(query)
        has_vector = np.array([vector is not None])
        injection = inject(
            found.candidates, bm25.candidates, has_vector, self._source.embedded, self._rules, self._recipe
        )
        return injection, (*found.notes, *bm25.notes)

    async def close(self) -> None:
        """Cancel the requests that are under way; those of sessions that share the vectors too."""
        await self.vectors.close()

    def _why_not(self, query: str) -> str:
        if not query:
            return "there is no query"
        if self._switches.prefetch_not_awaited:
            return "the request was started and not awaited"
        if self.vectors.blocked(query):
            return f"the query failed and is not asked again yet: {self.vectors.last_failure}"
        return f"no vector after {self._timeout_ms:g} ms"


async def play_turn(
    session: InjectionSession, host: Host, *texts: str, steps: int = 1, step_ms: float = 0, answer: str = "done"
) -> list[Assembly]:
    """One turn as the documented host plays it; what was injected before each of its steps.

    The texts are spliced, claimed, the prompt of step 1 is assembled, and only then are they appended; every step
    but the last ends in a tool result, the last in an answer. step_ms: how long the model takes for a step.
    """
    host.splice(*texts)
    for _ in texts:
        host.claim()
    out = []
    for step in range(1, steps + 1):
        host.pre_step("enter")
        out.append(await session.assemble(step))
        host.append_claimed()
        await session.vectors.clock.sleep(step_ms)
        if step < steps:
            host.tool("done")
    host.assistant(answer)
    host.end_turn()
    return out


def _rules(corpus: Corpus, scope: Scope, recipe: InjectRecipe) -> Rules:
    """Made once for each corpus, scope and recipe, however many sessions there are."""
    return per_corpus(corpus, ("rules", scope, recipe), lambda: build_rules(corpus, [scope], recipe))


def _ids(corpus: Corpus, rows: Candidates) -> tuple[str, ...]:
    return tuple(corpus.ids[rows.ids[0][rows.present[0]]].tolist())
