"""The parts of `recallbench serve`, in this process: the application, the batches, the base, the server's end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recallbench.cli import _run
from recallbench.datasets import registry
from recallbench.datasets.model import LabelledSet
from recallbench.serve.app import address, make_app, run_server
from recallbench.serve.batch import Batcher
from recallbench.serve.recipe import KnowledgeBase, share_of_best
from recallstack.errors import InputError
from recallstack.ranking.presets import preset, presets
from recallstack.ranking.rows import Corpus, Memory
from recallstack.systems.preretrieval.contract import SearchRequest, SearchResponse

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

WAIT_S = 60.0
"""Seconds after which something is taken for stuck; never waited out."""


def asked(number: int) -> SearchRequest:
    return SearchRequest(top_k=number, query=f"question {number}")


def nothing(requests: Sequence[SearchRequest]) -> list[SearchResponse]:
    return [SearchResponse(hits=()) for _ in requests]


# ---- batches


class Gate:
    """Answers with the request's own number; the first batch waits until the gate is opened."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.opened = threading.Event()
        self.entered = threading.Event()
        self._inside = threading.Lock()

    def __call__(self, requests: Sequence[SearchRequest]) -> list[SearchResponse]:
        assert self._inside.acquire(blocking=False), "two threads are in the stack"
        try:
            self.batches.append([one.top_k for one in requests])
            self.entered.set()
            assert self.opened.wait(WAIT_S)
            if any(one.top_k == 13 for one in requests):
                raise InputError("13 is not answered")
            return [SearchResponse(hits=(), truncated=one.top_k % 2 == 0) for one in requests]
        finally:
            self._inside.release()


def gathered(gate: Gate, numbers: Sequence[int], most: int) -> list[Any]:
    """Answers or errors: the first number alone, and the others while it is being answered."""

    async def main() -> list[Any]:
        batcher = Batcher(gate, most)
        first = asyncio.ensure_future(batcher.ask(asked(numbers[0])))
        await asyncio.to_thread(gate.entered.wait, WAIT_S)
        others = [asyncio.ensure_future(batcher.ask(asked(number))) for number in numbers[1:]]
        await asyncio.sleep(0)  # each of them has put its request in
        gate.opened.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    return asyncio.run(main())


def test_what_gathers_while_a_batch_is_answered_is_the_next_batch() -> None:
    gate = Gate()
    numbers = [1, 2, 3, 4, 5, 6]
    found = gathered(gate, numbers, most=4)
    assert gate.batches == [[1], [2, 3, 4, 5], [6]]
    assert [one.truncated for one in found] == [number % 2 == 0 for number in numbers]


def test_one_bad_request_fails_alone() -> None:
    gate = Gate()
    found = gathered(gate, [1, 12, 13, 14], most=64)
    assert [isinstance(one, InputError) for one in found] == [False, False, True, False]
    assert [one.truncated for one in found if isinstance(one, SearchResponse)] == [False, True, True]
    assert gate.batches == [[1], [12, 13, 14], [12], [13], [14]]


def test_a_wrong_number_of_answers_is_never_given_to_the_wrong_client() -> None:
    async def main() -> list[Any]:
        batcher = Batcher(lambda _: [])
        return await asyncio.gather(batcher.ask(asked(1)), batcher.ask(asked(2)), return_exceptions=True)

    assert [str(one) for one in asyncio.run(main())] == ["0 answers for 1 requests"] * 2


def test_a_client_that_has_gone_takes_nobody_with_it() -> None:
    gate = Gate()

    async def main() -> list[Any]:
        batcher = Batcher(gate)
        asks = [asyncio.ensure_future(batcher.ask(asked(number))) for number in (1, 2)]
        await asyncio.to_thread(gate.entered.wait, WAIT_S)
        asks[0].cancel()
        gate.opened.set()
        return [await asks[1], await batcher.ask(asked(3))]

    assert [one.truncated for one in asyncio.run(main())] == [True, False]


# ---- the application


def call(app: Any, **request: Any) -> Any:
    async def main() -> Any:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://kb") as client:
            return await client.post("/search", **request)

    return asyncio.run(main())


