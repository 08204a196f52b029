"""Contract v0.2 of a knowledge base: `POST /search`, its request and its answer, decoded strictly.

One field is judged at a time, and every error is one line that says what came and what was expected.
"""

from __future__ import annotations

import contextlib
import json
import math
from typing import Annotated, Any, Literal, NoReturn

import msgspec
from msgspec import Meta

from recallstack.errors import InputError
from recallstack.ranking.text import cut

HITS_LIMIT = 100
"""Most hits that an answer may hold when fewer were asked (choice). A few too many are cut by the caller,
as the document says; an answer that ignores `top_k` altogether comes from a broken knowledge base."""
TOP_K_LIMIT = 1000
"""Most hits that a request may ask for (choice)."""

Role = Literal["user", "assistant", "tool"]
FailureKind = Literal["unreachable", "timeout", "status", "redirect", "too-large", "malformed"]


class RetrieverError(Exception):
    """A knowledge base failed: it was not reached, was slow, or answered something else than the contract.

    kind: what failed, for the mark in the log. The message is one line without texts and without headers.
    """

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind


class ContextEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One entry of the conversation, oldest first in a request. `name` is the tool's, for role tool."""

    role: Role
    text: str
    name: str | None = None


class SearchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What is asked. `query` (mode rule) or `context` (mode context) must hold text; `sources` are namespaces."""

    top_k: Annotated[int, Meta(ge=1, le=TOP_K_LIMIT)]
    query: str | None = None
    context: tuple[ContextEntry, ...] | None = None
    sources: tuple[str, ...] | None = None
    scope: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The query, or without one the texts of the context, oldest first, a line each."""
        if self.query and self.query.strip():
            return self.query
        return "\n".join(entry.text for entry in self.context or () if entry.text.strip())


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One hit. `score` is meant for [0, 1] and only has to be finite; unknown fields are ignored."""

    doc_id: Annotated[str, Meta(min_length=1)]
    title: str
    path: str
    snippet: str
    score: float
    source: str


class SearchResponse(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What came back, best first. truncated: the base dropped hits beyond its own cap.

    incremental: the base left out what it gave before in this conversation.
    """

    hits: tuple[Hit, ...]
    truncated: bool = False
    incremental: bool = False


_ENCODER = msgspec.json.Encoder()
_REQUESTS = msgspec.json.Decoder(SearchRequest)
_RESPONSES = msgspec.json.Decoder(SearchResponse)


def encode(message: SearchRequest | SearchResponse) -> bytes:
    """The message as JSON in UTF-8. Raises InputError where a text holds half a character."""
    try:
        return _ENCODER.encode(message)
    except UnicodeEncodeError:
        raise InputError("a text holds half a character (a lone surrogate); clean it before it is sent") from None


def decode_request(body: bytes) -> SearchRequest:
    """A request from its body. Raises InputError: empty, no JSON, a wrong or unknown field, nothing asked."""
    if not body.strip():
        raise InputError('the request body is empty; send JSON such as {"query": "…", "top_k": 3}')
    try:
        request = _REQUESTS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"bad request: {_plain(error, body)}") from None
    if not request.text.strip():
        raise InputError("bad request: neither query nor context holds any text; send one of them")
    return request


def decode_response(body: bytes, top_k: int, content_type: str = "") -> SearchResponse:
    """An answer from its body. Raises RetrieverError (malformed), as `check_response` does."""
    if not body.strip():
        _malformed("an empty body instead of JSON")
    if body.lstrip()[:1] == b"<" or content_type.partition(";")[0].strip().lower() == "text/html":
        _malformed("HTML instead of JSON; is the address the search endpoint?")
    try:
        response = _RESPONSES.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _malformed(_plain(error, body))
    return check_response(response, top_k)


def check_response(response: SearchResponse, top_k: int) -> SearchResponse:
    """The same answer. Raises RetrieverError (malformed) for far too many hits or a score that is no number."""
    if len(response.hits) > max(top_k, HITS_LIMIT):
        _malformed(f"{len(response.hits)} hits for top_k {top_k}; at most {max(top_k, HITS_LIMIT)} are read")
    for place, hit in enumerate(response.hits):
        if not math.isfinite(hit.score):
            _malformed(f"hits[{place}].score is {hit.score}; it must be a finite number")
    return response


def _malformed(what: str) -> NoReturn:
    raise RetrieverError("malformed", f"the knowledge base answered {what}")


def _plain(error: Exception, body: bytes) -> str:
    """What is wrong with a body, in one line, the place first."""
    if isinstance(error, RecursionError):
        return "JSON that is nested too deeply"
    if isinstance(error, msgspec.ValidationError):
        what, _, path = str(error).partition(" - at `$")
        what = cut(" ".join(what.split()), 200)  # it may quote what came
        return f"JSON with a bad field: {path.rstrip('`').lstrip('.') + ': ' if path else ''}{what}"
    constant = _constant(body)
    if constant:
        return f"JSON with {constant}, which is no JSON number"
    return f"a body that is not valid JSON: {error}"


def _constant(body: bytes) -> str:
    """The first NaN or Infinity that stands where a JSON number should, or nothing."""
    found: list[str] = []
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(body, parse_constant=found.append)
    return found[0] if found else ""
