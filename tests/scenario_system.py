"""A system that plays scenarios over our Python adapter. Its first argument says how, the second where its log is."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from recallbench.adapters.python import serve

mode, log = sys.argv[1], Path(sys.argv[2])


class Plain:
    """Searches only: the adapter plays scenarios with these methods. The vectors decide, best cosine first."""

    name = "plain"
    capabilities = ("search", "vectors")

    def reset(self, corpus: str) -> None:
        self.rows: list[dict] = []

    def configure(self, config: dict) -> None:
        with log.open("a") as out:
            out.write(json.dumps({"config": config}) + "\n")

    def index(self, memories: list[dict]) -> None:
        self.rows += memories

    def search(self, question: dict, top_k: int) -> list[dict]:
        if mode == "dies" and question["text"] == "cache warm":
            print("gone", file=sys.stderr, flush=True)
            os._exit(4)
        if mode == "hangs":
            signal.pause()
        query, *vectors = self.embed([question["text"], *[one["content"] for one in self.rows]])
        dots = [sum(a * b for a, b in zip(query, one, strict=True)) if one else -1.0 for one in vectors]
        order = sorted(range(len(dots)), key=lambda i: -dots[i])
        return [{"id": self.rows[i]["id"], "score": dots[i]} for i in order if dots[i] > 0][:top_k]


class Whole:
    """Gets every step itself, writes it down, and answers probes with what it was told."""

    name = "whole"
    capabilities = ("search", "inject", "session", "prefetch", "vectors", "clock", "scenario")

    def scenario(self, message: dict) -> object:
        with log.open("a") as out:
            out.write(json.dumps({key: value for key, value in message.items() if key != "id"}) + "\n")
        if mode == "no-value" and message["op"] == "probe":
            return None
        if mode == "bad-end" and message["op"] == "scenario_end":
            raise ValueError("still open")
        return {"text": "", "ids": []} if message["op"] == "probe" else None


serve(Whole() if mode in ("whole", "no-value", "bad-end") else Plain())
