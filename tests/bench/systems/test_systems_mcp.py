"""`mcp:` and `mcp+http:`: a server made with the official SDK, in a process of its own."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from made import native_set
from systems_support import QUESTIONS, WORDS, Outcome, nothing_left, run_system

pytest.importorskip("mcp", reason="needs the extra mcp")

SERVER = Path(__file__).parents[2] / "mcp_server.py"
PERFECT = dict.fromkeys(QUESTIONS, 1.0)
Captured = pytest.CaptureFixture[str]


def ask(folder: Path, capsys: Captured, mode: str, dataset: Path | None = None, **settings: object) -> Outcome:
    spec = f'mcp:"{sys.executable}" "{SERVER}" {mode} "{folder}"'
    return run_system(folder, capsys, spec, dataset=dataset, **{"save_tool": "remember", "stop_s": 1.0, **settings})


@pytest.mark.parametrize(("mode", "match"), [("plain", "text"), ("ids", "id map"), ("prose", "text")])
def test_memories_are_saved_and_found(mode: str, match: str, tmp_path: Path, capsys: Captured) -> None:
    """The tools, the arguments and the list of hits are found out; ids of the save tool become an id map."""
    found = ask(tmp_path, capsys, mode)
    assert found.code == 0
    assert found.rr == PERFECT
    assert found.checks["matching"] == [f"returned rows matched to memories: 6 by {match}"]
    assert found.manifest["systems"]["it"]["name"] == "memories"
    assert found.manifest["systems"]["it"]["version"] == "3.1"


FAULTS = {
    "tool-error": "answered search_memories with an error: ",
    "too-many": "answered 21 hits for top_k 20",
    "no-list": "answered an object with count where a list of hits was looked for; set results",
    "big": "a line of more than 4000000 bytes (max_bytes)",
}


@pytest.mark.parametrize("mode", sorted(FAULTS))
def test_a_bad_answer_costs_its_question_alone(mode: str, tmp_path: Path, capsys: Captured) -> None:
    found = ask(tmp_path, capsys, mode)
    assert found.code == 2
    assert "INVALID" in found.err
    assert set(found.failed) == {"q-3"}
    assert FAULTS[mode] in found.failed["q-3"]
    assert found.rr == {**PERFECT, "q-3": 0.0}


def test_a_server_that_dies_is_started_again_and_given_its_memories(tmp_path: Path, capsys: Captured) -> None:
    found = ask(tmp_path, capsys, "dies")
    assert found.code == 2
    assert set(found.failed) == {"q-3"}
    assert found.failed["q-3"] == "exited with code 9 (its log ends: out of memory)"
    assert found.rr == {**PERFECT, "q-3": 0.0}
    assert "it was started again" in found.checks["system-note"]


def test_a_server_that_hangs_is_ended(tmp_path: Path, capsys: Captured) -> None:
    found = ask(tmp_path, capsys, "hangs", timeout_s=1.5, stop_s=0.2)
    assert found.code == 2
    assert set(found.failed) == {"q-3"}
    assert found.failed["q-3"] == "gave no answer in 1.5 s (call search_memories)"


def test_memories_that_cannot_be_saved_fail_their_corpus(tmp_path: Path, capsys: Captured) -> None:
    found = ask(tmp_path, capsys, "save-error")
    assert found.code == 2
    assert set(found.failed) == set(QUESTIONS)
    assert "answered remember with an error" in found.failed["q-1"]


@pytest.mark.parametrize("settings", [{}, {"reset_tool": "forget_all"}])
def test_each_corpus_is_asked_alone(settings: dict[str, object], tmp_path: Path, capsys: Captured) -> None:
    """By the tool that forgets, or by a new process."""
    memories = [
        {"id": f"{corpus}-{i}", "corpus": corpus, "content": f"{corpus} has the word {word}"}
        for corpus in "xy"
        for i, word in enumerate(WORDS[:2])
    ]
    questions = [
        {"id": f"q-{corpus}{i}", "corpus": corpus, "text": f"which {word}?", "relevant": {f"{corpus}-{i}": 2}}
        for corpus in "xy"
        for i, word in enumerate(WORDS[:2])
    ]
    found = ask(tmp_path, capsys, "plain", native_set(tmp_path / "two", memories, questions), **settings)
    assert found.code == 0
    assert set(found.rr.values()) == {1.0}


WRONG = {
    "search_tool": ("find", "has no tool 'find' (search_tool); its tools: remember, forget_all, search_memories"),
    "query_argument": ("words", "without the argument 'words' (query_argument); it takes query, limit"),
    "top_k_argument": ("n", "without the argument 'n' (top_k_argument)"),
    "save_tool": ("save", "has no tool 'save' (save_tool)"),
    "save_id_argument": ("id", "has a tool remember without the argument 'id' (save_id_argument)"),
}


@pytest.mark.parametrize("key", sorted(WRONG))
def test_a_wrong_setting_is_said_with_what_there_is(key: str, tmp_path: Path, capsys: Captured) -> None:
    value, said = WRONG[key]
    found = ask(tmp_path, capsys, "plain", **{key: value})
    assert found.code == 2
    assert said in found.failed["q-1"]


def test_a_command_that_is_no_mcp_server(tmp_path: Path, capsys: Captured) -> None:
    spec = f'mcp:"{sys.executable}" -I -S -c "print(1)"'
    found = run_system(tmp_path, capsys, spec, stop_s=0.5)
    assert found.code == 2
    assert "exited with code 0" in found.failed["q-1"]


def test_a_command_that_says_nothing(tmp_path: Path, capsys: Captured) -> None:
    spec = f'mcp:"{sys.executable}" -I -S -c "import sys; sys.stdin.read()"'
    found = run_system(tmp_path, capsys, spec, start_timeout_s=1.0, stop_s=0.5)
    assert found.code == 2
    assert "did not open an MCP session in 1 s" in found.failed["q-1"]


@contextlib.contextmanager
def listening(mode: str, folder: Path) -> Iterator[str]:
    """The same server over streamable HTTP; yields its address once it takes connections."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(SERVER), mode, str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            for line in server.stderr:  # uvicorn says when it listens
                if "Uvicorn running" in line:
                    break
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.kill()
            server.communicate()


