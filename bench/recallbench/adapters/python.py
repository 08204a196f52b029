"""recallbench protocol 1 for Python: JSON lines on standard input and output. Needs nothing but Python 3.11.

    from recallbench.adapters.python import serve

    class Plugin:
        name, version = "my-plugin", "1.0"
        def reset(self, corpus): ...
        def index(self, memories): ...            # in blocks; may return {our id: your id}
        def search(self, question, top_k): ...    # returns hits: [{"id": …, "score": …}, …]

    serve(Plugin())

While it runs, whatever is printed goes to standard error. The module can be copied into a project of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

PROTOCOL = 1
SCENARIO = ("scenario", "event", "advance", "fault", "call", "probe", "scenario_end")
"""Operations that go to the method `scenario` with the whole message, where there is one."""
_SEARCHES = ("search", "inject")


def serve(system: Any) -> None:
    """Answer the harness until it closes standard input.

    system: an object with `name` and `search(question, top_k)` or `inject(question, top_k)`, which return a list of
    hits or `{"hits": […], "trace": {…}}`. Where there are such attributes: `version`, `capacity`, `capabilities`
    (default: search, inject and scenario where they are methods), `reset(corpus)`, `index(memories)`, `index_done()`,
    `configure(config)`, `scenario(message)`. A method that raises fails the one request. `system.embed` is set to a
    function that gives the embeddings of a list of texts, as the harness gives them (capability `vectors`).

    Every step of a scenario goes to `scenario` with the whole message; without that method, scenarios that only
    search are played with `reset`, `configure` (the scenario's settings), `index` and `search`.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints, in whatever language it is written
    with answers, contextlib.redirect_stdout(sys.stderr):
        _Server(system, sys.stdin.buffer, answers).run()


class _Server:
    def __init__(self, system: Any, requests: BinaryIO, answers: BinaryIO) -> None:
        self._system, self._requests, self._answers = system, requests, answers
        self._held: list[dict[str, Any]] = []
        self._calls = 0
        system.embed = self.embed

    def run(self) -> None:
        while (message := self._next()) is not None:
            self._send({"id": message.get("id"), **self._answer(message)})

    def embed(self, texts: Sequence[str]) -> list[list[float] | None]:
        """The given embedding of each text, None where none is given. Raises RuntimeError where none are given."""
        self._calls += 1
        number = f"e{self._calls}"
        self._send({"id": number, "op": "embed", "texts": list(texts)})
        while (message := self._read()) is not None:
            if "op" in message:
                self._held.append(message)  # a request that came before the answer
            elif message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(message["error"])
                found: list[list[float] | None] = message["vectors"]
                return found
        raise RuntimeError("the harness has gone")

    def _next(self) -> dict[str, Any] | None:
        return self._held.pop(0) if self._held else self._read()

    def _read(self) -> dict[str, Any] | None:
        for line in self._requests:  # lines end at \n alone
            if line.strip():
                message: dict[str, Any] = json.loads(line)
                return message
        return None

    def _send(self, message: dict[str, Any]) -> None:
        self._answers.write(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        self._answers.flush()

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._do(str(message.get("op")), message)
        except Exception as error:  # noqa: BLE001 (a plugin's fault is the fault of one request)
            traceback.print_exc()
            return {"error": f"{type(error).__name__}: {error}"}

    def _do(self, op: str, message: dict[str, Any]) -> dict[str, Any]:
        if op == "hello":
            return self._hello(message)
        if op in SCENARIO:
            return {"value": self._scenario(op, message)}
        if op == "reset":
            self._optional("reset", message["corpus"])
            return {}
        if op in ("index", "index_done"):
            ids = self._optional(op, *([message["memories"]] if op == "index" else []))
            return {} if ids is None else {"ids": ids}
        if op in _SEARCHES:
            return self._ask(op, message["question"], message["top_k"])
        raise ValueError(f"no operation {op}")

    def _optional(self, name: str, *arguments: Any) -> Any:
        method: Callable[..., Any] | None = getattr(self._system, name, None)
        return method(*arguments) if method is not None else None

    def _ask(self, op: str, question: dict[str, Any], top_k: int) -> dict[str, Any]:
        if op not in _SEARCHES or not hasattr(self._system, op):
            raise ValueError(f"no operation {op}")
        found = getattr(self._system, op)(question, top_k)
        return found if isinstance(found, dict) else {"hits": list(found)}

    def _scenario(self, op: str, message: dict[str, Any]) -> Any:
        if hasattr(self._system, "scenario"):
            return self._system.scenario(message)
        if op == "scenario":
            given = message["given"]
            self._optional("reset", "main")
            self._optional("configure", given.get("config", {}))
            self._optional("index", given.get("memories", []))
            return self._optional("index_done")
        if op == "probe":
            question = {"id": "probe", "text": message.get("query", "")}
            rows = self._ask(message["probe"], question, message.get("top_k", 5))["hits"]
            return {"ids": [row["id"] for row in rows], "scores": [row.get("score") for row in rows]}
        if op == "scenario_end":
            return None
        raise ValueError(f"no operation {op}")

    def _hello(self, message: dict[str, Any]) -> dict[str, Any]:
        if message.get("protocol") != PROTOCOL:
            raise ValueError(f"this adapter speaks protocol {PROTOCOL}, not {message.get('protocol')}")
        system = self._system
        able = getattr(system, "capabilities", None)
        if able is None:
            able = [name for name in (*_SEARCHES, "scenario") if hasattr(system, name)]
        capacity = getattr(system, "capacity", None)
        return {
            "protocol": PROTOCOL,
            "name": system.name,
            "version": getattr(system, "version", ""),
            "capabilities": list(able),
            **({} if capacity is None else {"capacity": capacity}),
        }
