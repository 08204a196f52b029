"""`http:URL`: a knowledge base on a real socket that fails at the third question, in every way of the fault table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from loopback import Handler, Server, nothing_left_open, serving
from systems_support import QUESTIONS, WORDS, Outcome, run_system

pytest.importorskip("httpx", reason="asking over HTTP needs the extra serve")

Captured = pytest.CaptureFixture[str]
PERFECT = dict.fromkeys(QUESTIONS, 1.0)
Behave = Callable[[Handler, dict[str, Any], int], None]


def hit(number: int, **more: Any) -> dict[str, Any]:
    text = f"the long word number {number} is {WORDS[number - 1]}"
    return {"doc_id": f"m-{number}", "title": "", "path": "", "snippet": text, "score": 0.5, "source": "kb", **more}


def good(handler: Handler, request: dict[str, Any], number: int) -> None:
    handler.reply(json.dumps({"hits": [hit(number)]}).encode())


def at_third(bad: Behave) -> Callable[[Handler], None]:
    """Answers what `WORDS` says; the third question goes to `bad`."""

    def behave(handler: Handler) -> None:
        request = json.loads(handler.server.seen[-1][2])
        number = WORDS.index(request["query"].rstrip("?").split()[-1]) + 1
        (bad if number == 3 else good)(handler, request, number)

    return behave


def ask(folder: Path, capsys: Captured, bad: Behave, **settings: Any) -> tuple[Outcome, Server]:
    with nothing_left_open(), serving(at_third(bad)) as server:
        found = run_system(folder, capsys, f"http:{server.url}", in_process=True, **settings)
        listening = server.server_address
    ports = {one.laddr.port for one in psutil.Process().net_connections() if one.status == psutil.CONN_LISTEN}
    assert listening[1] not in ports
    return found, server


def replying(body: bytes | str, status: int = 200, **headers: str) -> Behave:
    data = body.encode() if isinstance(body, str) else body
    return lambda handler, request, number: handler.reply(data, status, **headers)


def truncated(handler: Handler, request: dict[str, Any], number: int) -> None:
    body = json.dumps({"hits": [hit(number)]}).encode()
    handler.send_response(200)
    handler.send_header("content-length", str(len(body) + 10))
    handler.end_headers()
    handler.wfile.write(body)
    handler.close_connection = True


def slow(handler: Handler, request: dict[str, Any], number: int) -> None:
    handler.until_hung_up()


def hang_up(handler: Handler, request: dict[str, Any], number: int) -> None:
    handler.close_connection = True


def redirect(handler: Handler, request: dict[str, Any], number: int) -> None:
    handler.reply(b"", 307, location="http://localhost:1/search")


FAULTS: dict[str, tuple[Behave, str]] = {
    "500": (replying("{}", 500), "answered HTTP 500"),
    "429": (replying("{}", 429, retry_after="1"), "answered HTTP 429; it asks for fewer questions: lower concurrency"),
    "401": (replying("{}", 401), "answered HTTP 401; it wants to know who asks: set headers"),
    "404": (replying("{}", 404), "answered HTTP 404; is the address the search endpoint?"),
    "redirect elsewhere": (redirect, "redirects to another host"),
    "redirect as GET": (replying("", 302, location="/other"), "only 307 and 308 can be followed"),
    "html": (replying("<html>sign in</html>"), "HTML instead of JSON"),
    "no json": (replying("{"), "a body that is not valid JSON"),
    "empty body": (replying(""), "an empty body instead of JSON"),
    "a bad field": (replying(json.dumps({"hits": [{"doc_id": 7}]})), "JSON with a bad field: hits[0].doc_id"),
    "nan": (replying('{"hits": [{"doc_id": "m-3", "score": NaN}]}'), "JSON with NaN, which is no JSON number"),
    "text score": (replying(json.dumps({"hits": [hit(3, score="high")]})), "hits[0].score"),
    "too many": (replying(json.dumps({"hits": [hit(3)] * 21})), "answered 21 hits for top_k 20"),
    "too large": (replying(json.dumps({"hits": [hit(3, title="x" * 5_000_000)]})), "larger than 4000000 bytes"),
    "truncated": (truncated, "was not reached or spoke no HTTP"),
    "hang up": (hang_up, "was not reached or spoke no HTTP"),
    "unknown id without text": (replying(json.dumps({"hits": [hit(3, doc_id="zz", snippet="")]})), "unknown id, 'zz'"),
}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_bad_answer_costs_its_question_alone(name: str, tmp_path: Path, capsys: Captured) -> None:
    bad, said = FAULTS[name]
    found, _ = ask(tmp_path, capsys, bad)
    assert found.code == 2
    assert "INVALID" in found.err
    assert set(found.failed) == {"q-3"}
    assert said in found.failed["q-3"]
    assert found.rr == {**PERFECT, "q-3": 0.0}
    assert found.folder is not None
    assert (found.folder / "runs" / "bm25-okapi.trec").is_file()


def test_a_slow_answer_costs_its_question_alone(tmp_path: Path, capsys: Captured) -> None:
    found, server = ask(tmp_path, capsys, slow, timeout_s=1.0)
    assert found.code == 2
    assert set(found.failed) == {"q-3"}
    assert "gave no whole answer in 1 s" in found.failed["q-3"]
    assert server.hung_up.is_set()
    # Whatever it costs, a base that answers again is asked again: the bound is of losses in a row.
    assert found.rr == {**PERFECT, "q-3": 0.0}


def test_slow_answers_at_once_are_each_the_fault_of_their_own_question(tmp_path: Path, capsys: Captured) -> None:
    """Nobody else is to blame, so that none is asked again."""
    with nothing_left_open(), serving(lambda handler: handler.until_hung_up()) as server:
        found = run_system(
            tmp_path, capsys, f"http:{server.url}", in_process=True, timeout_s=1.0, concurrency=6, restarts=9
        )
    assert set(found.failed) == set(QUESTIONS)
    assert len(server.seen) == len(QUESTIONS)


def test_a_good_base_is_valid(tmp_path: Path, capsys: Captured) -> None:
    found, server = ask(tmp_path, capsys, good)
    assert found.code == 0
    assert found.rr == PERFECT
    assert found.manifest["latency"]["it"]["n"] == 6
    [request] = [json.loads(body) for _, _, body in server.seen if b"alpha" in body]
    assert request == {"top_k": 20, "query": "which word is alpha?"}


def test_questions_at_once(tmp_path: Path, capsys: Captured) -> None:
    found, _ = ask(tmp_path, capsys, FAULTS["500"][0], concurrency=4)
    assert set(found.failed) == {"q-3"}
    assert found.rr == {**PERFECT, "q-3": 0.0}


def test_a_base_that_is_not_there_is_given_up_after_the_bound(tmp_path: Path, capsys: Captured) -> None:
    with serving(at_third(good)) as server:
        url = server.url
    found = run_system(tmp_path, capsys, f"http:{url}", restarts=1)
    assert found.code == 2
    assert "was not reached" in found.failed["q-1"]
    assert found.failed["q-3"].startswith("was not asked any more: it was lost 2 times (restarts: 1)")
    assert set(found.failed) == set(QUESTIONS)


def test_a_redirect_on_the_same_host_is_followed(tmp_path: Path, capsys: Captured) -> None:
    def moved(handler: Handler, request: dict[str, Any], number: int) -> None:
        if handler.path == "/there":
            good(handler, request, number)
        else:
            handler.reply(b"", 308, location="/there")

    found, _ = ask(tmp_path, capsys, moved)
    assert found.code == 0
    assert found.rr == PERFECT


def test_documents_are_matched_by_map_or_text(tmp_path: Path, capsys: Captured) -> None:
    """A base has ids of its own; without a map its snippets are recognised."""

    def theirs(handler: Handler, request: dict[str, Any], number: int) -> None:
        other = {**hit(number), "doc_id": f"doc-{number}"}
        stranger = {**hit(number), "doc_id": "wiki", "snippet": "not of this set"}
        handler.reply(json.dumps({"hits": [other, stranger]}).encode())

    by_text, _ = ask(tmp_path, capsys, theirs)
    assert by_text.code == 0
    assert by_text.rr == PERFECT
    assert by_text.checks["matching"] == [
        "returned rows matched to memories: 5 by id, 1 by text; 1 matched nothing, each keeps its place"
    ]
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "ids.csv").write_text("doc-3,m-3\n")
    by_map, _ = ask(tmp_path / "b", capsys, theirs, id_map="ids.csv")
    assert by_map.rr == PERFECT
    assert "1 by id map" in by_map.checks["matching"][0]


def test_headers_and_sources_are_sent_and_written_nowhere(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_THE_TEST", "Bearer s3cret")
    found, server = ask(
        tmp_path, capsys, good, headers={"authorization": "env:TOKEN_OF_THE_TEST"}, sources=["kb/{corpus}"]
    )
    assert found.code == 0
    assert {headers["authorization"] for _, headers, _ in server.seen} == {"Bearer s3cret"}
    assert {tuple(json.loads(body)["sources"]) for _, _, body in server.seen} == {("kb/main",)}
    assert found.folder is not None
    assert not any(b"s3cret" in path.read_bytes() for path in found.folder.rglob("*") if path.is_file())
    assert "s3cret" not in found.out + found.err


def test_a_base_that_leaves_out_what_it_gave_is_told(tmp_path: Path, capsys: Captured) -> None:
    found, _ = ask(tmp_path, capsys, replying(json.dumps({"hits": [hit(3)], "incremental": True})))
    assert found.code == 0
    assert any("it left out what it gave before" in one for one in found.checks["system-note"])


def test_the_address_of_a_run_shows_no_secret(tmp_path: Path, capsys: Captured) -> None:
    with serving(at_third(good)) as server:
        url = server.url.replace("http://", "http://me:s3cret@") + "?key=s3cret"
        found = run_system(tmp_path, capsys, f"http:{url}", in_process=True)
    assert found.folder is not None
    assert found.manifest["systems"]["it"]["url"] == server.url
    assert not any(b"s3cret" in path.read_bytes() for path in found.folder.rglob("*") if path.is_file())