def over_http(folder: Path, capsys: Captured, url: str, **settings: object) -> Outcome:
    return run_system(folder, capsys, f"mcp+http:{url}", **{"save_tool": "remember", **settings})


def test_streamable_http(tmp_path: Path, capsys: Captured) -> None:
    with listening("ids", tmp_path) as url:
        found = over_http(tmp_path, capsys, url)
        assert found.code == 0
        assert found.rr == PERFECT
        assert found.manifest["systems"]["it"]["url"] == url


def test_a_tool_error_over_http_costs_its_question_alone(tmp_path: Path, capsys: Captured) -> None:
    with listening("tool-error", tmp_path) as url:
        found = over_http(tmp_path, capsys, url)
    assert found.code == 2
    assert set(found.failed) == {"q-3"}


def test_a_server_over_http_that_dies_fails_the_rest(tmp_path: Path, capsys: Captured) -> None:
    """It is not ours to start again: connecting anew is tried as often as a restart would be."""
    with listening("dies", tmp_path) as url:
        found = over_http(tmp_path, capsys, url, restarts=1)
    assert found.code == 2
    assert set(found.failed) == set(QUESTIONS[2:])
    assert found.rr["q-1"] == 1.0
    assert "was not asked any more: it was lost 2 times (restarts: 1)" in found.failed["q-6"]


def test_nobody_listens(tmp_path: Path, capsys: Captured) -> None:
    with listening("plain", tmp_path) as url:
        pass
    with nothing_left(str(tmp_path)):
        found = over_http(tmp_path, capsys, url)
    assert found.code == 2
    assert "could not be connected to" in found.failed["q-1"]
