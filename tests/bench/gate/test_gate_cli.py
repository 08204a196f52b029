"""The gate from the command line: exit codes, files, a revision in a work tree, git bisect."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from made import files, jsonl
from plugin_stdio import PLUGIN

from recallbench.cli import _run
from recallbench.gate.judge import BISECT_SKIP

MEMORIES = [{"id": f"m-{n}", "content": f"the note {n} is about thing{n} and room{n}"} for n in range(40)]
QUESTIONS = [
    {
        "id": f"q-{n}",
        "text": f"note thing{n} room{n}",
        "relevant": {f"m-{n}": 2},
        "categories": ["low" if n < 12 else "high"],
    }
    for n in range(40)
]
"""Each shares three words with its memory and one (`note`) with every other."""
POLICY = f"""
[gate]
dataset = "mine"
systems = ["plugin"]
baseline = "baseline"
unjudged = "not-relevant"

[gate.margins]
"R@5" = 0.1

[systems.plugin]
spec = "stdio:{shlex.quote(sys.executable)} plugin.py"
warm_up = 0
"""


def git(folder: Path, *arguments: str) -> str:
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, **identity}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a labelled set, a plugin and a policy, all committed; the working folder."""
    root = files(
        tmp_path / "repo",
        {
            "mine/dataset.toml": 'name = "mine"\nprimary_measure = "R@5"\n',
            "mine/memories.jsonl": jsonl(MEMORIES),
            "mine/questions.jsonl": jsonl(QUESTIONS),
            "plugin.py": PLUGIN,
            "recallbench.toml": POLICY,
        },
    )
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "good")
    monkeypatch.chdir(root)
    return root


def break_plugin(root: Path, old: str = "K = 3 ", new: str = "K = 4 ") -> None:
    """No memory shares four words with a question: nothing comes back."""
    text = (root / "plugin.py").read_text()
    assert old in text
    (root / "plugin.py").write_text(text.replace(old, new))


