"""`recallbench systems check`: for each mistake of an adapter's author, the line that says so."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from loopback import replying, serving
from systems_support import FAULTY, nothing_left

from recallbench.cli import _run

FOREIGN = Path(__file__).parents[2] / "foreign_system.py"
Captured = pytest.CaptureFixture[str]
Line = tuple[str, str, str]


def check(capsys: Captured, spec: str, *options: str) -> tuple[int, list[Line]]:
    """(exit code, (level, name, message) of each line)."""
    code = _run(["systems", "check", spec, "--json", *options])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, [(one["level"], one["name"], one["message"]) for one in json.loads(out)]


def foreign(folder: Path, capsys: Captured, mode: str, *options: str) -> tuple[int, list[Line]]:
    with nothing_left(str(folder)):
        return check(capsys, f'stdio:"{sys.executable}" "{FOREIGN}" {mode} "{folder}"', *options)


def bad(lines: list[Line]) -> list[Line]:
    return [one for one in lines if one[0] not in ("ok", "skipped")]


def test_a_good_adapter_has_nothing_against_it(tmp_path: Path, capsys: Captured) -> None:
    code, lines = foreign(tmp_path, capsys, "falling")
    assert code == 0
    assert bad(lines) == []
    assert [name for _, name, _ in lines] == [
        "hello",
        "memories",
        "search",
        "order",
        "top_k",
        "repeats",
        "odd texts",
        "two at once",
        "unknown operation",
        "second corpus",
        "empty store",
        "leaving",
    ]


# mode -> (exit code, what is against it: level, name, what the message holds)
MISTAKES: dict[str, tuple[int, list[Line]]] = {
    "plain": (0, [("warning", "order", "5 of 5 hits have no score")]),
    "rising": (0, [("warning", "order", "scores do not fall along the list")]),
    "rewritten": (
        0,
        [("warning", "search", "5 of 5 rows match no memory"), ("warning", "order", "have no score")],
    ),
    "flaky": (
        0,
        [
            ("warning", "order", "have no score"),
            ("warning", "repeats", "one question, asked three times, got 2 different lists"),
        ],
    ),
    "mixes-up": (
        1,
        [
            ("warning", "order", "have no score"),
            ("FAIL", "two at once", "two questions at once got other answers than one after the other"),
        ],
    ),
    "top_k": (1, [("warning", "order", "have no score"), ("FAIL", "top_k", "it answered 5 hits for top_k 1")]),
    "no-word": (
        1,
        [
            ("warning", "order", "have no score"),
            (
                "FAIL",
                "odd texts",
                "it answered with an error: IndexError: list index out of range (a question with no word)",
            ),
        ],
    ),
    "exits-on-quotes": (
        1,
        [
            ("warning", "order", "have no score"),
            (
                "FAIL",
                "odd texts",
                "it exited with code 1 (its log ends: OperationalError: unterminated string) (a quest",
            ),
            ("log", "odd texts", "reset check-a"),
            ("log", "odd texts", "first line"),
            ("log", "odd texts", "OperationalError: unterminated string"),
        ],
    ),
    "hangs-on-emoji": (
        1,
        [
            ("warning", "order", "have no score"),
            ("FAIL", "odd texts", "it gave no reply to search in 2 s (a question with emoji)"),
            ("log", "odd texts", "reset check-a"),
        ],
    ),
    "leaks": (
        1,
        [
            ("warning", "order", "have no score"),
            ("FAIL", "second corpus", "it answered a row of corpus 'check-a' to a question of corpus 'check-b'"),
            ("FAIL", "empty store", "after reset and no memory, 7 hits came back"),
        ],
    ),
    "says-vectors": (
        1,
        [("warning", "order", "have no score"), ("FAIL", "vectors", "declared, and embed was not called")],
    ),
    "deaf": (
        0,
        [
            ("warning", "order", "have no score"),
            ("warning", "leaving", "it did not leave in 2 s when its input was closed; killed"),
        ],
    ),
    "twice": (
        0,
        [("warning", "search", "a memory came back twice"), ("warning", "order", "5 of 5 hits have no score")],
    ),
}


@pytest.mark.parametrize("mode", sorted(MISTAKES))
def test_each_mistake_has_its_line(mode: str, tmp_path: Path, capsys: Captured) -> None:
    code, lines = foreign(tmp_path, capsys, mode, "--timeout", "2" if mode == "hangs-on-emoji" else "30")
    want_code, want = MISTAKES[mode]
    found = bad(lines)
    assert [one[:2] for one in found] == [one[:2] for one in want]
    assert [said in got for (_, _, got), (_, _, said) in zip(found, want, strict=True)] == [True] * len(want)
    assert code == want_code


def test_ids_without_a_map_are_said_once_and_then_referred_to(tmp_path: Path, capsys: Captured) -> None:
    code, lines = foreign(tmp_path, capsys, "no-map")
    assert code == 1
    by_name = {name: message for level, name, message in lines if level == "FAIL"}
    assert "need a map (ids in the reply to index, or id_map), source_ids or text" in by_name["search"]
    assert by_name["order"] == by_name["top_k"] == "as in search"


def test_a_system_that_declares_session_is_told_who_asks(tmp_path: Path, capsys: Captured) -> None:
    code, lines = foreign(tmp_path, capsys, "session")
    assert code == 0
    assert ("ok", "session", "a question with agent_scope, workspace_scope and channel") in lines


def test_a_system_that_asks_for_vectors_gets_them(tmp_path: Path, capsys: Captured) -> None:
    """Outside a scenario none are given, so that this plugin, which cannot do without, fails its first question."""
    code, lines = foreign(tmp_path, capsys, "asks-vectors")
    assert code == 1
    assert any("RuntimeError: no vectors are given here" in message for _, _, message in lines)
    assert ("ok", "vectors", "calls of embed: 1") in lines


START = {
    "banner": "a line before the reply to hello is no JSON; keep standard output for answers",
    "wrong-protocol": "it answered hello with protocol 2; this harness speaks protocol 1",
    "exits": "it exited with code 7 (its log ends: missing DATABASE_URL)",
    "no-hello": "it gave no reply to hello in 1 s",
    "unable": "neither search nor inject among its capabilities",
    "index-error": "it answered with an error: disk is full",
}


@pytest.mark.parametrize("mode", sorted(START))
def test_what_goes_wrong_at_the_start(mode: str, tmp_path: Path, capsys: Captured) -> None:
    limit = "1" if mode == "no-hello" else "60"
    with nothing_left(str(tmp_path)):
        command = f'stdio:"{sys.executable}" "{FAULTY}" {mode} "{tmp_path}"'
        code, lines = check(capsys, command, "--start-timeout", limit)
    assert code == 1
    assert any(level == "FAIL" and START[mode] in message for level, _, message in lines)


def test_lines_are_printed_as_they_come_and_counted(tmp_path: Path, capsys: Captured) -> None:
    assert _run(["systems", "check", f'stdio:"{sys.executable}" "{FOREIGN}" top_k "{tmp_path}"']) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "ok      hello             foreign: search"
    assert out[4] == "FAIL    top_k             it answered 5 hits for top_k 1"
    assert out[-1] == "1 failed, 1 warnings, 10 ok"


def test_a_knowledge_base_over_http(capsys: Captured) -> None:
    pytest.importorskip("httpx")
    hit = {"doc_id": "d", "title": "", "path": "", "snippet": "text", "score": 1.0, "source": "kb"}
    with serving(replying(json.dumps({"hits": [hit]}).encode())) as server:
        code, lines = check(capsys, f"http:{server.url}")
    assert code == 0
    assert ("skipped", "memories", "it has its memories already: only the shape of its answers is checked") in lines
    with serving(replying(json.dumps({"hits": [hit] * 3}).encode())) as server:
        code, lines = check(capsys, f"http:{server.url}")
    assert code == 1
    assert bad(lines) == [("FAIL", "top_k", "it answered 3 hits for top_k 1")]
    code, lines = check(capsys, f"http:{server.url}")  # nobody listens any more
    assert code == 1
    assert "was not reached" in bad(lines)[0][2]


def test_an_mcp_server(tmp_path: Path, capsys: Captured) -> None:
    pytest.importorskip("mcp")
    config = tmp_path / "recallbench.toml"
    script = Path(__file__).parents[2] / "mcp_server.py"
    spec = f"mcp:'{sys.executable}' '{script}' plain"
    config.write_text(f'[systems.it]\nspec = "{spec}"\nsave_tool = "remember"\nstop_s = 0.5\n')
    code, lines = check(capsys, "it", "--config", str(config))
    assert ("ok", "memories", "5 taken") in lines
    assert ("ok", "hello", "memories 3.1: search") in lines
    assert code in (0, 1)
    assert [one for one in bad(lines) if one[1] == "hello"] == []


def test_a_recipe_and_a_file(tmp_path: Path, capsys: Captured) -> None:
    assert check(capsys, "rrf-k60") == (0, [("ok", "recipe", "rrf-k60: runs in process, nothing to speak with")])
    (tmp_path / "a.trec").write_text("q Q0 d 1 2.0 t\n")
    assert check(capsys, f"run:{tmp_path / 'a.trec'}") == (
        0,
        [("ok", "file", "1 questions, 1 rows; every score is a finite number")],
    )
