"""Scenarios over protocol 1: real processes, from `recallbench scenarios run`."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from made import refused
from paths import ROOT
from systems_support import nothing_left, python_command, running

from recallbench.cli import _run
from recallbench.scenarios.implementations import implementation_of

SYSTEM = Path(__file__).parents[2] / "scenario_system.py"
Captured = pytest.CaptureFixture[str]
SEARCHES = ("mneme-like-override-rrf", "field-rrf-absent-scored", "field-tie-order-unstable")


def play(
    capsys: Captured, spec: str, *names: str, options: tuple[str, ...] = ()
) -> tuple[int, dict[str, tuple[str, str]], str]:
    """(exit code, scenario -> (outcome, the first reason), standard error)."""
    code = _run(["scenarios", "run", *names, "--implementation", spec, "--json", *options])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    if not out:
        return code, {}, err
    found = {}
    for one in json.loads(out):
        why = one.get("failures") or one.get("why") or []
        found[one["scenario"]] = (one["outcome"], json.dumps(why, ensure_ascii=False))
    return code, found, err


def spec_of(mode: str, folder: Path) -> str:
    return f'stdio:"{sys.executable}" "{SYSTEM}" {mode} "{folder / "log"}"'


def said(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_the_javascript_example_passes_every_search_scenario(tmp_path: Path, capsys: Captured) -> None:
    with nothing_left(str(tmp_path)):
        code, found, _ = play(capsys, f'stdio:node "{ROOT}/examples/javascript/plugin.mjs" "{tmp_path}"')
    played = {name for name, (outcome, _) in found.items() if outcome != "not-applicable"}
    assert code == 0
    searches = {
        path.stem
        for system in ("mneme", "field")
        for path in (ROOT / "datasets" / "scenarios" / system).glob("*.yaml")
        if "needs: [search, vectors]" in path.read_text(encoding="utf-8")
    }
    assert played == searches
    assert len(searches) >= 10


def test_a_system_that_only_searches_is_judged_by_the_invariants(tmp_path: Path, capsys: Captured) -> None:
    """Vector order alone: a stands above k1 (it has no vector), equals do not move; the row of both lists is not first.

    field-rrf-absent-scored: dot products with [1, 0] are 1 for X, a and Y alike, in this order.
    """
    with nothing_left(str(tmp_path)):
        code, found, _ = play(capsys, spec_of("plain", tmp_path), *SEARCHES)
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        "mneme-like-override-rrf": "passed",
        "field-rrf-absent-scored": "failed",
        "field-tie-order-unstable": "passed",
    }
    assert code == 1
    assert "['X', 'a', 'Y']" in found["field-rrf-absent-scored"][1]
    # The settings that a scenario gives reach it.
    assert {"config": {"recipe": "rrf", "mode": "auto"}} in said(tmp_path)


def test_what_is_not_declared_is_not_applicable(tmp_path: Path, capsys: Captured) -> None:
    code, found, _ = play(capsys, spec_of("plain", tmp_path))
    assert {outcome for name, (outcome, _) in found.items() if name not in SEARCHES} >= {"not-applicable"}
    assert found["mneme-vector-excludes-bm25"][0] == "not-applicable"  # needs inject
    assert found["mneme-first-step-empty-query"][0] == "not-applicable"  # needs session
    assert found["v2-write-is-synced"][0] == "not-applicable"  # needs search and vectors, and has a step that writes
    assert code in (0, 1)


def test_every_step_is_sent_in_order(tmp_path: Path, capsys: Captured) -> None:
    """mneme-prefetch-cooldown fails an embedding, asks, lets 15 s pass, and asks again."""
    with nothing_left(str(tmp_path)):
        play(capsys, spec_of("whole", tmp_path), "mneme-prefetch-cooldown")
    messages = said(tmp_path)
    assert messages[0]["op"] == "scenario"
    assert messages[0]["scenario"] == "mneme-prefetch-cooldown"
    assert messages[0]["system"] == "mneme"
    assert "vectors" in messages[0]["given"]
    assert messages[-1] == {"op": "scenario_end"}
    import yaml

    path = ROOT / "datasets" / "scenarios" / "mneme" / "mneme-prefetch-cooldown.yaml"
    want = []
    for step in yaml.safe_load(path.read_text(encoding="utf-8"))["steps"]:
        step.pop("save", None)
        if "advance_ms" in step:
            want.append({"op": "advance", "ms": step["advance_ms"]})
        else:
            kind = next(kind for kind in ("event", "call", "fault", "probe") if kind in step)
            want.append({"op": kind, **step})
    assert {one["op"] for one in want} >= {"advance", "fault"}
    assert messages[1:-1] == want


def test_an_answer_to_a_probe_must_be_a_value(tmp_path: Path, capsys: Captured) -> None:
    code, found, _ = play(capsys, spec_of("no-value", tmp_path), "mneme-first-step-empty-query")
    assert code == 1
    assert "without a value (an object, such as" in found["mneme-first-step-empty-query"][1]


def test_a_scenario_that_does_not_end_has_failed(tmp_path: Path, capsys: Captured) -> None:
    code, found, _ = play(capsys, spec_of("bad-end", tmp_path), "mneme-first-step-empty-query")
    assert code == 1
    assert "ValueError: still open at the end of the scenario" in found["mneme-first-step-empty-query"][1]


def test_a_system_that_dies_fails_the_step_and_plays_the_next_scenario(tmp_path: Path, capsys: Captured) -> None:
    with nothing_left(str(tmp_path)):
        code, found, _ = play(capsys, spec_of("dies", tmp_path), *SEARCHES)
    assert code == 1
    assert "it exited with code 4 (its log ends: gone)" in found["mneme-like-override-rrf"][1]
    assert found["field-tie-order-unstable"][0] == "passed"


def test_a_system_that_hangs_is_given_up_after_the_bound(tmp_path: Path, capsys: Captured) -> None:
    with nothing_left(str(tmp_path)):
        code, found, _ = play(
            capsys, spec_of("hangs", tmp_path), *SEARCHES, options=("--timeout", "0.5", "--restarts", "1")
        )
    assert code == 1
    reasons = sorted(why for _, why in found.values())
    assert sum("gave no reply to probe in 0.5 s" in why for why in reasons) == 2
    assert sum("was not asked any more: it was lost 2 times" in why for why in reasons) == 1


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("exits", "it exited with code 7 (its log ends: missing DATABASE_URL)"),
        ("wrong-protocol", "protocol 2; this harness speaks protocol 1"),
        ("stdio:no-such-program-here", "no program 'no-such-program-here'"),
        ("http:http://localhost:1/search", "scenarios are played over stdio: or in process, not over http:"),
        ("rrf-k60", "use reference, stdio:COMMAND or python:MODULE:NAME"),
    ],
)
def test_a_system_that_cannot_play_is_refused(spec: str, said: str, tmp_path: Path) -> None:
    """A word alone is a mode of the faulty system."""
    if spec in ("exits", "wrong-protocol"):
        spec = f"stdio:{python_command(spec, str(tmp_path))}"
    with nothing_left(str(tmp_path)):
        assert said in refused(implementation_of, spec)


def test_a_run_that_is_ended_leaves_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "recallbench", "scenarios", "run", SEARCHES[0], "--implementation"]
    with subprocess.Popen(
        [*command, spec_of("hangs", tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as harness:
        while not (tmp_path / "log").exists():  # it has been given the scenario, and hangs at its search
            assert harness.poll() is None
        system = [one for one in running("scenario_system.py") if one.ppid() == harness.pid]
        harness.send_signal(signal.SIGTERM)
        _, err = harness.communicate(timeout=60)
    assert harness.returncode == 130
    assert err.strip() == "recallbench: error: interrupted"
    assert psutil.wait_procs(system, timeout=5)[1] == []
