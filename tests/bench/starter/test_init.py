"""`recallbench init` from notes, memories and sets; its CI files and those of examples/ci are run as CI runs them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from made import files, jsonl
from paths import ROOT
from plugin_stdio import PLUGIN

from recallbench.cli import _run
from recallbench.datasets.registry import load
from recallbench.gate.policy import read_config
from recallbench.starter import write
from recallbench.starter.questions import LEAST, WORDS, known_items
from recallbench.systems.config import configured_systems
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory, Source

EXAMPLES = ROOT / "examples" / "ci"
ANIMALS = ("otter badger heron adder vole shrew stoat lynx bison ibex marten polecat weasel raven osprey").split()  # noqa: SIM905
PLACES = ("harbour quarry orchard meadow estuary moorland").split()  # noqa: SIM905


def memory(n: int, **more: Any) -> dict[str, Any]:
    """All share `the keeper saw … at dusk`; animal, place and code tell them apart."""
    animal, place = ANIMALS[n % 15], PLACES[n // 15]
    return {"id": f"m-{n}", "content": f"the keeper saw {animal} number{n} near {place} at dusk again quietly", **more}


MEMORIES = [memory(n) for n in range(60)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a plugin that speaks stdio and some memories; the working folder."""
    files(tmp_path, {"plugin.py": PLUGIN.replace("K = 3 ", "K = 2 "), "mine.jsonl": jsonl(MEMORIES)})
    monkeypatch.chdir(tmp_path)
    return tmp_path


SYSTEM = f"stdio:{shlex.quote(sys.executable)} plugin.py"


