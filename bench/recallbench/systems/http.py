"""`http:URL`: a knowledge base that answers contract v0.2, `POST /search`; it has its memories already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from recallbench.datasets.model import Question, Session
from recallbench.systems.faults import Fault, Lost, one_line
from recallbench.systems.settings import HttpSettings
from recallbench.systems.wire import Hello, Hit, Reply
from recallstack.ranking.rows import Memory
from recallstack.systems.preretrieval.contract import TOP_K_LIMIT, RetrieverError, SearchRequest
from recallstack.systems.preretrieval.http_retriever import HttpRetriever

_HINTS = {
    "HTTP 429": "; it asks for fewer questions: lower concurrency, or lift its limit for the run",
    "HTTP 401": "; it wants to know who asks: set headers",
    "HTTP 404": "; is the address the search endpoint?",
}


def http_connection(url: str, settings: HttpSettings) -> Callable[[], HttpConnection]:
    """How connections to an address are made. Raises InputError for a bad address, or without httpx."""
    _retriever(url, settings)
    return lambda: HttpConnection(url, settings)


def _retriever(url: str, settings: HttpSettings) -> HttpRetriever:
    return HttpRetriever(url, settings.timeout_s, settings.max_bytes, settings.headers)


class HttpConnection:
    """Asks over HTTP. The snippet of a hit is its text."""

    takes_memories = False
    in_a_row = True

    def __init__(self, url: str, settings: HttpSettings) -> None:
        self._settings, self._retriever = settings, _retriever(url, settings)
        self.notes: Counter[str] = Counter()

    async def open(self) -> Hello:
        """There is no hello in the contract: the first question shows whether anyone is there."""
        return Hello("contract v0.2", "", frozenset({"search", "session"}))

    async def reset(self, corpus: str) -> None:
        """The base keeps what it has."""

    async def index(self, memories: Sequence[Memory]) -> Mapping[str, Sequence[str]]:
        """The base has its memories already."""
        return {}

    async def ask(self, question: Question, top_k: int) -> Reply:
        if top_k > TOP_K_LIMIT:
            raise Fault(f"cannot be asked for more than {TOP_K_LIMIT} hits (contract v0.2); lower --depth")
        request = SearchRequest(
            top_k=top_k,
            query=question.text,
            sources=tuple(one.replace("{corpus}", question.corpus) for one in self._settings.sources) or None,
            scope=_scope(question.session),
        )
        try:
            answer = await self._retriever.retrieve(request)
        except RetrieverError as error:
            hint = next((text for sign, text in _HINTS.items() if sign in str(error)), "")
            message = f"{_verb(error)} {error}{hint}"
            if error.kind in ("unreachable", "timeout"):
                raise Lost(message, own=True) from None
            raise Fault(message) from None
        if answer.incremental:
            self.notes["it left out what it gave before (incremental); every question must be answered alone"] += 1
        if len(answer.hits) > top_k:
            raise Fault(f"answered {len(answer.hits)} hits for top_k {top_k}")
        return Reply(tuple(Hit(_sound(hit.doc_id), hit.score, (), hit.snippet) for hit in answer.hits))

    async def close(self, gently: bool = True) -> None:
        await self._retriever.aclose()


def _verb(error: RetrieverError) -> str:
    """What the retriever says has a subject of its own; the message of a question begins with a verb."""
    return {"unreachable": "was not reached:", "timeout": "was too slow:"}.get(error.kind, "failed:")


def _scope(session: Session) -> dict[str, Any] | None:
    return msgspec.to_builtins(session) or None


def _sound(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Fault(f"answered a doc_id with half a character: {one_line(name, 60)!r}") from None
    return name
