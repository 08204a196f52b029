"""`recallbench datasets fetch`, against a real HTTP server on loopback: no network."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from made import refused
from paths import data_folder

from recallbench.cli import _run
from recallbench.datasets import fetch as fetching
from recallbench.datasets import registry
from recallbench.datasets.fetch import PUBLIC, Public, fetch

CONTENT = bytes(range(256)) * 700
"""179,200 bytes: more than two reads."""
FILE = Public("x.json", "http://nowhere.invalid/x.json", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "CC0", "-")


class Handler(http.server.BaseHTTPRequestHandler):
    asked: list[str]
    content: bytes

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/good")
            self.end_headers()
            return
        if self.path in ("/missing", "/broken"):
            self.send_error(404 if self.path == "/missing" else 503)
            return
        data = {
            "/good": self.content,
            "/wrong": self.content[:-1] + b"!",
            "/short": self.content[:-100],
            "/long": self.content + b"!",
            "/cut": self.content[:1000],
        }[self.path]
        self.send_response(200)
        if self.path == "/cut":  # says more than it sends
            self.send_header("Content-Length", str(len(self.content)))
        elif self.path != "/short":  # a connection that just ends cannot be told from a whole answer
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def handler() -> type[Handler]:
    return type("Mine", (Handler,), {"asked": [], "content": CONTENT})


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(handler: type[Handler]) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{serving.server_address[1]}"
        finally:
            serving.shutdown()
            thread.join()


@pytest.mark.parametrize("path", ["/good", "/moved"])
def test_a_file_arrives_whole(server: str, tmp_path: Path, path: str) -> None:
    folder = tmp_path / "new" / "folder"
    told: list[int] = []
    assert fetch(FILE, folder, server + path, told.append) is True
    assert [one.name for one in folder.iterdir()] == ["x.json"]
    assert (folder / "x.json").read_bytes() == CONTENT
    assert told == sorted(told)
    assert told[-1] == len(CONTENT)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/missing", "the server answers 404 Not Found; give --url for another place"),
        ("/broken", "the server answers 503 Service Unavailable; give --url for another place"),
        (
            "/wrong",
            f"its SHA-256 is {hashlib.sha256(CONTENT[:-1] + b'!').hexdigest()}, and that of x.json is {FILE.sha256};"
            " nothing was kept: the file was changed, give --url for a place that has the original",
        ),
        ("/short", "ended after 179100 of 179200 bytes; nothing was kept, try again"),
        ("/cut", "ended after 1000 of 179200 bytes; nothing was kept, try again"),
        ("/long", "is longer than the 179200 bytes of x.json; nothing was kept"),
    ],
)
def test_anything_else_leaves_nothing(server: str, tmp_path: Path, path: str, says: str) -> None:
    assert refused(fetch, FILE, tmp_path, server + path) == f"{server}{path}: {says}"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_checked_and_not_fetched(server: str, handler: type[Handler], tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(CONTENT)
    assert fetch(FILE, tmp_path, f"{server}/good") is False
    (tmp_path / "x.json").write_bytes(b"mine")
    message = refused(fetch, FILE, tmp_path, f"{server}/good")
    assert message == (
        f"{tmp_path / 'x.json'}: is there already and is another file; move it away, or name another folder"
    )
    assert (tmp_path / "x.json").read_bytes() == b"mine"
    assert handler.asked == []


def test_no_server(tmp_path: Path) -> None:
    with socket.socket() as held:  # bound and not listening: a connection is refused
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/x"
        message = refused(fetch, FILE, tmp_path, url)
    assert message.startswith(f"{url}: cannot be downloaded: ")
    assert "Connection refused" in message
    assert message.endswith("check the network, or download it elsewhere and name its folder with --data")
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_falls_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "TIMEOUT", 0.05)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        assert refused(fetch, FILE, tmp_path, url).startswith(f"{url}: cannot be downloaded: timed out; ")
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_speaks_no_http(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()

        def answer() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{other.getsockname()[1]}/x"
        assert refused(fetch, FILE, tmp_path, url).startswith(f"{url}: cannot be downloaded: ")
        thread.join()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["file:///etc/hostname", "x.json", "ftp://127.0.0.1/x"])
def test_only_http(tmp_path: Path, url: str) -> None:
    assert refused(fetch, FILE, tmp_path, url) == f"{url}: an address begins with https:// or http://"


def test_an_address_that_is_none(tmp_path: Path) -> None:
    assert refused(fetch, FILE, tmp_path, "http://[1/x").startswith("http://[1/x: cannot be downloaded: ")


def test_a_folder_that_cannot_be_written(server: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    message = refused(fetch, FILE, tmp_path / "file", f"{server}/good")
    assert message.startswith(f"{tmp_path / 'file' / 'x.json'}: cannot be ")


# The command.


def test_the_pinned_file_is_the_one_that_is_given() -> None:
    data = (data_folder() / "locomo10.json").read_bytes()
    assert PUBLIC["locomo"].size == len(data)
    assert PUBLIC["locomo"].sha256 == hashlib.sha256(data).hexdigest()


@pytest.fixture
def locomo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, handler: type[Handler]) -> Path:
    """A small LoCoMo in place of the real one, and a user's data folder of the test's own."""
    turn = '{"speaker": "A", "dia_id": "D1:1", "text": "x"}'
    sessions = f'"session_1": [{turn}], "session_1_date_time": "1:56 pm on 8 May, 2023"'
    asked = '{"question": "x?", "category": 1, "evidence": ["D1:1"]}'
    handler.content = f'[{{"sample_id": "c", "conversation": {{{sessions}}}, "qa": [{asked}]}}]'.encode()
    pinned = hashlib.sha256(handler.content).hexdigest()
    small = dataclasses.replace(PUBLIC["locomo"], size=len(handler.content), sha256=pinned)
    monkeypatch.setattr(fetching, "PUBLIC", {"locomo": small})
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RECALLBENCH_DATA", raising=False)
    return fetching.folder_of("locomo") / "locomo10.json"


def test_fetched_data_is_found_by_its_name(
    locomo: Path, server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    message = refused(registry.load, "locomo")
    assert message.endswith("or get it with `recallbench datasets fetch locomo`")
    assert _run(["datasets", "fetch", "locomo", "--url", f"{server}/good"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("locomo10.json: licence CC BY-NC 4.0: name the authors")
    assert lines[1] == f"{locomo}: downloaded, SHA-256 as pinned"
    assert [one.id for one in registry.load("locomo").questions] == ["c-q1"]
    assert _run(["datasets", "fetch", "locomo", "--url", f"{server}/missing"]) == 0
    assert "is there already" in capsys.readouterr().out
    # A folder that the environment names comes first, but only if it holds the file.
    monkeypatch.setenv("RECALLBENCH_DATA", str(tmp_path))
    assert len(registry.load("locomo").questions) == 1
    (tmp_path / "locomo10.json").write_text("[]")
    assert refused(registry.load, "locomo") == f"{tmp_path / 'locomo10.json'}: holds no question"


def test_another_folder(locomo: Path, server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["datasets", "fetch", "locomo", "--url", f"{server}/good", "--to", str(tmp_path / "here")]) == 0
    assert (tmp_path / "here" / "locomo10.json").is_file()
    assert not locomo.exists()
    assert len(registry.load("locomo", tmp_path / "here").questions) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["locomo", "--url", "{server}/wrong"], "its SHA-256 is "),
        (["locomo", "--url", "{server}/missing"], "the server answers 404 Not Found"),
        (["squad"], "'squad' cannot be fetched; known: locomo"),
        (["locmo"], "'locmo' cannot be fetched; did you mean 'locomo'?"),
    ],
)
def test_a_failure_is_one_line_and_exit_code_2(
    locomo: Path, server: str, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert _run(["datasets", "fetch", *(one.replace("{server}", server) for one in arguments)]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert says in err
    assert not locomo.exists()


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["datasets", "fetch", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert all(word in words for word in ("--to", "--url", "SHA-256", "licence", "locomo"))