def verdict(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = _run(list(arguments))
    found = capsys.readouterr()
    return code, found.out, found.err


def test_from_a_saved_baseline_to_pass_and_fail(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["baseline", "save"]) == 0
    code, out, _ = verdict(capsys, "gate")
    assert (code, out.splitlines()[1][:5]) == (0, "PASS:")
    break_plugin(repository)
    code, out, _ = verdict(
        capsys, "gate", "--markdown", "c.md", "--junit", "j.xml", "--json-file", "g.json", "--out", "runs", "--quiet"
    )
    assert code == 1
    assert out.startswith("FAIL: plugin against baseline (")
    assert len(out.splitlines()) == 1
    assert (repository / "c.md").read_text().startswith("<!-- recallbench gate -->")
    assert ElementTree.parse(repository / "j.xml").find(".//failure") is not None
    values = json.loads((repository / "g.json").read_text())
    assert values["outcomes"][0]["change"]["after"] == 0
    (run,) = (repository / "runs").iterdir()
    assert (run / "summary.md").is_file()


def test_json_on_standard_output(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(["baseline", "save", "--quiet"])
    capsys.readouterr()
    code, out, _ = verdict(capsys, "gate", "--json")
    assert code == 0
    assert json.loads(out)["verdict"] == "PASS"


def test_annotations_leave_standard_output_to_json(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(["baseline", "save", "--quiet"])
    break_plugin(repository)
    capsys.readouterr()
    code, out, err = verdict(capsys, "gate", "--json", "--annotations")
    assert (code, json.loads(out)["verdict"]) == (1, "FAIL")
    assert "::error file=recallbench.toml,title=recallbench::FAIL: plugin against baseline (" in err
    assert "::" not in verdict(capsys, "gate")[2]


def test_a_revision_is_built_in_a_work_tree_and_leaves_nothing(
    repository: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", None)
    break_plugin(repository)
    code, out, _ = verdict(capsys, "gate", "--baseline-ref", "HEAD")
    commit = git(repository, "rev-parse", "HEAD")[:10]
    assert code == 1
    assert out.startswith(f"FAIL: plugin against HEAD ({commit}) (mine 0, 40 questions)")
    assert git(repository, "worktree", "list").count("\n") == 0
    assert [one.name for one in tmp_path.glob("recallbench-*")] == []
    # The other way round: what is committed is broken, and the working folder is good.
    git(repository, "commit", "--quiet", "--all", "-m", "bad")
    break_plugin(repository, "K = 4 ", "K = 3 ")
    assert verdict(capsys, "gate", "--baseline-ref", "HEAD")[0] == 0
    assert git(repository, "status", "--porcelain") == "M plugin.py"


def test_a_revision_runs_from_the_same_subfolder(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "sub").mkdir()
    for name in ("plugin.py", "recallbench.toml", "mine"):
        git(repository, "mv", name, f"sub/{name}")
    git(repository, "commit", "--quiet", "-m", "moved")
    os.chdir(repository / "sub")
    break_plugin(repository / "sub")
    assert verdict(capsys, "gate", "--baseline-ref", "main")[0] == 1
    code, _, err = verdict(capsys, "gate", "--baseline-ref", "main~1")
    assert code == 2
    assert "sub is not in that revision" in err


def test_the_setup_command_runs_in_the_work_tree(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The baseline's plugin is built by the setup command; the working folder's stays as it is."""
    script = "from pathlib import Path; p = Path('plugin.py'); p.write_text(p.read_text().replace('K = 3 ', 'K = 4 '))"
    build = f'{shlex.quote(sys.executable)} -c "{script}"'
    code, out, _ = verdict(capsys, "gate", "--baseline-ref", "HEAD", "--setup", build, "--json")
    change = json.loads(out)["outcomes"][0]["change"]
    assert (code, change["before"], change["after"]) == (0, 0, 1)
    code, _, err = verdict(capsys, "gate", "--baseline-ref", "HEAD", "--setup", "exit 7")
    assert code == 2
    assert "setup command failed with exit code 7: exit 7" in err


def test_both_sides_are_timed_with_a_revision(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The revision answers at once and the working folder sleeps for 30 ms: many times slower on any machine."""
    (repository / "recallbench.toml").write_text(POLICY.replace("[systems", "[gate.latency]\nratio = 2\n\n[systems"))
    break_plugin(repository, "SLEEP_MS = 0", "SLEEP_MS = 30")
    code, out, _ = verdict(capsys, "gate", "--baseline-ref", "HEAD")
    assert code == 1
    assert "| latency p95 |" in out
    _run(["baseline", "save"])
    capsys.readouterr()
    code, out, _ = verdict(capsys, "gate", "--strict")
    assert code == 3
    assert "another machine" in out or "not measured" in out


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("rrf-k60", "'rrf-k60' does not run from files of this repository"),
        ("presets", "'presets' does not run from files"),
        ("http://127.0.0.1:9", "does not run from files"),
    ],
)
def test_a_system_that_is_the_same_on_both_sides_is_refused(
    repository: Path, capsys: pytest.CaptureFixture[str], spec: str, said: str
) -> None:
    code, _, err = verdict(capsys, "gate", "--baseline-ref", "HEAD", "--system", spec)
    assert code == 2
    assert said in err


def test_git_trouble_is_one_line(repository: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = verdict(capsys, "gate", "--baseline-ref", "nowhere")
    assert code == 2
    assert "--baseline-ref nowhere: no such revision here; a shallow clone holds few (in CI: fetch-depth: 0)" in err
    code, _, err = verdict(capsys, "gate", "--baseline-ref", "--help")
    assert code == 2
    os.chdir(tmp_path)
    config = str(repository / "recallbench.toml")
    code, _, err = verdict(capsys, "gate", "--config", config, "--baseline-ref", "HEAD")
    assert code == 2
    assert "--baseline-ref needs a git repository" in err


def test_a_hooks_environment_does_not_lead_git_astray(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a hook: git points at the repository and its index."""
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(repository / ".git" / "index"))
    break_plugin(repository)
    assert verdict(capsys, "gate", "--baseline-ref", "HEAD")[0] == 1
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    assert git(repository, "status", "--porcelain") == "M plugin.py"


def test_a_crashing_plugin_is_invalid(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(["baseline", "save"])
    break_plugin(repository, 'answer["hits"] =', "answer[1 / 0] =")
    code, out, _ = verdict(capsys, "gate")
    assert code == 2
    assert "INVALID" in out
    code, _, err = verdict(capsys, "baseline", "save")
    assert code == 2
    assert "no baseline was written" in err


MISTAKES: list[tuple[list[str], str]] = [
    (["--baseline", "baseline", "--baseline-ref", "HEAD"], "give one of them"),
    (["--baseline", "none"], "no baseline there"),
    (["--margin", "R@5"], "--margin R@5: write MEASURE=DROP"),
    (["--margin", "R@5=-1"], "must be a number above 0"),
    (["--margin", "Nope@5=0.1"], "unknown measure"),
    (["--dataset", "no-such-set"], "no labelled set 'no-such-set'"),
    (["--config", "none.toml"], "none.toml: no such file"),
    (["--system", "stdio:no-such-program"], "no-such-program"),
    (["--margin", "R@50=0.1"], "was asked for 20 rows, and a measure needs 50"),
    (["--no-such-option"], "No such option"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
@pytest.mark.parametrize("bisect", [False, True])
def test_mistakes_are_2_and_in_a_bisection_125(
    repository: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str, bisect: bool
) -> None:
    _run(["baseline", "save", "--quiet"])
    code, _, err = verdict(capsys, "gate", *arguments, *(["--bisect"] if bisect else []))
    assert code == (BISECT_SKIP if bisect else 2)
    assert said in err
    assert "Traceback" not in err


def test_without_a_policy_it_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, said in (
        ([], "no labelled set is named"),
        (["--dataset", "mneme-memories"], "no system is named"),
        (["--dataset", "mneme-memories", "--system", "rrf-k60"], "no baseline is named"),
    ):
        code, _, err = verdict(capsys, "gate", *arguments)
        assert (code, said in err) == (2, True), err


def test_our_own_fault_is_70_and_in_a_bisection_125(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(["baseline", "save", "--quiet"])

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("recallbench.gate.sides.judge", broken)
    assert verdict(capsys, "gate")[0] == 70
    code, _, err = verdict(capsys, "gate", "--bisect")
    assert code == BISECT_SKIP
    assert "boom" in err


def test_the_pool_holds_what_nobody_judged(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With K = 1 every memory shares `note`: five hits, four of them unjudged. With K = 3 they go: is that a loss?

    More rows than before cannot be one, whatever their labels.
    """
    (repository / "recallbench.toml").write_text(POLICY.replace('unjudged = "not-relevant"\n', ""))
    _run(["baseline", "save", "--quiet"])
    break_plugin(repository, "K = 3 ", "K = 1 ")
    capsys.readouterr()
    assert verdict(capsys, "gate", "--margin", "P@5=0.05", "--quiet")[1].startswith("PASS")
    _run(["baseline", "save", "--quiet"])
    break_plugin(repository, "K = 1 ", "K = 3 ")
    capsys.readouterr()
    code, out, _ = verdict(capsys, "gate", "--margin", "P@5=0.05", "--pool", "pool.csv")
    assert code == 0
    assert out.startswith("INCONCLUSIVE")
    rows = (repository / "pool.csv").read_text(encoding="utf-8-sig").splitlines()
    assert rows[0].startswith("question,memory,grade")
    assert len(rows) == 1 + 40 * 4


def test_bisect_finds_the_commit_and_skips_what_does_not_run(repository: Path) -> None:
    """Good, good, broken syntax, bad, bad: the first bad one that can be judged, or the one before it."""
    _run(["baseline", "save", "--quiet"])
    kept = repository.parent / "baseline"
    (repository / "baseline").rename(kept)
    good = git(repository, "rev-parse", "HEAD")
    plugin = repository / "plugin.py"
    sound = plugin.read_text()
    commits = []
    for name, text in (
        ("good", f"# one\n{sound}"),
        ("unrunnable", "def"),
        ("bad", sound.replace("K = 3 ", "K = 4 ")),
        ("bad2", "# two\n" + sound.replace("K = 3 ", "K = 4 ")),
        ("bad3", "# three\n" + sound.replace("K = 3 ", "K = 4 ")),
    ):
        plugin.write_text(text)
        git(repository, "commit", "--quiet", "--all", "-m", name)
        commits.append(git(repository, "rev-parse", "HEAD"))
    git(repository, "bisect", "start", "HEAD", good)
    gate = [sys.executable, "-m", "recallbench", "gate", "--bisect", "--baseline", str(kept)]
    done = subprocess.run(["git", "bisect", "run", *gate], cwd=repository, capture_output=True, text=True, check=False)
    said = done.stdout
    # The unrunnable one is skipped, so that git names it and the first bad one after it.
    assert "There are only 'skip'ped commits left to test" in said + done.stderr
    assert commits[1] in said
    assert commits[2] in said
    assert commits[3] not in said.split("There are only")[1]
    assert commits[0] not in said.split("There are only")[1]


def test_margins_of_the_command_line_replace_those_of_the_file(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(["baseline", "save", "--quiet"])
    capsys.readouterr()
    _, out, _ = verdict(capsys, "gate", "--margin", "RR=0.2", "--margin", "R(rel=1)@5=0.3", "--json")
    assert [one["name"] for one in json.loads(out)["outcomes"]] == ["RR", "R(rel=1)@5"]


def test_baseline_show_and_check(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(["baseline", "save", "--quiet", "--measure", "R@5", "--measure", "RR"])
    capsys.readouterr()
    code, out, _ = verdict(capsys, "baseline", "show")
    assert code == 0
    assert "| plugin | 1.000 | 1.000 |" in out
    code, out, _ = verdict(capsys, "baseline", "show", "--question", "q-7", "--json")
    assert json.loads(out)["answers"]["plugin"]["ids"] == ["m-7"]
    assert verdict(capsys, "baseline", "check", "--system", "plugin")[0] == 0
    break_plugin(repository)
    code, out, _ = verdict(capsys, "baseline", "check", "--system", "plugin")
    assert (code, "answers 40 questions with other lists now" in out) == (1, True)
    questions = repository / "mine" / "questions.jsonl"
    questions.write_text(questions.read_text().replace('"m-7": 2', '"m-7": 1'))
    code, out, _ = verdict(capsys, "baseline", "check")
    assert code == 1
    assert "labels: 1 changed ('q-7')" in out
    memories = repository / "mine" / "memories.jsonl"
    memories.write_text(memories.read_text().replace("thing9 ", "thing-9 "))
    code, out, _ = verdict(capsys, "baseline", "check")
    assert (code, "memories: 1 changed ('m-9')" in out) == (2, True)
    code, _, err = verdict(capsys, "gate")
    assert (code, "other memories than mine has now: 1 changed ('m-9')" in err) == (2, True)
