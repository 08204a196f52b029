"""A gate with `--baseline-ref` that is ended early leaves no work tree, no folder, no process; exit code 130."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from made import files, native_set
from systems_support import running

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
PLUGIN = """
import json, pathlib, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if asked["op"] == "search":
        pathlib.Path(sys.argv[1]).touch()
        time.sleep(600)
    print(json.dumps({"id": asked["id"], "name": "slow", "capabilities": ["search"]}), flush=True)
"""
SETUP = """
import pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1]])
pathlib.Path(sys.argv[1]).touch()
child.wait()
"""


def git(folder: Path, *arguments: str) -> str:
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(["git", *arguments], cwd=folder, env={**os.environ, **who}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = native_set(
        tmp_path / "repo",
        [{"id": "m-1", "content": "one"}, {"id": "m-2", "content": "two"}],
        [{"id": "q-1", "text": "one?", "relevant": {"m-1": 2}}],
    )
    started = shlex.quote(str(tmp_path / "started"))
    policy = f"""[gate]
dataset = "."
systems = ["slow"]
[gate.margins]
"R@5" = 0.1
[systems.slow]
spec = "stdio:{shlex.quote(sys.executable)} plugin.py {started}"
warm_up = 0
"""
    files(root, {"plugin.py": PLUGIN, "recallbench.toml": policy})
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "one")
    return root


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("when", ["setup", "asking"])
@pytest.mark.parametrize("sent", ENDING, ids=lambda one: one.name)
def test_nothing_is_left(sent: signal.Signals, when: str, repository: Path) -> None:
    if signal.getsignal(sent) is signal.SIG_IGN:
        pytest.skip("this process ignores the signal (a job in the background), and so do its children")
    folder = repository.parent
    started = folder / "started"
    setup = ["--setup", shlex.join([sys.executable, "-c", SETUP, str(started)])] if when == "setup" else []
    command = [sys.executable, "-m", "recallbench", "gate", "--baseline-ref", "HEAD", *setup]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(command, cwd=repository, env=environment, stderr=subprocess.PIPE, text=True) as gate:
        while not started.exists() and gate.poll() is None:
            time.sleep(0.05)
        assert git(repository, "worktree", "list").count("\n") == 1
        gate.send_signal(sent)
        _, err = gate.communicate(timeout=60)
    assert gate.returncode == 130
    assert err.strip() == "recallbench: error: interrupted"
    assert git(repository, "worktree", "list").count("\n") == 0
    assert list(folder.glob("recallbench-*")) == []
    assert psutil.wait_procs(running(str(started)), timeout=5)[1] == []
    assert git(repository, "status", "--porcelain") == ""