def test_a_fault_of_the_stack_is_a_500_without_its_text() -> None:
    def fail(_: Sequence[SearchRequest]) -> list[SearchResponse]:
        raise ZeroDivisionError("the text of a memory")

    response = call(make_app(fail), json={"query": "x", "top_k": 1})
    assert response.status_code == 500
    assert response.json() == {"error": "the server failed (ZeroDivisionError); its log says where"}


def test_a_refused_request_reaches_nobody() -> None:
    def refuse(_: SearchRequest) -> None:
        raise InputError("bad request: not today")

    def fail(_: Sequence[SearchRequest]) -> list[SearchResponse]:
        raise AssertionError

    response = call(make_app(fail, check=refuse), json={"query": "x", "top_k": 1})
    assert (response.status_code, response.json()) == (400, {"error": "bad request: not today"})


def test_a_body_that_does_not_arrive_is_given_up() -> None:
    sent: list[dict[str, Any]] = []
    scope = {"type": "http", "method": "POST", "path": "/search", "query_string": b"", "root_path": ""}
    headers = [(b"content-type", b"application/json"), (b"content-length", b"100")]

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(make_app(nothing, body_timeout=0.01)({**scope, "headers": headers}, receive, send))
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
    assert sent[1]["body"] == b'{"error":"the body did not arrive within 0.01 s"}'


def test_the_limit_of_a_body_can_be_set() -> None:
    body = b'{"query": "x", "top_k": 1}'
    headers = {"content-type": "application/json"}
    for limit, status in ((len(body), 200), (len(body) - 1, 413)):
        assert call(make_app(nothing, max_body=limit), content=body, headers=headers).status_code == status


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match=r"install the extra: pip install .*recallbench\[serve\]"):
        make_app(nothing)


# ---- the server's end


@pytest.fixture
def _handlers() -> Iterator[None]:
    """The usual handlers, whatever the test runner was started with; afterwards those that were."""
    kept = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for one, handler in kept.items():
        signal.signal(one, handler)


def end_by(number: int) -> Callable[[str], None]:
    """An `announce` that asks the server once and then sends this process a signal."""
    threads = []

    def announce(line: str) -> None:
        def ask() -> None:
            url = line.removeprefix("serving on ")
            answered = httpx.post(url, json={"query": "x", "top_k": 1}, trust_env=False)
            assert answered.json() == {"hits": []}
            os.kill(os.getpid(), number)

        threads.append(threading.Thread(target=ask))
        threads[0].start()

    return announce


@pytest.mark.usefixtures("_handlers")
def test_sigterm_ends_the_server_and_not_the_process() -> None:
    run_server(make_app(nothing), "127.0.0.1", 0, end_by(signal.SIGTERM))
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.usefixtures("_handlers")
def test_ctrl_c_is_the_callers() -> None:
    with pytest.raises(KeyboardInterrupt):
        run_server(make_app(nothing), "127.0.0.1", 0, end_by(signal.SIGINT))


def test_a_sigterm_before_the_server_runs_is_not_lost() -> None:
    """It comes between the announcement and the server's own handler."""
    run_server(make_app(nothing), "127.0.0.1", 0, lambda _: os.kill(os.getpid(), signal.SIGTERM))


@pytest.mark.parametrize("port", [-1, 65536])
def test_an_impossible_port(port: int) -> None:
    with pytest.raises(InputError, match=f"the port is {port}; it must be from 0 to 65535"):
        run_server(make_app(nothing), "127.0.0.1", port)


class Bound:
    def __init__(self, *name: Any) -> None:
        self._name = name

    def getsockname(self) -> Any:
        return self._name


def test_addresses_as_a_client_writes_them() -> None:
    assert address(Bound("127.0.0.1", 80)) == "http://127.0.0.1:80"  # type: ignore[arg-type]
    assert address(Bound("::1", 80, 0, 0)) == "http://[::1]:80"  # type: ignore[arg-type]


# ---- the base


def corpus(name: str, *contents: str) -> Corpus:
    return Corpus.of(name, [Memory(id=f"{name}-{i}", content=one, title="t") for i, one in enumerate(contents)])


TWO = {"a": corpus("a", "red apple", "green pear"), "b": corpus("b", "red brick"), "empty": corpus("empty")}


def base(**corpora: Corpus) -> KnowledgeBase:
    return KnowledgeBase(corpora, preset("bm25-okapi"))


