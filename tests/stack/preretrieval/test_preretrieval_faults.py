"""Everything that a knowledge base over HTTP can do wrong: one clear line, one mark, and the task goes on."""

from __future__ import annotations

import asyncio
import json
import select
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import ASKED, GOOD, HIT, PATIENT, SHORT, Handler, error_of, nothing_left_open, replying, run, serving

from recallstack.systems.preretrieval.engine import PreRetrieval, PreRetrievalConfig
from recallstack.systems.preretrieval.http_retriever import HttpRetriever

pytest.importorskip("httpx")

TEN_MB = 10_000_000


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    with nothing_left_open():
        yield


def silent(handler: Handler) -> None:
    handler.until_hung_up()


def stops_in_the_body(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(GOOD[:10])
    handler.until_hung_up()


def drips(handler: Handler) -> None:
    """A byte at a time for as long as anybody listens; given time enough, it is a whole and good answer."""
    handler.send_response(200)
    handler.send_header("content-length", str(len(GOOD) + 1000))
    handler.end_headers()
    for byte in b" " * 1000 + GOOD:
        handler.wfile.write(bytes([byte]))
        if select.select([handler.connection], [], [], SHORT / 10)[0]:  # the pace; readable is hung up
            handler.until_hung_up()


def says_10_mb(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", str(TEN_MB))
    handler.end_headers()
    handler.until_hung_up()  # not a byte of it is needed to refuse it


def sends_10_mb(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    for _ in range(TEN_MB // 0x10000 + 1):
        handler.wfile.write(chunk)
    handler.until_hung_up()


def breaks_off(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(GOOD)
    handler.close_connection = True


def hangs_up(handler: Handler) -> None:
    handler.close_connection = True


def speaks_no_http(handler: Handler) -> None:
    handler.wfile.write(b"220 mail.example ESMTP\r\n")
    handler.close_connection = True


def hits(score: Any = 0.5, count: int = 1) -> bytes:
    return json.dumps({"hits": [{**HIT, "score": score}] * count}).encode()


FAULTS: dict[str, tuple[Callable[[Handler], None], str, str]] = {
    "HTML": (replying(b"<html>login</html>", content_type="text/html"), "malformed", "HTML instead of JSON"),
    "JSON said to be HTML": (replying(GOOD, content_type="text/html; charset=x"), "malformed", "HTML instead of JSON"),
    "empty body": (replying(b""), "malformed", "an empty body"),
    "HTTP 204": (lambda handler: (handler.send_response(204), handler.end_headers())[1], "malformed", "an empty body"),
    "no JSON": (replying(b"hits: none"), "malformed", "not valid JSON"),
    "200 hits for top_k 3": (replying(hits(count=200)), "malformed", "200 hits for top_k 3; at most 100 are read"),
    "score as string": (replying(hits("0.9")), "malformed", "hits[0].score: Expected `float`, got `str`"),
    "score NaN": (replying(hits(float("nan"))), "malformed", "JSON with NaN, which is no JSON number"),
    "score Infinity": (replying(hits(float("inf"))), "malformed", "JSON with Infinity, which is no JSON number"),
    "compressed": (replying(GOOD, content_encoding="gzip"), "malformed", "answered in 'gzip', which was not asked for"),
    "HTTP 500": (replying(GOOD, 500), "status", "/search answered HTTP 500"),
    "HTTP 404": (replying(GOOD, 404), "status", "/search answered HTTP 404"),
    "HTTP 401": (replying(GOOD, 401), "status", "/search answered HTTP 401"),
    "silent": (silent, "timeout", f"gave no whole answer in {SHORT:g} s"),
    "stops in the body": (stops_in_the_body, "timeout", f"gave no whole answer in {SHORT:g} s"),
    "byte by byte": (drips, "timeout", f"gave no whole answer in {SHORT:g} s"),
    "10 MB announced": (says_10_mb, "too-large", "the answer is larger than 1000000 bytes"),
    "10 MB sent": (sends_10_mb, "too-large", "the answer is larger than 1000000 bytes"),
    "breaks off": (breaks_off, "unreachable", "was not reached or spoke no HTTP: RemoteProtocolError"),
    "hangs up": (hangs_up, "unreachable", "was not reached or spoke no HTTP: RemoteProtocolError"),
    "no HTTP": (speaks_no_http, "unreachable", "was not reached or spoke no HTTP: RemoteProtocolError"),
    "other host": (
        replying(b"", 307, location="http://kb.invalid/search"),
        "redirect",
        "redirects to another host, http://kb.invalid/search",
    ),
    "other port": (
        replying(b"", 308, location="http://127.0.0.1:9/search"),
        "redirect",
        "to another host, http://127.0.0.1:9/search",
    ),
    "other name of this host": (replying(b"", 307, location="http://localhost/search"), "redirect", "to another host"),
    "other scheme": (replying(b"", 307, location="https://127.0.0.1/search"), "redirect", "another host, https://"),
    "other kind of address": (replying(b"", 307, location="file:///etc/hosts"), "redirect", "to another host, file:/"),
    "no address": (replying(b"", 307, location="mailto:kb@example.org"), "unreachable", "spoke no HTTP: InvalidURL"),
    "secret in the redirect": (
        replying(b"", 307, location="http://u:s3cret@kb.invalid/?t=s3cret"),
        "redirect",
        "http://kb.invalid/;",
    ),
    "would become a GET": (
        replying(b"", 302, location="/other"),
        "redirect",
        "HTTP 302; only 307 and 308 can be followed",
    ),
    "to see elsewhere": (replying(b"", 303, location="/other"), "redirect", "answered HTTP 303; only 307 and 308"),
    "not modified": (lambda handler: (handler.send_response(304), handler.end_headers())[1], "redirect", "HTTP 304"),
    "redirect to nowhere": (replying(b"", 307), "redirect", "answered HTTP 307; only 307 and 308"),
    "redirect in circles": (replying(b"", 307, location="/search"), "redirect", "redirects more than 3 times"),
    "redirect without sense": (replying(b"", 307, location="http://[::1"), "unreachable", "RemoteProtocolError"),
    "redirect to a bad name": (replying(b"", 307, location="http://xn--/"), "unreachable", "spoke no HTTP"),
}
SLOW = ("silent", "stops in the body", "byte by byte")


def deadline(name: str) -> float:
    return SHORT if name in SLOW else PATIENT


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_clear_line(name: str) -> None:
    behave, kind, line = FAULTS[name]
    with serving(behave) as server:
        error = error_of(server.url + "?token=s3cret", timeout=deadline(name))
    assert error.kind == kind
    assert line in str(error)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_never_blocks_the_task(name: str) -> None:
    """Nothing is injected, one mark is left, and the next turn asks again."""
    behave, kind, _ = FAULTS[name]
    config = PreRetrievalConfig(inject_mode="per-turn", timeout_s=deadline(name))

    async def two_turns(retriever: HttpRetriever) -> None:
        engine = PreRetrieval(config, retriever)
        first = await engine.before_step([], ["ports"], 1)
        assert (first.kind, first.text) == ("failed", "")
        (mark,) = first.events
        assert (mark.type, mark.data) == ("pre-retrieval/failed", {"turn": 1, "kind": kind})
        server.behave = replying(GOOD)
        second = await engine.before_step([mark, type(mark)("turn/end", {"turn": 1})], ["ports"], 1)
        assert (second.kind, second.ids) == ("injected", ("d1",))

    with serving(behave) as server:
        run(server.url, two_turns)


@pytest.mark.parametrize("name", [*SLOW, "10 MB announced", "10 MB sent"])
def test_the_client_hangs_up_on_a_base_that_takes_too_long_or_too_much(name: str) -> None:
    with serving(FAULTS[name][0]) as server:
        error_of(server.url, timeout=deadline(name))
        assert server.hung_up.wait(PATIENT)


def test_the_deadline_of_the_engine_holds_too() -> None:
    async def step(retriever: HttpRetriever) -> Any:
        return await PreRetrieval(PreRetrievalConfig(timeout_s=SHORT), retriever).before_step([], ["ports"], 1)

    with serving(silent) as server:
        outcome = run(server.url, step)
        assert server.hung_up.wait(PATIENT)
    assert (outcome.kind, outcome.events[0].data["kind"]) == ("failed", "timeout")


def test_a_cancelled_call_hangs_up() -> None:
    async def cancel(retriever: HttpRetriever) -> None:
        task = asyncio.ensure_future(retriever.retrieve(ASKED))
        await asyncio.to_thread(server.arrived.wait, PATIENT)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.get_running_loop().shutdown_default_executor()

    with serving(silent) as server:
        run(server.url, cancel)
        assert server.hung_up.wait(PATIENT)


def test_nobody_listens() -> None:
    with socket.socket() as bound:  # bound and not listening: refused, and nobody else can take the port
        bound.bind(("127.0.0.1", 0))
        error = error_of(f"http://u:s3cret@127.0.0.1:{bound.getsockname()[1]}/search")
    assert error.kind == "unreachable"
    assert str(error).endswith("/search was not reached or spoke no HTTP: ConnectError")


def test_a_certificate_that_nobody_vouches_for(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving(replying(GOOD), context) as server:
        error = error_of(server.url.replace("http://", "https://"))
    assert (error.kind, server.seen) == ("unreachable", [])


@pytest.mark.parametrize("host", ["kb..invalid", "*", "%41", "a" * 70])
def test_a_host_that_cannot_be(host: str) -> None:
    assert error_of(f"http://{host}/search").kind == "unreachable"
