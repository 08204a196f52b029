"""A knowledge base over HTTP (extra `serve`): one deadline, one size, no strange hosts."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Self

from recallstack.errors import InputError
from recallstack.systems.preretrieval.contract import (
    RetrieverError,
    SearchRequest,
    SearchResponse,
    decode_response,
    encode,
)

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 3.0
"""Seconds for a whole call (seed 004)."""
MAX_BYTES = 1_000_000
"""Largest answer that is read (choice): 100 hits of 500 characters are well below."""
REDIRECTS = 3
"""Redirects on the same host that are followed."""


class HttpRetriever:
    """`POST url`. Use it as an async context manager, or call `aclose`; it belongs to one event loop.

    timeout: seconds for the whole call, redirects and body included, however steadily bytes drip in.
    max_bytes: an answer that is larger is an error and is not read to its end.
    headers: sent to `url`'s own host only; they are in no message, no log and no repr.
    Proxies and credentials of the environment are not used: texts go where `url` says and nowhere else.
    Raises InputError for an address that is not http(s)://host/…, or if httpx is missing.
    """

    def __init__(
        self,
        url: str,
        timeout: float = TIMEOUT_S,
        max_bytes: int = MAX_BYTES,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        library = _httpx()
        try:
            parsed: httpx.URL = library.URL(url)
            host = parsed.host
        except (library.InvalidURL, UnicodeError) as error:  # UnicodeError: a bad international host name
            raise InputError(f"the knowledge base's address cannot be read: {error}") from None
        if parsed.scheme not in ("http", "https") or not host:
            raise InputError("the knowledge base's address must begin with http:// or https:// and a host")
        if parsed.port is not None and not 0 < parsed.port < 65536:
            raise InputError(f"the knowledge base's port is {parsed.port}; it must be from 1 to 65535")
        if not (math.isfinite(timeout) and timeout > 0) or max_bytes < 1:
            raise InputError(f"timeout ({timeout:g} s) and max_bytes ({max_bytes}) must be above 0")
        self._url, self._timeout, self._max_bytes = parsed, timeout, max_bytes
        for name, value in (headers or {}).items():
            if not (f"{name}{value}".isascii() and f"{name}{value}".isprintable()):
                raise InputError(f"header {name!r} holds a character that HTTP cannot send")
        self._headers = dict(headers or {})
        self._client: httpx.AsyncClient | None = None

    def __repr__(self) -> str:
        return f"HttpRetriever({_shown(self._url)!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. The retriever opens new ones if it is used again."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def retrieve(self, request: SearchRequest) -> SearchResponse:
        """Ask once. Raises RetrieverError: unreachable, timeout, status, redirect, too-large, malformed."""
        library = _httpx()
        body = encode(request)
        try:
            async with asyncio.timeout(self._timeout):
                content_type, answered = await self._call(body)
        except TimeoutError:
            raise RetrieverError(
                "timeout", f"{_shown(self._url)} gave no whole answer in {self._timeout:g} s"
            ) from None
        except (library.HTTPError, library.InvalidURL, UnicodeError) as error:
            # The last two: httpx reads the address of a redirect even when it is not to follow it.
            raise RetrieverError(
                "unreachable", f"{_shown(self._url)} was not reached or spoke no HTTP: {type(error).__name__}"
            ) from None
        return decode_response(answered, request.top_k, content_type)

    async def _call(self, body: bytes) -> tuple[str, bytes]:
        """Content type and body of the answer, after redirects on the same host."""
        client = self._open()
        url = self._url
        for _ in range(REDIRECTS + 1):
            async with client.stream("POST", url, content=body, headers=self._sent()) as response:
                if 300 <= response.status_code < 400:
                    url = self._redirected(response)
                    continue
                if not 200 <= response.status_code < 300:
                    raise RetrieverError("status", f"{_shown(url)} answered HTTP {response.status_code}")
                return response.headers.get("content-type", ""), await self._read(response)
        raise RetrieverError("redirect", f"{_shown(self._url)} redirects more than {REDIRECTS} times")

    def _open(self) -> httpx.AsyncClient:
        if self._client is None:
            # Loading certificates stops the event loop for up to 0.1 s; plain http needs none, and stays plain http.
            verify = self._url.scheme == "https"
            made: httpx.AsyncClient = _httpx().AsyncClient(timeout=None, trust_env=False, verify=verify)
            self._client = made
        return self._client

    def _sent(self) -> dict[str, str]:
        # Without compression: the size that is counted is the size that is held.
        return {**self._headers, "content-type": "application/json", "accept-encoding": "identity"}

    def _redirected(self, response: httpx.Response) -> httpx.URL:
        """Where a redirect leads: the same scheme, host and port, and the request stays a POST."""
        if response.status_code not in (307, 308) or "location" not in response.headers:
            raise RetrieverError(
                "redirect",
                f"{_shown(response.url)} answered HTTP {response.status_code}; only 307 and 308 can be followed",
            )
        target = response.url.join(response.headers["location"])
        if (target.scheme, target.host, target.port) != (self._url.scheme, self._url.host, self._url.port):
            raise RetrieverError(
                "redirect", f"{_shown(self._url)} redirects to another host, {_shown(target)}; it was not followed"
            )
        return target

    async def _read(self, response: httpx.Response) -> bytes:
        said = response.headers.get("content-length", "")
        encoding = response.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            raise RetrieverError(
                "malformed", f"the knowledge base answered in {encoding[:20]!r}, which was not asked for"
            )
        too_large = RetrieverError("too-large", f"the answer is larger than {self._max_bytes} bytes")
        if said.isdecimal() and int(said) > self._max_bytes:
            raise too_large
        body = bytearray()
        async for part in response.aiter_raw():
            body += part
            if len(body) > self._max_bytes:
                raise too_large
        return bytes(body)


def _shown(url: httpx.URL) -> str:
    """The address without user, password, query and fragment, which may hold secrets."""
    return str(url.copy_with(username="", password="", query=None, fragment=None))[:200]


def _httpx() -> ModuleType:
    try:
        import httpx
    except ImportError:
        raise InputError('asking over HTTP needs httpx; install the extra: pip install "recallbench[serve]"') from None
    return httpx
