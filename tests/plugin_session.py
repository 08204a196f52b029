"""A host of the pre-retrieval plugin for the tests: one session's log and a knowledge base that can fail."""

from __future__ import annotations

import asyncio
from typing import Any

from recallstack.systems.preretrieval.contract import Hit, SearchRequest, SearchResponse
from recallstack.systems.preretrieval.engine import Outcome, PreRetrieval, PreRetrievalConfig
from recallstack.systems.preretrieval.log import Event
from recallstack.systems.preretrieval.retriever import InProcessRetriever


def hit(doc_id: str, score: float = 1.0, snippet: str = "text") -> Hit:
    return Hit(doc_id=doc_id, title=doc_id.upper(), path=f"{doc_id}.md", snippet=snippet, score=score, source="docs")


class Session:
    """A host: one log, one knowledge base that answers what `answers` says, call by call; the last one stays."""

    def __init__(self, *answers: Any, **settings: Any) -> None:
        self.config = PreRetrievalConfig(**settings)
        self.log: list[Event] = []
        self.asked: list[SearchRequest] = []
        self._answers = list(answers) or [()]
        self.resume()

    def resume(self) -> None:
        """A new process over the same log."""
        self.engine = PreRetrieval(self.config, InProcessRetriever(self._answer))

    async def _answer(self, request: SearchRequest) -> SearchResponse | bytes:
        said = self._answers[min(len(self.asked), len(self._answers) - 1)]
        self.asked.append(request)
        if isinstance(said, BaseException):
            raise said
        if isinstance(said, asyncio.Event):
            await said.wait()
            return SearchResponse(hits=(hit("late"),))
        return said if isinstance(said, bytes) else SearchResponse(hits=tuple(said))

    async def step(self, turn: int, text: str = "which port", step: int = 1) -> Outcome:
        """A step of a turn; step 1 begins it, and a later turn ends the one before."""
        if step == 1 and not any(e.type == "turn/start" and e.data["turn"] == turn for e in self.log):
            if turn > 1:
                self.log.append(Event("turn/end", {"turn": turn - 1}))
            self.log.append(Event("turn/start", {"turn": turn}))
        outcome = await self.engine.before_step(self.log, [text] if step == 1 else [], step)
        self.log.extend(outcome.events)
        return outcome

    async def steps(self, *turns: int) -> list[str]:
        return [(await self.step(turn)).kind for turn in turns]


async def outcomes(session: Session, *turns: int) -> list[Outcome]:
    """Step 1 of each turn."""
    return [await session.step(turn) for turn in turns]
