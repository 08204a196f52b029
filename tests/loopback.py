"""A knowledge base on loopback for the tests of the HTTP client: a real server that does what it is told.

A slow one waits for the client to hang up, so that no test sleeps.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.server
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from recallstack.systems.preretrieval.contract import RetrieverError, SearchRequest, SearchResponse
from recallstack.systems.preretrieval.http_retriever import HttpRetriever

HIT = {"doc_id": "d1", "title": "Ports", "path": "ops.md", "snippet": "5432", "score": 0.5, "source": "docs"}
GOOD = json.dumps({"hits": [HIT]}).encode()
ASKED = SearchRequest(top_k=3, query="端口 ports")
SHORT = 0.2
"""Seconds that the client waits for a base that never answers."""
PATIENT = 20.0
"""Seconds for one that does; never waited out."""


class Handler(http.server.BaseHTTPRequestHandler):
    """Records each request and answers it as the server's `behave` says."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.path, dict(self.headers), body))
        self.server.arrived.set()
        try:
            self.server.behave(self)
        except ConnectionError:  # the client hung up, as it should
            self.server.hung_up.set()
            self.close_connection = True

    def do_GET(self) -> None:
        self.server.seen.append((self.path, dict(self.headers), b""))
        self.reply(GOOD)

    def reply(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def until_hung_up(self) -> None:
        if not self.rfile.read(1):
            raise ConnectionAbortedError

    def log_message(self, *_: Any) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    """On a free port of loopback. Its threads are joined when it closes: one that is stuck would hang the test."""

    daemon_threads = False
    request_queue_size = 64

    def __init__(self, behave: Callable[[Handler], None]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behave = behave
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        self.arrived, self.hung_up = threading.Event(), threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/search"


@contextlib.contextmanager
def serving(behave: Callable[[Handler], None], tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    with Server(behave) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def replying(body: bytes, status: int = 200, **headers: str) -> Callable[[Handler], None]:
    return lambda handler: handler.reply(body, status, **headers)


@contextlib.contextmanager
def nothing_left_open() -> Iterator[None]:
    """No file, socket or thread more than before."""
    gc.collect()  # what earlier tests left is not counted
    process = psutil.Process()
    before = (process.num_fds(), threading.active_count())
    yield
    assert (process.num_fds(), threading.active_count()) == before


def run(url: str, work: Callable[[HttpRetriever], Any], **settings: Any) -> Any:
    """`work` with a retriever; no task may be left when it is closed."""

    async def main() -> Any:
        async with HttpRetriever(url, **{"timeout": PATIENT, **settings}) as retriever:
            result = await work(retriever)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    return asyncio.run(main())


def ask(url: str, **settings: Any) -> SearchResponse:
    found = run(url, lambda retriever: retriever.retrieve(ASKED), **settings)
    assert isinstance(found, SearchResponse)
    return found


def error_of(url: str, **settings: Any) -> RetrieverError:
    """The RetrieverError of a call: one line, and without the secrets of the address."""
    with pytest.raises(RetrieverError) as caught:
        ask(url, **settings)
    line = str(caught.value)
    assert len(line.splitlines()) == 1
    assert len(line) < 500
    assert "s3cret" not in line
    return caught.value