def test_a_question_stays_in_its_source() -> None:
    requests = [SearchRequest(top_k=3, query="red brick", sources=(name,)) for name in ("b", "a", "empty", "b")]
    answers = base(**TWO).answer(requests)
    assert [[hit.source for hit in one.hits] for one in answers] == [["b"], ["a"], [], ["b"]]
    assert answers[0] == answers[3]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({}, "name one source, a question stays in one; known: a, b, empty"),
        ({"sources": ("a", "b")}, "name one source"),
        ({"sources": ("a", "docs")}, "unknown source 'docs'; known: a, b, empty"),
        ({"sources": ("a",), "scope": {"agent_scope": 7}}, "scope.agent_scope must be text, not int"),
        ({"sources": ("a",), "scope": {"repo": "x"}}, "unknown scope key 'repo'"),
    ],
)
def test_what_a_base_does_not_know_is_refused(more: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError, match=line):
        base(**TWO).check(SearchRequest(top_k=1, query="red", **more))
    base(**TWO).check(SearchRequest(top_k=1, query="red", sources=("a", "a"), scope={"agent_scope": None}))


def test_many_sources_are_not_all_listed() -> None:
    many = {f"c{i:02}": corpus(f"c{i:02}", "x") for i in range(12)}
    with pytest.raises(InputError, match="known: c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 2 more"):
        base(**many).check(SearchRequest(top_k=1, query="x"))


def test_nothing_to_serve() -> None:
    with pytest.raises(InputError, match="nothing to serve"):
        base()


def test_scores_are_shares_of_the_best() -> None:
    nan = np.nan
    given = np.array([[4.0, 2.0, 1.0], [0.5, nan, nan], [0.0, 0.0, nan], [-1.0, -2.0, nan], [2.0, -1.0, nan]])
    want = [[1.0, 0.5, 0.25], [1.0, nan, nan], [0.0, 0.0, nan], [0.0, 0.0, nan], [1.0, 0.0, nan]]
    np.testing.assert_array_equal(share_of_best(given), want)
    assert share_of_best(np.empty((2, 0))).shape == (2, 0)


def test_the_scope_of_a_request_reaches_an_injection_recipe() -> None:
    memories = [
        Memory(id="mine", content="red apple", agent_scope="me", importance=5),
        Memory(id="theirs", content="red apple red", agent_scope="you", importance=5),
    ]
    strict = KnowledgeBase({"m": Corpus.of("m", memories)}, _strict())
    got = strict.answer([SearchRequest(top_k=2, query="red apple", scope={"agent_scope": "me"})])
    assert [hit.doc_id for hit in got[0].hits] == ["mine"]
    got = strict.answer([SearchRequest(top_k=2, query="red apple")])
    assert {hit.doc_id for hit in got[0].hits} == {"mine", "theirs"}


def _strict() -> Any:
    import dataclasses

    return dataclasses.replace(preset("inject-fixed"), scope="strict")  # type: ignore[type-var]


def test_an_injection_that_is_capped_says_so() -> None:
    recipe = preset("inject-fixed")
    most = recipe.max_items  # type: ignore[union-attr]
    rows = corpus("m", *(f"red apple {i}" for i in range(most + 5)))
    served = KnowledgeBase({"m": rows}, recipe)
    few, many = served.answer([SearchRequest(top_k=top_k, query="red") for top_k in (most, most + 1)])
    assert (len(few.hits), few.truncated) == (most, False)
    assert (len(many.hits), many.truncated) == (most, True)


@pytest.fixture(scope="module")
def labelled() -> LabelledSet:
    return registry.load("mneme-memories")


@pytest.mark.parametrize("name", presets())
def test_a_batch_is_answered_as_its_questions_alone(labelled: LabelledSet, name: str) -> None:
    served = KnowledgeBase(labelled.corpora, preset(name))
    requests = [SearchRequest(top_k=1 + i % 3, query=one.text) for i, one in enumerate(labelled.questions[:40])]
    assert served.answer(requests) == [served.answer([one])[0] for one in requests]


def test_a_name_that_is_known_is_no_folder_of_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As everywhere: a name is a set, then a format, then a folder."""
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo" / "n.md").write_text("a note", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECALLBENCH_DATA", raising=False)
    assert _run(["serve", "--dataset", "locomo", "--port", "0"]) == 2
    assert "locomo is read from data that is not shipped; give --data PATH" in capsys.readouterr().err
