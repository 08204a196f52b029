"""`recallbench serve`: a real process, real sockets.

The expected answers come from the pipeline in this process, asked one question at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from recallbench.datasets import registry
from recallstack.ranking.pipeline import Query, answer
from recallstack.ranking.presets import preset
from recallstack.systems.preretrieval.engine import PreRetrieval, PreRetrievalConfig
from recallstack.systems.preretrieval.http_retriever import HttpRetriever

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

CLIENTS, EACH = 50, 6
TOP_K = 5
WAIT_S = 60.0
"""Seconds after which a server that does not answer or end is taken for stuck; never waited out."""


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Address and process of a server on a free port. It must end by SIGTERM with 0 and without a word."""
    command = [sys.executable, "-m", "recallbench", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().strip()
            if not line.startswith("serving on http://127.0.0.1:"):
                pytest.fail(f"{line!r}, {process.communicate(timeout=WAIT_S)}")
            yield line.removeprefix("serving on ").removesuffix("/search"), process
            process.terminate()
            assert process.communicate(timeout=WAIT_S) == ("", "")
            assert process.returncode == 0
        finally:
            process.kill()
    assert not psutil.pid_exists(process.pid)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving("--dataset", "mneme-memories") as (address, _):
        yield address


def expected(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The body that the default recipe must give to each text: rows of the pipeline, scores as shares of the best."""
    (corpus,) = registry.load("mneme-memories").corpora.values()
    bodies = {}
    for text in texts:
        final = answer(corpus, [Query(text)], preset("rrf-k10"), TOP_K).final
        hits = []
        for row, score in zip(final.ids[0].tolist(), final.scores[0].tolist(), strict=True):
            if row >= 0:
                one = corpus.memories[row]
                assert len(one.content) <= 500, "longer contents are cut; choose other questions"
                hit = {"doc_id": one.id, "title": one.title, "path": "", "snippet": one.content}
                hits.append({**hit, "score": score / final.scores[0, 0], "source": corpus.name})
        bodies[text] = {"hits": hits}
    return bodies


def questions() -> list[str]:
    return [one.text for one in registry.load("mneme-memories").questions]


def post(url: str, **body: Any) -> Any:
    return httpx.post(f"{url}/search", json=body, trust_env=False)


# ---- answers


def test_fifty_clients_at_once_get_the_answers_of_this_process(url: str) -> None:
    texts = questions()[: CLIENTS * EACH]
    want = expected(texts)
    assert sum(len(one["hits"]) for one in want.values()) > 4 * len(texts)  # most lists are full

    async def client(number: int, start: asyncio.Barrier) -> list[tuple[str, int, Any]]:
        async with httpx.AsyncClient(base_url=url, timeout=WAIT_S, trust_env=False, verify=False) as session:
            await start.wait()
            got = []
            for turn in range(EACH):
                text = texts[(number * EACH + turn) % len(texts)]
                response = await session.post("/search", json={"query": text, "top_k": TOP_K})
                got.append((text, response.status_code, response.json()))
            return got

    async def everybody() -> list[list[tuple[str, int, Any]]]:
        start = asyncio.Barrier(CLIENTS)
        return await asyncio.gather(*(client(number, start) for number in range(CLIENTS)))

    got = [one for some in asyncio.run(everybody()) for one in some]
    assert len(got) == CLIENTS * EACH
    assert {text for text, _, _ in got} == set(texts)
    for text, status, body in got:
        assert (status, body) == (200, want[text])


def test_a_conversation_is_asked_with_its_texts(url: str) -> None:
    first, second = questions()[:2]
    context = [{"role": "user", "text": first}, {"role": "tool", "text": second, "name": "grep"}]
    body = post(url, context=context, top_k=TOP_K).json()
    assert body == expected([f"{first}\n{second}"])[f"{first}\n{second}"]


def test_the_reference_plugin_asks_it(url: str) -> None:
    """Both ends: the engine and the HTTP retriever against the server."""
    text = questions()[0]

    async def step() -> Any:
        async with HttpRetriever(f"{url}/search") as retriever:
            engine = PreRetrieval(PreRetrievalConfig(query_mode="rule", top_k=TOP_K), retriever)
            return await engine.before_step([], [text], 1)

    outcome = asyncio.run(step())
    assert outcome.kind == "injected"
    assert list(outcome.ids) == [hit["doc_id"] for hit in expected([text])[text]["hits"] if hit["score"] >= 0.2]


def test_health_says_what_is_served(url: str) -> None:
    response = httpx.get(f"{url}/health", trust_env=False)
    assert response.status_code == 200
    rows = len(registry.load("mneme-memories").corpora["main"])
    assert response.json() == {"status": "ok", "contract": "0.2", "recipe": "rrf-k10", "sources": {"main": rows}}


# ---- bad requests

JSON = {"content-type": "application/json"}
GOOD = b'{"query": "port", "top_k": 3}'
BAD: dict[str, tuple[str, str, dict[str, str], bytes, int, str]] = {
    "empty": ("POST", "/search", JSON, b"", 400, "the request body is empty; send JSON such as"),
    "no JSON": ("POST", "/search", JSON, b"query=x", 400, "bad request: a body that is not valid JSON"),
    "not UTF-8": ("POST", "/search", JSON, b'{"query": "\xff", "top_k": 3}', 400, "not valid JSON"),
    "unknown field": ("POST", "/search", JSON, b'{"query": "x", "k": 3}', 400, "unknown field `k`"),
    "top_k 0": ("POST", "/search", JSON, b'{"query": "x", "top_k": 0}', 400, "top_k: Expected `int` >= 1"),
    "nothing asked": ("POST", "/search", JSON, b'{"top_k": 3}', 400, "neither query nor context holds any text"),
    "unknown source": (
        "POST",
        "/search",
        JSON,
        b'{"query": "x", "top_k": 3, "sources": ["docs"]}',
        400,
        "unknown source 'docs'; known: main",
    ),
    "unknown scope": (
        "POST",
        "/search",
        JSON,
        b'{"query": "x", "top_k": 3, "scope": {"team": "a"}}',
        400,
        "unknown scope key 'team'; use agent_scope or workspace_scope",
    ),
    "no content type": ("POST", "/search", {}, GOOD, 415, "send the request with content-type: application/json"),
    "wrong content type": ("POST", "/search", {"content-type": "text/plain"}, GOOD, 415, "content-type: application/"),
    "unknown path": ("POST", "/find", JSON, GOOD, 404, "no such path; there are POST /search and GET /health"),
    "root": ("GET", "/", {}, b"", 404, "no such path"),
    "wrong method": ("GET", "/search", {}, b"", 405, "/search takes POST, not GET"),
    "health by POST": ("POST", "/health", JSON, GOOD, 405, "/health takes GET, HEAD, not POST"),
    "one byte too large": (
        "POST",
        "/search",
        JSON,
        GOOD.ljust(1_000_001),
        413,
        "the body is larger than 1000000 bytes",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request_gets_one_clear_line(url: str, name: str) -> None:
    method, path, headers, body, status, line = BAD[name]
    response = httpx.request(method, url + path, headers=headers, content=body, trust_env=False)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    said = response.json()
    assert list(said) == ["error"]
    assert line in said["error"]
    assert len(said["error"].splitlines()) == 1
    if status == 405:
        assert response.headers["allow"]
    assert post(url, query="port", top_k=1).status_code == 200  # and it goes on


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
def test_a_body_of_exactly_the_limit_is_read(url: str, kind: str) -> None:
    response = httpx.post(
        f"{url}/search", content=GOOD.ljust(1_000_000), headers={"content-type": kind}, trust_env=False
    )
    assert (response.status_code, len(response.json()["hits"])) == (200, 3)


def connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    return socket.create_connection((parts.hostname, parts.port), timeout=WAIT_S)


def head(length: int, *more: str) -> bytes:
    lines = ["POST /search HTTP/1.1", "host: kb", "content-type: application/json", f"content-length: {length}", *more]
    return "".join(line + "\r\n" for line in [*lines, ""]).encode()


def to_the_end(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_body_far_over_the_limit_is_not_even_read(url: str) -> None:
    with connect(url) as connection:
        connection.sendall(head(10_000_000))  # and not a byte of the body
        received = to_the_end(connection)  # the server answers and hangs up
    assert received.startswith(b"HTTP/1.1 413 ")
    assert json.loads(received.partition(b"\r\n\r\n")[2]) == {"error": "the body is larger than 1000000 bytes"}


@pytest.mark.parametrize(("megabytes", "polite"), [(2, True), (12, False)])
def test_a_body_without_a_length_is_held_to_the_limit(url: str, megabytes: int, polite: bool) -> None:
    """Up to eight times the limit the client hears why; above, the connection is cut in the middle."""
    received = b""
    with connect(url) as connection:
        connection.sendall(head(0).replace(b"content-length: 0", b"transfer-encoding: chunked"))
        with contextlib.suppress(ConnectionError) if not polite else contextlib.nullcontext():
            for _ in range(megabytes):
                connection.sendall(b"f4240\r\n" + b" " * 1_000_000 + b"\r\n")
            connection.sendall(b"0\r\n\r\n")
            received = to_the_end(connection)
    if polite:
        assert received.startswith(b"HTTP/1.1 413 ")
    assert post(url, query="port", top_k=1).status_code == 200


def test_a_client_that_hangs_up_in_the_middle_harms_nobody(url: str) -> None:
    for sent in (b"", b"POST", head(100), head(100) + b'{"query"', head(len(GOOD)) + GOOD):
        with connect(url) as connection:
            connection.sendall(sent)
    assert post(url, query="port", top_k=1).status_code == 200


# ---- the end


def test_sigterm_lets_requests_in_flight_end() -> None:
    text = questions()[0]
    want = expected([text])[text]
    with serving("--dataset", "mneme-memories") as (address, process), contextlib.ExitStack() as stack:
        body = json.dumps({"query": text, "top_k": TOP_K}).encode()
        flying = [stack.enter_context(connect(address)) for _ in range(8)]
        for connection in flying:
            connection.sendall(head(len(body), "expect: 100-continue"))
            # Said by the server when it is inside the request, waiting for the body.
            assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(body[:10])
        idle = stack.enter_context(connect(address))
        idle.sendall(b"GET /health HTTP/1.1\r\nhost: kb\r\n\r\n")
        answered = b""
        while not answered.endswith(b"}}"):
            answered += idle.recv(1000)
        assert answered.startswith(b"HTTP/1.1 200 ")

        process.terminate()
        assert idle.recv(1000) == b""  # closed: the server has begun to end
        with pytest.raises(ConnectionRefusedError):
            connect(address)
        for connection in flying:
            connection.sendall(body[10:])
        for connection in flying:
            received = to_the_end(connection)
            assert received.startswith(b"HTTP/1.1 200 ")
            assert json.loads(received.partition(b"\r\n\r\n")[2]) == want


def refused(*arguments: str) -> str:
    """The one line of a command that must exit with 2."""
    command = [sys.executable, "-m", "recallbench", "serve", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
    assert (done.returncode, done.stdout) == (2, ""), done
    (line,) = done.stderr.splitlines()
    return line


def test_a_port_in_use_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused("--dataset", "mneme-memories", "--port", str(port))
    assert line.startswith(f"recallbench: error: cannot listen on 127.0.0.1:{port}: ")
    assert line.endswith("choose another --host or --port")


# ---- a folder of Markdown


def test_a_folder_of_markdown(tmp_path: Path) -> None:
    folder = tmp_path / "my notes"
    (folder / "ops").mkdir(parents=True)
    (folder / "ops" / "ports.md").write_text(
        "# Ports\n\nPostgres listens on 5432.\n\n- Redis: 6379\n", encoding="utf-8"
    )
    (folder / "cat.md").write_text("The cat of the office is called Mira.\n" + "🐈" * 600 + "\n", encoding="utf-8")
    with serving("--dataset", str(folder), "--system", "bm25-okapi") as (address, _):
        assert httpx.get(f"{address}/health", trust_env=False).json()["sources"] == {"my notes": 4}
        assert post(address, query="postgres", top_k=3, sources=["my notes"]).json() == {
            "hits": [
                {
                    "doc_id": "ops/ports.md#3",
                    "title": "",
                    "path": "ops/ports.md:3",
                    "snippet": "Postgres listens on 5432.",
                    "score": 1.0,
                    "source": "my notes",
                }
            ]
        }
        (hit,) = post(address, query="Mira", top_k=3).json()["hits"]
        assert hit["path"] == "cat.md:1"
        assert hit["snippet"] == ("The cat of the office is called Mira.\n" + "🐈" * 600)[:500]


def test_mistakes_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "no .md file with text" in refused("--dataset", str(tmp_path / "empty"))
    (tmp_path / "n.md").write_text("a note", encoding="utf-8")
    assert "--data is for a public format" in refused("--dataset", str(tmp_path), "--data", str(tmp_path))
    assert "no labelled set 'mneme-memory'" in refused("--dataset", "mneme-memory")
    assert "cannot listen on kb..invalid:0" in refused(
        "--dataset", str(tmp_path), "--host", "kb..invalid", "--port", "0"
    )
