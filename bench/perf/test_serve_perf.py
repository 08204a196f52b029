"""`recallbench serve` under 50 clients at once, against answering the same questions in this process one by one.

The server is a process of its own on loopback; each client keeps one connection and asks its next question when it
has its answer. Latency is what one client waits, with 49 others waiting too. The ratios are wall time a request over
time a question in process, asked one by one and in batches of 50. The server answers in batches what waits together:
so it can be below 1 against one by one, and against batches it says what HTTP and the clients on the same cores cost.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from recallbench.datasets import registry
from recallbench.serve.recipe import KnowledgeBase
from recallstack.ranking.presets import preset
from recallstack.systems.preretrieval.contract import SearchRequest, SearchResponse, decode_response, encode

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

CLIENTS, TOP_K, SET, RECIPE = 50, 3, "mneme-memories", "rrf-k10"
QUICK = os.environ.get("RECALLBENCH_PERF_QUICK") == "1"
HEAD = b"POST /search HTTP/1.1\r\nhost: kb\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
EACH, ROUNDS = (4, 1) if QUICK else (40, 5)


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-m", "recallbench", "serve", "--dataset", SET, "--system", RECIPE, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = urlsplit(process.stdout.readline().removeprefix("serving on ").strip())
            assert url.hostname is not None
            assert url.port is not None
            yield url.hostname, url.port
        finally:
            process.terminate()
    assert process.returncode == 0


async def client(address: tuple[str, int], bodies: list[bytes], start: asyncio.Barrier) -> list[tuple[float, bytes]]:
    """(seconds, body) of each answer. Plain sockets: a client library would cost more than the server."""
    reader, writer = await asyncio.open_connection(*address)
    answers: list[tuple[float, bytes]] = []
    await start.wait()
    for body in bodies:
        begun = time.perf_counter()
        writer.write(HEAD % len(body) + body)
        got = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert got.startswith(b"http/1.1 200 ")
        length = int(got.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        answer = await reader.readexactly(length)
        answers.append((time.perf_counter() - begun, answer))
    writer.close()
    await writer.wait_closed()
    return answers


def test_fifty_clients_against_in_process(benchmark: Any, address: tuple[str, int]) -> None:
    labelled = registry.load(SET)
    base = KnowledgeBase(labelled.corpora, preset(RECIPE))
    base.warm()
    texts = [one.text for one in labelled.questions]
    asked = [SearchRequest(query=texts[i % len(texts)], top_k=TOP_K) for i in range(CLIENTS * EACH)]
    shares = [[encode(one) for one in asked[number::CLIENTS]] for number in range(CLIENTS)]

    async def everybody() -> list[list[tuple[float, bytes]]]:
        start = asyncio.Barrier(CLIENTS)
        return await asyncio.gather(*(client(address, share, start) for share in shares))

    latencies: list[float] = []
    alone: list[float] = []
    batched: list[float] = []

    def in_process(size: int, times: list[float]) -> list[SearchResponse]:
        begun = time.perf_counter()
        answers = [one for at in range(0, len(asked), size) for one in base.answer(asked[at : at + size])]
        times.append((time.perf_counter() - begun) / len(asked))
        return answers

    def peers() -> None:
        assert in_process(1, alone) == in_process(CLIENTS, batched) == expected

    def served() -> None:
        for number, some in enumerate(asyncio.run(everybody())):
            latencies.extend(seconds for seconds, _ in some)
            assert [decode_response(body, TOP_K) for _, body in some] == expected[number::CLIENTS]

    expected = in_process(1, [])
    benchmark.pedantic(served, setup=peers, rounds=ROUNDS)
    p50, p95, worst = (1e3 * float(one) for one in np.quantile(latencies, [0.5, 0.95, 1.0]))
    request = benchmark.stats.stats.median / len(asked)
    question, in_batch = float(np.median(alone)), float(np.median(batched))
    benchmark.extra_info.update(
        clients=CLIENTS,
        requests=len(latencies),
        p50_ms=p50,
        p95_ms=p95,
        max_ms=worst,
        requests_per_second=1 / request,
        in_process_ms=question * 1e3,
        in_process_batch_ms=in_batch * 1e3,
        ratio=request / question,
        ratio_batch=request / in_batch,
    )
    print(
        f"\nserve, {CLIENTS} clients, {len(latencies)} requests, no error, the answers of this process: "
        f"p50 {p50:.1f} ms, p95 {p95:.1f} ms, longest {worst:.0f} ms; {1 / request:,.0f} requests a second; "
        f"{request / question:.2f} times as long a request as a question in process one by one "
        f"({question * 1e3:.2f} ms), "
        f"{request / in_batch:.1f} times as in batches of {CLIENTS} ({in_batch * 1e3:.2f} ms)"
        f"{' (quick: too few requests to judge)' if QUICK else ''}"
    )
