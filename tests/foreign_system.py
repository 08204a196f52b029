"""A system on stdio, with our Python adapter, that names its rows in its own way (its first argument says how)."""

from __future__ import annotations

import sys

from recallbench.adapter import serve

mode = sys.argv[1]


class Foreign:
    name = "foreign"

    def __init__(self) -> None:
        self.rows: list[dict] = []
        if mode == "session":
            self.capabilities = ["search", "session"]

    def reset(self, corpus: str) -> None:
        print("reset", corpus)  # goes to standard error while the adapter serves
        if mode != "leaks":
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
        word = question["text"].rstrip("?").split()[-1]
        found = [one for one in self.rows if word in one["content"].split()]
        if mode == "session":
            print("who", question.get("session"))
        return self.answer(found)[:top_k]

    def answer(self, found: list[dict]) -> list[dict]:
        everything = [self.row(one) for one in [*found, *[one for one in self.rows if one not in found]]]
        if mode == "merged":
            return [{"id": "new", "source_ids": [one["id"] for one in self.rows[:3]], "score": 1.0}, *everything[3:]]
        if mode == "map-merged":
            return [{"id": "one"}]
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
        }.get(mode, {"id": one["id"]})


serve(Foreign())
