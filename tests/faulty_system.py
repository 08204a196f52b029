"""A system on stdio that does one thing wrong, named by its first argument. Needs nothing but Python.

It knows that question `q-N` is answered by memory `m-N`. The question at which it fails is q-3.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

mode = sys.argv[1] if len(sys.argv) > 1 else "good"
out = os.fdopen(3, "w", encoding="utf-8") if mode == "fd3" else sys.stdout
memories: list[str] = []
held: list[tuple[int, dict]] = []
asked = 0


def send(message: dict) -> None:
    print(json.dumps(message, ensure_ascii=mode == "half-character"), file=out, flush=True)


def raw(text: str) -> None:
    print(text, file=out, flush=True)


def hits(*ids: str, **more: object) -> dict:
    return {"hits": [{"id": name, "score": 1.0 - place / 10, **more} for place, name in enumerate(ids)]}


def forever() -> None:
    while True:
        signal.pause()


def search(number: int, question: dict, top_k: int) -> None:
    global asked
    asked += 1
    name = question["id"]
    answer = name.replace("q", "m")
    good = hits(answer, *[one for one in memories if one != answer][:1])
    third = name == "q-3"
    if mode == "hang" and third:
        forever()
    elif mode == "hang-deaf" and third:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        forever()
    elif (mode == "crash" and third) or mode == "crash-always":
        print("Error: the index is gone", file=sys.stderr, flush=True)
        sys.exit(3)
    elif mode == "killed" and third:
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "closes-output" and third:
        os.close(1)
        forever()
    elif mode == "garbage" and third:
        raw("secret garden {")
    elif mode == "not-utf8" and third:
        os.write(1, b'{"id": "\xff"}\n')
    elif mode == "deep" and third:
        raw("[" * 200_000)
    elif mode == "big-line" and third:
        raw(json.dumps({"id": number, "hits": [{"id": answer, "text": "x" * 5_000_000}]}))
    elif mode == "other-id" and third:
        send({"id": 9_999, **good})
    elif mode == "no-id" and third:
        send(good)
    elif mode == "twice":
        send({"id": number, **good})
        send({"id": number, **hits("m-1")})
    elif mode == "out-of-order":
        held.append((number, good))
        if len(held) == 3:
            for one, reply in reversed(held):
                send({"id": one, **reply})
            held.clear()
    elif mode == "noise" and third:
        raw("searching…")
        send({"id": number, **good})
    elif mode == "flood":
        sys.stderr.write(("x" * 99 + "\n") * 20_000)
        send({"id": number, **good})
    elif mode == "flaky":
        send({"id": number, **hits(*([answer] if asked <= 6 else [answer, "m-1" if answer != "m-1" else "m-2"]))})
    elif mode == "better-later":
        send({"id": number, **hits(*(["m-1" if answer != "m-1" else "m-2"] if asked <= 6 else []), answer)})
    elif mode == "slow-second" and question["id"] == "q-3" and asked > 6:
        forever()
    else:
        send({"id": number, **(made(answer, top_k, good))})


def made(answer: str, top_k: int, good: dict) -> dict:
    if mode in BAD and answer == "m-3":
        return BAD[mode](answer, top_k)
    return ALWAYS[mode](answer) if mode in ALWAYS else good


BAD = {
    "error": lambda answer, top_k: {"error": "database is locked"},
    "error-object": lambda answer, top_k: {"error": {"message": "database is locked", "code": 5}},
    "no-hits": lambda answer, top_k: {"results": []},
    "hits-object": lambda answer, top_k: {"hits": {"id": answer}},
    "hit-text": lambda answer, top_k: {"hits": [answer]},
    "hit-nothing": lambda answer, top_k: {"hits": [{"score": 1.0}]},
    "unknown": lambda answer, top_k: hits("zzz-1"),
    "unknown-source": lambda answer, top_k: hits(answer, source_ids=["zzz-1"]),
    "nan": lambda answer, top_k: hits(answer, score=float("nan")),
    "infinite": lambda answer, top_k: hits(answer, score=float("inf")),
    "huge": lambda answer, top_k: hits(answer, score=10**400),
    "text-score": lambda answer, top_k: hits(answer, score="0.9"),
    "bool-score": lambda answer, top_k: hits(answer, score=True),
    "half-character": lambda answer, top_k: hits("\ud83d"),
    "too-many": lambda answer, top_k: hits(*[answer] * (top_k + 1)),
    "trace": lambda answer, top_k: {**hits(answer), "trace": ["bm25"]},
    "empty": lambda answer, top_k: {"hits": []},
    "fewer": lambda answer, top_k: hits(answer),
    "no-score": lambda answer, top_k: {"hits": [{"id": answer}]},
}
ALWAYS = {
    "repeats": lambda answer: hits("m-6" if answer == "m-1" else "m-1", answer, answer, answer),
    "swallows": lambda answer: hits(answer, *[one for one in memories if one != answer][:2]),
}


def take(message: dict) -> None:
    number, op = message["id"], message["op"]
    if op == "hello":
        hello = {"id": number, "name": "faulty", "version": mode, "capabilities": ["search"], "capacity": 20}
        if mode == "no-hello":
            return
        if mode == "wrong-protocol":
            hello["protocol"] = 2
        elif mode == "refuses":
            hello = {"id": number, "error": "I speak protocol 7"}
        elif mode == "nameless":
            del hello["name"]
        elif mode == "unable":
            hello["capabilities"] = ["session"]
        elif mode == "capacity":
            hello["capacity"] = 0
        send(hello)
    elif op == "reset":
        memories.clear()
        send({"id": number})
    elif op == "index":
        if mode == "index-error":
            send({"id": number, "error": "disk is full"})
            return
        if mode == "index-crash":
            sys.exit(4)
        if mode == "index-map":
            send({"id": number, "ids": {"m-77": "x"}})
            return
        memories.extend(one["id"] for one in message["memories"])
        send({"id": number})
    elif op == "index_done":
        send({"id": number})
    else:
        search(number, message["question"], message["top_k"])


if mode == "exits":
    print("missing DATABASE_URL", file=sys.stderr)
    sys.exit(7)
if mode == "banner":
    raw("Plugin 1.0 is starting")
    raw('{"level": "info", "msg": "ready"}')
if mode in ("deaf", "hang-deaf"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if mode == "grandchild":
    # It inherits the pipes, and outlives us unless the whole group is ended.
    subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()", *sys.argv[2:]])
for line in sys.stdin:
    take(json.loads(line))
if mode == "deaf":
    forever()
