"""A knowledge base over HTTP: what is sent, what is followed, what the settings hold; over real sockets."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from loopback import ASKED, GOOD, Handler, ask, error_of, nothing_left_open, replying, run, serving

from recallstack.errors import InputError
from recallstack.systems.preretrieval.contract import SearchResponse
from recallstack.systems.preretrieval.http_retriever import HttpRetriever

pytest.importorskip("httpx")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    with nothing_left_open():
        yield


# ---- what works


def test_a_search_on_the_wire() -> None:
    with serving(replying(GOOD, content_type="application/json")) as server:
        found = ask(server.url, headers={"Authorization": "Bearer s3cret"})
    assert [one.doc_id for one in found.hits] == ["d1"]
    ((path, headers, body),) = server.seen
    assert path == "/search"
    assert json.loads(body) == {"query": "端口 ports", "top_k": 3}
    sent = {name.lower(): value for name, value in headers.items()}
    assert sent["content-type"] == "application/json"
    assert sent["accept-encoding"] == "identity"
    assert sent["authorization"] == "Bearer s3cret"


def test_connections_are_kept_and_a_closed_retriever_opens_new_ones() -> None:
    ports = set()

    def behave(handler: Handler) -> None:
        ports.add(handler.client_address)
        handler.reply(GOOD)

    async def three_times(retriever: HttpRetriever) -> None:
        for _ in range(3):
            assert len((await retriever.retrieve(ASKED)).hits) == 1

    with serving(behave) as server:
        retriever = HttpRetriever(server.url)

        async def use() -> None:
            async with retriever:
                await three_times(retriever)

        asyncio.run(use())
        assert len(ports) == 1
        asyncio.run(use())  # another event loop
    assert len(ports) == 2


def test_many_calls_at_once() -> None:
    async def gather(retriever: HttpRetriever) -> list[SearchResponse]:
        return await asyncio.gather(*(retriever.retrieve(ASKED) for _ in range(30)))

    with serving(replying(GOOD)) as server:
        found = run(server.url, gather)
    assert {one.hits[0].doc_id for one in found} == {"d1"}
    assert len(server.seen) == 30


def test_an_answer_in_chunks_and_one_that_ends_with_the_connection() -> None:
    def chunks(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for byte in GOOD:
            handler.wfile.write(b"1\r\n" + bytes([byte]) + b"\r\n")
        handler.wfile.write(b"0\r\n\r\n")

    def closing(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.wfile.write(GOOD)

    for behave in (chunks, closing):
        with serving(behave) as server:
            assert [one.doc_id for one in ask(server.url).hits] == ["d1"]


def test_an_answer_of_exactly_the_limit_is_read() -> None:
    for pad, fits in ((0, True), (1, False)):
        body = GOOD + b" " * (1000 - len(GOOD) + pad)
        with serving(replying(body)) as server:
            if fits:
                assert len(ask(server.url, max_bytes=1000).hits) == 1
            else:
                assert error_of(server.url, max_bytes=1000).kind == "too-large"


def test_texts_never_go_through_a_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # the discard port: nobody is there
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with serving(replying(GOOD)) as server:
        assert len(ask(server.url).hits) == 1


# ---- redirects


def test_a_redirect_on_the_same_host_is_followed_with_the_same_request() -> None:
    def behave(handler: Handler) -> None:
        if handler.path == "/search":
            handler.reply(b"moved", 308, location="/v2/search")
        elif handler.path == "/v2/search":
            handler.reply(b"", 307, location=server.url.replace("/search", "/v3"))
        else:
            handler.reply(GOOD)

    with serving(behave) as server:
        found = ask(server.url, headers={"x-key": "s3cret"})
    assert [one.doc_id for one in found.hits] == ["d1"]
    assert [path for path, _, _ in server.seen] == ["/search", "/v2/search", "/v3"]
    assert len({body for _, _, body in server.seen}) == 1
    assert {headers["x-key"] for _, headers, _ in server.seen} == {"s3cret"}


def test_a_redirect_to_another_host_sends_nothing_there() -> None:
    with serving(replying(GOOD)) as other, serving(replying(b"", 307, location=other.url)) as server:
        assert error_of(server.url, headers={"x-key": "s3cret"}).kind == "redirect"
    assert (len(server.seen), other.seen) == (1, [])


def test_a_redirect_in_circles_ends() -> None:
    with serving(replying(b"", 307, location="/search")) as server:
        error_of(server.url)
    assert len(server.seen) == 4  # the request, and three redirects


# ---- settings


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("", "must begin with http:// or https:// and a host"),
        ("kb.example/search", "must begin with http:// or https:// and a host"),
        ("ftp://kb.example/", "must begin with http:// or https:// and a host"),
        ("http:///search", "must begin with http:// or https:// and a host"),
        ("http://kb.example:99999/", "port is 99999; it must be from 1 to 65535"),
        ("http://[::1/", "cannot be read"),
        ("http://xn--/", "cannot be read"),
        ("http://kb\nexample/", "cannot be read"),
    ],
)
def test_a_bad_address_is_one_clear_line(url: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        HttpRetriever(url)
    assert str(caught.value).startswith("the knowledge base's ")
    assert line in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "settings", [{"timeout": 0}, {"timeout": float("nan")}, {"timeout": float("inf")}, {"max_bytes": 0}]
)
def test_bad_bounds(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must be above 0"):
        HttpRetriever("http://kb.example/", **settings)


@pytest.mark.parametrize("headers", [{"x-key": "s3cret\r\nx: y"}, {"x-key": "s3crét"}, {"x\n": "y"}])
def test_a_bad_header_is_named_and_its_value_is_not(headers: dict[str, str]) -> None:
    with pytest.raises(InputError, match="holds a character that HTTP cannot send") as caught:
        HttpRetriever("http://kb.example/", headers=headers)
    assert "s3c" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_secrets_are_in_no_repr() -> None:
    retriever = HttpRetriever("http://u:s3cret@kb.example/search?t=s3cret#s3cret", headers={"x-key": "s3cret"})
    assert repr(retriever) == "HttpRetriever('http://kb.example/search')"


def test_without_httpx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(InputError, match=r"install the extra: pip install .*recallbench\[serve\]"):
        HttpRetriever("http://kb.example/")
