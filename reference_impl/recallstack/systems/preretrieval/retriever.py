"""How a knowledge base is asked: in this process, or over HTTP."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Protocol

from recallstack.systems.preretrieval.contract import SearchRequest, SearchResponse, check_response, decode_response


class Retriever(Protocol):
    """A knowledge base. `retrieve` raises RetrieverError for every failure of the base."""

    async def retrieve(self, request: SearchRequest) -> SearchResponse:
        """Ask once."""


Answered = SearchResponse | bytes
Answering = Callable[[SearchRequest], Answered | Awaitable[Answered]]


class InProcessRetriever:
    """A function as a knowledge base: plain or async, giving an answer or the body of one.

    It raises RetrieverError (or an OSError such as ConnectionError) where it fails; anything else that it
    raises is a fault of the function and passes through.
    """

    def __init__(self, function: Answering) -> None:
        self._function = function

    async def retrieve(self, request: SearchRequest) -> SearchResponse:
        """Ask once. Raises RetrieverError (malformed) for a body or an answer against the contract."""
        answered = self._function(request)
        if inspect.isawaitable(answered):
            answered = await answered
        if isinstance(answered, bytes):
            return decode_response(answered, request.top_k)
        return check_response(answered, request.top_k)
