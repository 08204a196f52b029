"""A small plugin that speaks protocol 1 over standard input and output, as a file that a test writes."""

from __future__ import annotations

PLUGIN = """
import json, sys, time

K = 3        # words that a memory must share with a question
SLEEP_MS = 0
memories = []
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"id": asked["id"]}
    if asked["op"] == "hello":
        answer.update(name="plugin", version="1", capabilities=["search"])
    elif asked["op"] == "reset":
        memories = []
    elif asked["op"] == "index":
        memories += asked["memories"]
    elif asked["op"] == "search":
        time.sleep(SLEEP_MS / 1000)
        words = set(asked["question"]["text"].split())
        scored = [(len(words & set(one["content"].split())), one["id"]) for one in memories]
        best = sorted((-score, name) for score, name in scored if score >= K)
        answer["hits"] = [{"id": name, "score": -score} for score, name in best[: asked["top_k"]]]
    print(json.dumps(answer), flush=True)
"""
"""Returns memories that share at least K words with the question, most words first."""
