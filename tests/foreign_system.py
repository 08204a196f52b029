"""A system on stdio, with our Python adapter, that names its rows in its own way (its first argument says how)."""

from __future__ import annotations

import os
import signal
import sys

from recallbench.adapters.python import serve

mode = sys.argv[1]


class Foreign:
    name = "foreign"

    def __init__(self) -> None:
        self.rows: list[dict] = []
        able = {"session": "session", "says-vectors": "vectors", "asks-vectors": "vectors"}.get(mode)
        if able:
            self.capabilities = ["search", able]
        self.asked = self.second = 0

    def reset(self, corpus: str) -> None:
        print("reset", corpus)  # goes to standard error while the adapter serves
        if mode != "leaks" and (mode != "leaks-at-the-end" or corpus != "check-c"):
            self.rows = []

    def index(self, memories: list[dict]) -> dict | None:
        self.rows += memories
        if mode == "map":
            return {one["id"]: 1000 + self.rows.index(one) for one in memories}
        if mode == "map-lists":  # every memory becomes two rows
            return {one["id"]: [f"{one['id']}/a", f"{one['id']}/b"] for one in memories}
        if mode == "map-merged":  # all memories become one row
            return {one["id"]: "one" for one in memories}
        return None

    def search(self, question: dict, top_k: int) -> list[dict] | dict:
        """The rows that share a word with the question, in order; the last word of a question names its answer."""
        self.asked += 1
        if mode == "no-word":
            question["text"].split()[0]
        if mode == "exits-on-quotes" and '"' in question["text"]:
            print("first line", "OperationalError: unterminated string", sep="\n", file=sys.stderr, flush=True)
            os._exit(1)
        if mode == "hangs-on-emoji" and "😀" in question["text"]:
            signal.pause()
        if mode == "asks-vectors":
            assert len(self.embed([question["text"]])[0]) == 8
        word = (question["text"].rstrip("?").split() or [""])[-1]
        found = [one for one in self.rows if word in one["content"].split()]
        if mode == "session":
            print("who", question.get("session"))
        if mode == "flaky":
            return self.answer(found)[: 1 + self.asked % 2][:top_k]
        if mode == "mixes-up" and question["id"] == "c-2":
            self.second += 1
            return self.answer(found)[::-1] if self.second > 1 else self.answer(found)[:top_k]
        return self.answer(found)[: 5 if mode == "top_k" else top_k]

    def answer(self, found: list[dict]) -> list[dict]:
        everything = [self.row(one) for one in [*found, *[one for one in self.rows if one not in found]]]
        if mode == "merged":
            return [{"id": "new", "source_ids": [one["id"] for one in self.rows[:3]], "score": 1.0}, *everything[3:]]
        if mode == "map-merged":
            return [{"id": "one"}]
        if mode == "twice":
            return [one for one in everything for _ in range(2)]
        return everything

    def row(self, one: dict) -> dict:
        number = 1000 + self.rows.index(one)
        return {
            "map": {"id": number},
            "map-lists": {"id": f"{one['id']}/b"},
            "no-map": {"id": f"row-{number}"},
            "file-map": {"id": f"row-{one['id']}"},
            "text": {"text": f"<b>{one['content'].upper()}</b>"},
            "snippet": {"text": "… " + " ".join(one["content"].split()[-4:])},
            "rewritten": {"id": f"row-{number}", "text": "somebody said something once"},
            "falling": {"id": one["id"], "score": -number},
            "rising": {"id": one["id"], "score": number},
        }.get(mode, {"id": one["id"]})


serve(Foreign())
if mode == "deaf":
    signal.pause()