def git(folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    identity = {f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **identity, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


# The starter set.


def test_each_question_is_made_of_the_rarest_words_of_one_memory() -> None:
    """`the keeper saw near at dusk again quietly` are in all sixty; `number7` in one, `quarry` in 15, `lynx` in 4."""
    questions = known_items([Memory(**one) for one in MEMORIES], 100)
    assert len(questions) == 60
    first = questions[0]
    assert first.relevant == {"m-0": 2}
    assert len(first.text.split()) == WORDS
    assert {"otter", "number0", "harbour"} <= set(first.text.split())
    assert [one.id for one in questions[:2]] == ["q-01", "q-02"]
    words = first.text.split()
    content = MEMORIES[0]["content"].split()
    assert [content.index(word) for word in words] == sorted(content.index(word) for word in words)


def test_a_title_that_says_enough_is_asked_for_instead() -> None:
    rows = [Memory(**memory(n, title=f"sighting report number{n}")) for n in range(20)]
    assert known_items(rows, 20)[3].text == "sighting report number3"


def test_draws_are_seeded_and_spread_over_files() -> None:
    rows = [Memory(**memory(n), source=Source(file=f"{'long' if n < 50 else n}.md", line=n)) for n in range(60)]
    one, again, other = (known_items(rows, 20, seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    clusters = [question.cluster for question in one]
    assert clusters.count("long.md") == 10  # the ten other files have one memory each
    assert len(set(clusters)) == 11


def test_what_is_too_short_or_twice_there_is_not_asked_for() -> None:
    short = [Memory(id=f"s-{n}", content="seen it") for n in range(5)]
    twice = [Memory(id=name, content="a long entry that somebody wrote two times into two files") for name in "ab"]
    questions = known_items([*short, *twice, *(Memory(**memory(n)) for n in range(12))], 100)
    assert len(questions) == 12
    with pytest.raises(InputError, match=f"only 0 of 5 memories have {LEAST} different words"):
        known_items(short, 10)


def test_chinese_memories_are_asked_for_too() -> None:
    # Runs between function characters: 发布窗口 is in all of them, the rest in one each.
    things = [chr(0x4E00 + 40 * n) + chr(0x4E10 + 40 * n) for n in range(60)]
    rows = [
        Memory(
            id=f"m-{n}",
            content=f"发布窗口在{things[3 * n]}改到{things[3 * n + 1]}和{things[3 * n + 2]}，值班的{things[n]}手机",
        )
        for n in range(20)
    ]
    questions = known_items(rows, 20)
    assert {question.lang for question in questions} == {"zh"}
    assert all("发布窗口" not in question.text for question in questions)


# From an empty folder to a gate that passes and one that fails.


@pytest.mark.parametrize("source", ["memories", "notes", "set"])
def test_from_an_empty_folder_to_pass_and_fail(folder: Path, capsys: pytest.CaptureFixture[str], source: str) -> None:
    if source == "notes":
        files(folder, {f"vault/{n // 4}.md": "" for n in range(60)})
        for n in range(15):
            entries = "\n\n".join(MEMORIES[4 * n + k]["content"] for k in range(4))
            (folder / "vault" / f"{n}.md").write_text(f"# Note {n}\n\n{entries}\n")
        given = ["--notes", "vault"]
    elif source == "memories":
        given = ["--memories", "mine.jsonl"]
    else:
        assert _run(["init", "--memories", "mine.jsonl", "--out", "first", "--ci", "none", "--quiet"]) == 0
        given = ["--dataset", "first/recall-set"]
    assert _run(["init", *given, "--system", SYSTEM, "--quiet"]) == 0
    config = read_config()
    assert config.policy.systems == ("plugin",)
    assert list(config.policy.margins) == ["nDCG@5", "R@20"]
    assert configured_systems()["plugin"].spec == SYSTEM
    labelled = load(f"./{config.policy.dataset}")
    assert len(labelled.questions) >= 30
    assert _run(["systems", "check", "plugin"]) == 0
    assert _run(["baseline", "save", "--quiet"]) == 0
    capsys.readouterr()
    assert _run(["gate", "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("PASS")
    (folder / "plugin.py").write_text(PLUGIN.replace("K = 3 ", "K = 9 "))
    code = _run(["gate", "--quiet", *(["--margin", "R@20=0.5"] if source == "set" else [])])
    assert (code, capsys.readouterr().out[:4]) == (1, "FAIL")


def test_a_starter_sets_labels_are_complete_and_another_sets_may_not_be(folder: Path) -> None:
    _run(["init", "--memories", "mine.jsonl", "--ci", "none", "--quiet"])
    assert read_config().policy.unjudged == "not-relevant"
    _run(["init", "--dataset", "recall-set", "--ci", "none", "--quiet", "--out", "other"])
    assert read_config(folder / "other" / "recallbench.toml").policy.unjudged == "bounds"


def test_nothing_is_written_over_and_nothing_half_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "recallbench.toml").write_text("mine")
    assert _run(["init", "--memories", "mine.jsonl"]) == 2
    assert "recallbench.toml: is there already" in capsys.readouterr().err
    assert (folder / "recallbench.toml").read_text() == "mine"
    assert not (folder / "recall-set").exists()
    (folder / "recallbench.toml").unlink()
    (folder / ".github").write_text("a file where a folder must be")
    assert _run(["init", "--memories", "mine.jsonl", "--quiet"]) == 2
    assert "nothing was kept" in capsys.readouterr().err
    assert not (folder / "recallbench.toml").exists()


MISTAKES: list[tuple[list[str], str]] = [
    ([], "--notes FOLDER, --memories FILE or --dataset NAME|FOLDER (one of them)"),
    (["--notes", "a", "--memories", "b"], "one of them"),
    (["--notes", "none"], "none: no such folder"),
    (["--memories", "none"], "none: no such file"),
    (["--dataset", "none"], "no labelled set 'none'"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_mistakes_are_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert _run(["init", *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_the_policy_that_it_writes_can_be_uncommented(folder: Path) -> None:
    """Every commented key and table is one that is read: uncommented, the file is still a policy."""
    text = write.policy_text("set", "stdio:node plugin.mjs", {"nDCG@5": 0.02}, complete=False)
    lines = []
    for line in text.splitlines():
        body = line.removeprefix("# ")
        key = body.split("=")[0].strip()
        bare = line.startswith("# ") and (body.startswith("[") or ("=" in body and " " not in key.strip('"')))
        lines.append(body if bare else line)
    (folder / "recallbench.toml").write_text("\n".join(lines))
    policy = read_config().policy
    assert policy.strict
    assert policy.worse_within_margin == "fail"
    assert policy.unjudged == "not-relevant"
    assert policy.setup == "npm ci"
    assert policy.split == "test"
    assert policy.hard == {"Leak": 0}
    assert policy.floors == {"nDCG@5": 0.5}
    assert policy.categories["temporal"].margins == {"nDCG@5": 0.1}
    assert policy.latency is not None
    assert policy.scenarios.run == ("mneme-like-override-rrf",)


# CI files.


def steps_of(text: str) -> dict[str, str]:
    """name -> script of the steps of a GitHub workflow or action."""
    found = yaml.safe_load(text)
    steps = found["runs"]["steps"] if "runs" in found else found["jobs"]["gate"]["steps"]
    return {step.get("name", step["run"][:20]): step["run"] for step in steps if "run" in step}


@pytest.fixture
def repository(folder: Path) -> Path:
    """The folder as a repository with an initial policy, committed."""
    _run(["init", "--memories", "mine.jsonl", "--system", SYSTEM, "--quiet"])
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "start")
    return folder


@pytest.mark.parametrize("file", ["action", "workflow"])
def test_the_github_steps_run_and_leave_a_summary(repository: Path, tmp_path: Path, file: str) -> None:
    """The step's own script, in bash, as GitHub runs it (-e, pipefail); the plugin is broken: the job fails."""
    text = (
        (EXAMPLES / "github-action" / "action.yml").read_text()
        if file == "action"
        else (repository / ".github" / "workflows" / "recallbench.yml").read_text()
    )
    steps = steps_of(text)
    base = git(repository, "rev-parse", "HEAD").stdout.strip()
    (repository / "plugin.py").write_text(PLUGIN.replace("K = 3 ", "K = 9 "))
    temp = tmp_path / "temp"
    temp.mkdir()
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "BASE": base,
        "ARGUMENTS": "--strict",
        "REPORTS": str(temp),
        "GITHUB_STEP_SUMMARY": str(temp / "summary"),
        "GITHUB_OUTPUT": str(temp / "output"),
    }

    def run(name: str) -> int:
        shell = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", steps[name]]
        return subprocess.run(shell, cwd=repository, env=environment, check=False, timeout=120).returncode

    assert run("gate") == 1
    if file == "action":
        assert (temp / "output").read_text() == "verdict=FAIL\n"
    else:
        assert run("show") == 0
    assert "recallbench: FAIL" in (temp / "summary").read_text()
    for script in steps.values():
        assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0


def test_no_untrusted_value_is_pasted_into_a_script() -> None:
    """Titles and branch names are others' words: scripts take values from the environment alone."""
    for text in ((EXAMPLES / "github-action" / "action.yml").read_text(), write.template("github.yml")):
        for script in steps_of(text).values():
            assert "${{" not in script


def test_the_gitlab_example_is_what_init_writes(folder: Path) -> None:
    _run(["init", "--memories", "mine.jsonl", "--ci", "gitlab", "--quiet"])
    text = (folder / ".gitlab" / "recallbench.yml").read_text()
    assert text == (EXAMPLES / "gitlab-ci.yml").read_text()
    job = yaml.safe_load(text)["recallbench"]
    assert job["artifacts"]["reports"] == {"junit": "recallbench.xml"}
    assert job["script"][0].startswith("recallbench gate --baseline-ref")


def test_the_workflow_example_is_a_workflow() -> None:
    found = yaml.safe_load((EXAMPLES / "github-workflow.yml").read_text())
    assert found["jobs"]["gate"]["steps"][0]["with"]["fetch-depth"] == 0


def test_the_pre_push_hook_stops_a_bad_push(repository: Path, tmp_path: Path) -> None:
    """A good first push, a bad one that is stopped, its repair, a deletion; what is not committed is not judged."""
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
    git(repository, "remote", "add", "origin", str(tmp_path / "remote.git"))
    git(repository, "push", "--quiet", "--no-verify", "origin", "main")
    hook = repository / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text((EXAMPLES / "pre-push").read_text())
    hook.chmod(0o755)
    plugin = repository / "plugin.py"
    good = plugin.read_text()
    plugin.write_text(good + "# a comment\n")
    dirty = git(repository, "push", "origin", "main:other", check=False)
    assert dirty.returncode != 0
    assert "uncommitted changes" in dirty.stderr
    git(repository, "commit", "--quiet", "--all", "-m", "harmless")
    assert git(repository, "push", "origin", "main").returncode == 0
    plugin.write_text(PLUGIN.replace("K = 3 ", "K = 9 "))
    git(repository, "commit", "--quiet", "--all", "-m", "bad")
    stopped = git(repository, "push", "origin", "main", check=False)
    assert stopped.returncode != 0
    assert "pre-push: refs/heads/main: see `recallbench gate --baseline-ref" in stopped.stderr
    new_branch = git(repository, "push", "origin", "HEAD:refs/heads/topic", check=False)
    assert new_branch.returncode != 0
    assert git(repository, "worktree", "list").stdout.count("\n") == 1
    plugin.write_text(good)
    git(repository, "commit", "--quiet", "--all", "-m", "repaired")
    assert git(repository, "push", "origin", "main", "HEAD:refs/heads/topic").returncode == 0
    assert git(repository, "push", "origin", ":topic").returncode == 0
