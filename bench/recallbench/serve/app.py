"""`recallbench serve`: a knowledge base that answers contract v0.2 over HTTP (extra `serve`).

`POST /search` answers, `GET /health` says what is served. Every error is JSON: `{"error": "one line"}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from recallbench.serve.batch import AnswerBatch, Batcher
from recallstack.errors import InputError
from recallstack.systems.preretrieval.contract import SearchRequest, decode_request, encode

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from uvicorn import Server

MAX_BODY = 1_000_000
"""Bytes of a request body (choice): a context of 2,000 characters is a few kilobytes."""
DRAINED = 8
"""A body up to this many times the limit is read to its end, so that the client sees the 413."""
BODY_TIMEOUT_S = 10.0
"""Seconds in which a body must have arrived (choice)."""
SHUTDOWN_S = 30
"""Seconds that requests in flight have to end after SIGTERM (choice)."""
BACKLOG = 512


def _require() -> None:
    try:
        import starlette
        import uvicorn
    except ImportError:
        raise InputError(
            'serving needs starlette and uvicorn; install the extra: pip install "recallbench[serve]" '
            '(in a checkout: pip install -e ".[serve]")'
        ) from None
    del starlette, uvicorn


def make_app(
    answer_batch: AnswerBatch,
    *,
    check: Callable[[SearchRequest], None] | None = None,
    about: Mapping[str, Any] | None = None,
    max_body: int = MAX_BODY,
    body_timeout: float = BODY_TIMEOUT_S,
) -> Starlette:
    """The ASGI application.

    answer_batch: answers of a batch; called by one thread at a time. check: raises InputError for a request
    that must not be asked (400). about: what `GET /health` adds to its status. max_body: bytes (413 above).
    body_timeout: seconds for the body to arrive (408 after). An exception of `answer_batch` is a 500 for that
    request and goes on to the server's log. Raises InputError if the extra is missing.
    """
    _require()
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect
    from starlette.responses import Response
    from starlette.routing import Route

    batcher = Batcher(answer_batch)

    def reply(value: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        return Response(msgspec.json.encode(value), status, headers, "application/json")

    async def search(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise HTTPException(415, "send the request with content-type: application/json")
        try:
            async with asyncio.timeout(body_timeout):
                body = await _read(request, max_body)
        except TimeoutError:
            raise HTTPException(
                408, f"the body did not arrive within {body_timeout:g} s", {"connection": "close"}
            ) from None
        except ClientDisconnect:
            return Response(status_code=400)  # nobody is there to read it
        if body is None:
            raise HTTPException(413, f"the body is larger than {max_body} bytes", {"connection": "close"})
        try:
            asked = decode_request(body)
            if check is not None:
                check(asked)
        except InputError as error:
            raise HTTPException(400, str(error)) from None
        return Response(encode(await batcher.ask(asked)), media_type="application/json")

    async def health(_: Request) -> Response:
        return reply({"status": "ok", "contract": "0.2", **(about or {})})

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        detail = error.detail
        if error.status_code == 404:
            detail = "no such path; there are POST /search and GET /health"
        elif error.status_code == 405:
            allowed = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
            detail = f"{request.url.path} takes {allowed}, not {request.method}"
        return reply({"error": detail}, error.status_code, error.headers)

    async def broken(_: Request, error: Exception) -> Response:
        return reply({"error": f"the server failed ({type(error).__name__}); its log says where"}, 500)

    return Starlette(
        routes=[
            Route("/search", search, methods=["POST"]),
            Route("/health", health, methods=["GET"]),
        ],
        exception_handlers={HTTPException: refused, Exception: broken},
    )


async def _read(request: Request, most: int) -> bytes | None:
    """The body, or None if it is larger than `most` bytes (then it was read only as far as is polite)."""
    said = request.headers.get("content-length", "")
    if said.isdecimal() and int(said) > DRAINED * most:
        return None
    body = bytearray()
    size = 0
    async for part in request.stream():
        size += len(part)
        if size <= most:
            body += part
        elif size > DRAINED * most:
            break
    return bytes(body) if size <= most else None


def run_server(
    app: Starlette,
    host: str,
    port: int,
    announce: Callable[[str], None] = lambda line: print(line, flush=True),
) -> None:
    """Serve until SIGTERM or Ctrl-C; then no new connection is taken and the requests in flight end.

    port: 0 takes a free one. announce: given one line with the address once connections are taken.
    Returns after SIGTERM (the caller exits with 0); Ctrl-C raises KeyboardInterrupt when all is closed.
    Raises InputError if the address cannot be bound.
    """
    _require()
    import uvicorn

    listening = _listen(host, port)
    try:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_S,
        )
        server = uvicorn.Server(config)
        with _sigterm_ends(server):
            announce(f"serving on {address(listening)}/search")
            server.run(sockets=[listening])
    finally:
        listening.close()


def address(listening: socket.socket) -> str:
    """`http://host:port` of a bound socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise InputError(f"the port is {port}; it must be from 0 to 65535")
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(where[:2], family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        raise InputError(f"cannot listen on {host}:{port}: {error}; choose another --host or --port") from None


@contextlib.contextmanager
def _sigterm_ends(server: Server) -> Iterator[None]:
    """SIGTERM ends the server, and nothing else.

    uvicorn raises the signals that it caught once more when it has shut down, which would end the process by
    the signal and not with 0; and before it has its own handler, the default one would end the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        server.should_exit = True

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
