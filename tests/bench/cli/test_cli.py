"""The command line: help, exit codes, one clear line for every mistake, nothing half-written."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from recallbench.cli import _COMMANDS, _run


def memory(name: str, content: str, **more: object) -> dict[str, object]:
    return {"id": name, "content": content, **more}


MEMORIES = [
    memory("m-1", "The release window is Friday at 15:00", title="release window", updated_at="2026-01-01T00:00:00Z"),
    memory("m-2", "Deploys freeze in the last week of December"),
    memory("m-3", "发布窗口改到周五下午三点"),
    memory("m-4", "zfs_4421 is the ticket for the slow pool", importance=5),
    memory("m-5", "The cat of the office is called Mira", agent_scope="other"),
]
QUESTIONS = [
    {"id": "q-1", "text": "zfs_4421", "relevant": {"m-4": 2}, "categories": ["identifier"], "lang": "en"},
    {"id": "q-2", "text": "when is the release window", "relevant": {"m-1": 2, "m-3": 2}, "lang": "en"},
    {"id": "q-3", "text": "发布窗口几点", "relevant": {"m-3": 2, "m-1": 1}, "lang": "zh"},
    {"id": "q-4", "text": "wie heißt der Hund", "expects_empty": True, "lang": "de"},
]


def write_set(folder: Path, memories: list[object] = MEMORIES, questions: list[object] = QUESTIONS) -> Path:  # type: ignore[assignment]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dataset.toml").write_text('name = "small"\nversion = "1"\n', encoding="utf-8")
    for name, rows in (("memories", memories), ("questions", questions)):
        lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
        (folder / f"{name}.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return folder


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    return write_set(tmp_path / "a set")


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on standard error of a call that must exit with 2."""
    code = _run(list(arguments))
    out, err = capsys.readouterr()
    lines = err.strip().splitlines()
    assert code == 2, (out, err)
    assert len(lines) == 1, err
    assert "Traceback" not in err
    assert lines[0].startswith("recallbench: error: ")
    return lines[0]


def run_arguments(folder: Path, out: Path, *more: str) -> list[str]:
    return ["run", "--dataset", str(folder), "--system", "bm25-okapi", "--out", str(out), *more]


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in _COMMANDS)


@pytest.mark.parametrize("name", sorted(_COMMANDS))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run([name, "--help"]) == 0
    assert "Usage" in capsys.readouterr().out


def test_help_imports_nothing_heavy() -> None:
    heavy = ["pandas", "sklearn", "faiss", "torch", "numpy", "scipy", "pyarrow", "rich", "msgspec"]
    code = (
        "import sys, recallbench.cli as c\n"
        "assert c._run(['--help']) == 0\n"
        f"loaded = [n for n in {heavy!r} if n in sys.modules]\n"
        "print('LOADED', loaded)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED []"


def test_a_run_writes_every_documented_file(labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert _run(run_arguments(labelled, out, "--system", "rrf-k60", "--system", "inject-fixed")) == 0
    text = capsys.readouterr().out
    (folder,) = out.iterdir()
    assert text.rstrip().endswith(f"report: {folder / 'summary.md'}")
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    want = {"manifest.json", "hits.parquet", "measures.parquet", "trace.parquet", "summary.json", "summary.md"}
    want |= {f"{name}.parquet" for name in ("questions", "labels", "answers", "losses")}
    assert files == want | {f"runs/{name}.trec" for name in ("bm25-okapi", "rrf-k60", "inject-fixed")}


def test_no_text_leaves_a_run_unless_asked_for(labelled: Path, tmp_path: Path) -> None:
    _run(run_arguments(labelled, tmp_path / "plain"))
    _run(run_arguments(labelled, tmp_path / "texts", "--include-text"))
    _run(run_arguments(labelled, tmp_path / "public", "--publish"))

    def holds(folder: Path, what: str) -> bool:
        return any(what.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())

    for text in ("Mira", "发布窗口", "zfs_4421"):
        assert not holds(tmp_path / "plain", text)
        assert not holds(tmp_path / "public", text)
    assert holds(tmp_path / "texts", "zfs_4421")
    assert holds(tmp_path / "plain", "m-4")
    assert not holds(tmp_path / "public", "m-4")
    assert not holds(tmp_path / "public", "q-1")


def test_publish_and_include_text_exclude_each_other(
    labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "give one of them" in error_of(
        capsys, *run_arguments(labelled, tmp_path / "o", "--publish", "--include-text")
    )


def test_two_processes_with_other_hash_seeds_write_the_same_bytes(labelled: Path, tmp_path: Path) -> None:
    found = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        env = {**os.environ, "PYTHONHASHSEED": seed, "RECALLBENCH_CACHE": str(tmp_path / f"cache-{seed}")}
        subprocess.run(
            [
                sys.executable,
                "-m",
                "recallbench",
                *run_arguments(labelled, out, "--system", "presets", "--baseline", "bm25-okapi"),
            ],
            env=env,
            check=True,
            capture_output=True,
        )
        (folder,) = out.iterdir()
        files = {str(p.relative_to(out)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
        manifest = json.loads(files.pop(f"{folder.name}/manifest.json"))
        del manifest["time"], manifest["machine"]
        found.append((files, manifest))
    assert found[0] == found[1]


def test_a_second_run_replaces_the_first(labelled: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert _run(run_arguments(labelled, tmp_path / "out")) == 0
    assert len(list((tmp_path / "out").iterdir())) == 1


def test_an_interrupted_run_goes_on(labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recallbench.systems import recipe

    asked: list[str] = []
    real = recipe.RecipeSystem.run

    def run(self: recipe.RecipeSystem, *arguments: object) -> object:
        asked.append(self.name)
        if asked.count("rrf-k60") == 1 and self.name == "rrf-k60":
            raise KeyboardInterrupt
        return real(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(recipe.RecipeSystem, "run", run)
    arguments = run_arguments(labelled, tmp_path / "out", "--system", "rrf-k60")
    assert _run(arguments) == 130
    assert next((tmp_path / "out").iterdir()).name.endswith(".partial")
    assert _run([*arguments, "--resume"]) == 0
    assert asked == ["bm25-okapi", "rrf-k60", "rrf-k60"]
    monkeypatch.undo()
    assert _run(run_arguments(labelled, tmp_path / "whole", "--system", "rrf-k60")) == 0
    (one,), (two,) = (tmp_path / "out").iterdir(), (tmp_path / "whole").iterdir()
    names = ["hits", "measures", "trace", "questions", "labels", "answers", "losses"]
    for name in (*(f"{one}.parquet" for one in names), "summary.json", "summary.md"):
        assert (one / name).read_bytes() == (two / name).read_bytes()


# Bad input: one line, exit code 2.


def test_missing_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert str(tmp_path / "none") in error_of(capsys, *run_arguments(tmp_path / "none", tmp_path / "o"))


def test_empty_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_set(tmp_path / "s", questions=[])
    assert "questions.jsonl" in error_of(capsys, *run_arguments(folder, tmp_path / "o"))


def test_broken_json_in_line_17(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[object] = [memory(f"m-{i}", "x") for i in range(16)]
    folder = write_set(tmp_path / "s", memories=[*rows, '{"id": "m-17", '])
    assert "memories.jsonl:17" in error_of(capsys, *run_arguments(folder, tmp_path / "o"))


def test_duplicate_memory_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_set(tmp_path / "s", memories=[*MEMORIES, memory("m-2", "again")])
    message = error_of(capsys, *run_arguments(folder, tmp_path / "o"))
    assert "m-2" in message
    assert "memories.jsonl:6" in message


def test_a_label_that_names_no_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_set(tmp_path / "s", questions=[{"id": "q-1", "text": "x", "relevant": {"m-99": 2}}])
    message = error_of(capsys, *run_arguments(folder, tmp_path / "o"))
    assert "q-1" in message
    assert "m-99" in message


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--measure", "nDGC@5"], "nDGC"),
        (["--measure", "R@0"], "R@0"),
        (["--system", "rrf-k6"], "unknown recipe 'rrf-k6'"),
        (["--system", "recipe:"], "nothing stands after recipe:"),
        (["--baseline", "rrf-k60"], "not among the systems"),
        (["--by", "colour"], "unknown grouping"),
        (["--split", "train"], "train"),
        (["--split", "dev"], "dev"),
        (["--depth", "0"], "0"),
        (["--colour"], "--colour"),
    ],
)
def test_a_bad_option(
    labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], says: str
) -> None:
    assert says in error_of(capsys, *run_arguments(labelled, tmp_path / "o", *more))
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('name = "x"\n[fusion]\nk = 0', "k is 0"),
        ('name = "x"\n[fusion.weights]\nbm25 = -0.1', "weight of bm25"),
        ('name = "x"\ncolour = "red"', "unknown recipe field 'colour'"),
    ],
)
def test_a_bad_recipe_file(
    labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    file = tmp_path / "my.toml"
    file.write_text(text, encoding="utf-8")
    message = error_of(capsys, *run_arguments(labelled, tmp_path / "o", "--system", f"recipe:{file}"))
    assert says in message
    assert str(file) in message


@pytest.mark.parametrize(
    "text", ["?!。，", "a" * 100_000, "发布" * 50_000, "\ud800 window", "null\x00byte", "%_\\", " "]
)
def test_odd_queries_are_answered(labelled: Path, tmp_path: Path, text: str) -> None:
    """Only punctuation, 100,000 characters, a lone surrogate, NUL: no error, and the run goes on."""
    from recallbench.datasets.model import Question
    from recallbench.datasets.registry import load
    from recallbench.evaluation.experiment import Experiment
    from recallstack.ranking.presets import presets

    whole = load(str(labelled))
    import dataclasses

    odd = dataclasses.replace(whole, questions=(*whole.questions, Question(id="odd", text=text)))
    result = Experiment(odd, list(presets().values()), ["R@5"])
    assert all(len(run.ids) == 5 for run in result.evaluations[0].runs)


def test_an_output_folder_that_cannot_be_written(
    labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x")
    message = error_of(capsys, *run_arguments(labelled, tmp_path / "file" / "out"))
    assert "cannot write" in message


def test_a_full_disk_leaves_nothing_half_written(labelled: Path, tmp_path: Path) -> None:
    """The kernel refuses to grow a file over 2 KB (RLIMIT_FSIZE): the same failure of write() as a full disk."""
    out = tmp_path / "out"
    # Compiled kernels are cached on disk at their first use: that must not be what meets the limit.
    subprocess.run(
        [sys.executable, "-m", "recallbench", *run_arguments(labelled, tmp_path / "warm")],
        check=True,
        capture_output=True,
    )

    def limit() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    done = subprocess.run(
        [sys.executable, "-m", "recallbench", *run_arguments(labelled, out, "--no-cache")],
        capture_output=True,
        text=True,
        preexec_fn=limit,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "cannot write the run" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(out.iterdir()) == []


def test_an_invalid_run_is_written_and_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_set(tmp_path / "s", questions=[{"id": "q", "text": "Mira", "relevant": {"m-1": 2}}])
    code = _run(["run", "--dataset", str(folder), "--system", "keyword-only", "--out", str(tmp_path / "o")])
    out, err = capsys.readouterr()
    assert code == 2
    assert "INVALID" in out
    assert "INVALID" in err
    allowed = ["--allow-zero", "keyword-only"]
    assert _run([*["run", "--dataset", str(folder), "--system", "keyword-only"], *allowed, "--out", str(tmp_path)]) == 0


def test_a_fault_of_ours_exits_with_70(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from recallbench.verify import run as verify

    def broken(*_: object) -> None:
        raise RuntimeError("made for the test")

    monkeypatch.setattr(verify, "verify", broken)
    assert _run(["verify"]) == 70
    err = capsys.readouterr().err
    assert "RuntimeError: made for the test" in err
    assert "please report it" in err


def test_explain_shows_where_a_memory_was(labelled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["explain", "q-2", "--dataset", str(labelled), "--system", "rrf-k60"]
    assert _run([*arguments, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    by_id = {one["memory"]: one for one in values["labels"]}
    assert by_id["m-1"]["outcome"] == "kept"
    assert by_id["m-1"]["ranks"]["bm25"] == 1
    assert "text" not in values
    assert _run(arguments) == 0
    text = capsys.readouterr().out
    assert "m-1" in text
    assert "release window is Friday" not in text


def test_explain_names_the_nearest_question(labelled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = error_of(capsys, "explain", "q-22", "--dataset", str(labelled), "--system", "rrf-k60")
    assert "no question 'q-22'" in message
    assert "q-2" in message


def test_recipes_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["recipes", "list"]) == 0
    assert "inject-dual+overfetch" in capsys.readouterr().out
    assert _run(["recipes", "diff", "rrf-k60-like-override", "rrf-k60"]) == 0
    assert "fusion.like_override" in capsys.readouterr().out
    assert _run(["recipes", "show", "inject-fixed"]) == 0
    assert 'name = "inject-fixed"' in capsys.readouterr().out


def test_cache_info_and_clear(labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(run_arguments(labelled, tmp_path / "out"))
    capsys.readouterr()
    assert _run(["cache", "info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == 1
    folder = Path(os.environ["RECALLBENCH_CACHE"])
    assert oct(folder.stat().st_mode)[-3:] == "700"
    assert _run(["cache", "clear"]) == 0
    assert "1 files deleted" in capsys.readouterr().out


def test_verify_shows_the_first_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from paths import CASES

    line = (CASES / "fusion.jsonl").read_text(encoding="utf-8").splitlines()[0]
    case = json.loads(line)
    case["expected"] = case["expected"][::-1]
    file = tmp_path / "wrong.jsonl"
    file.write_text(json.dumps(case) + "\n", encoding="utf-8")
    assert _run(["verify", str(file)]) == 1
    text = capsys.readouterr().out
    assert "first difference" in text
    assert f"{file}:1" in text
    assert json.dumps(case) in text


def test_verify_passes_every_shipped_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["verify", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["kinds"]
    assert counts == {
        "fusion": {"passed": 144, "failed": 0},
        "injection": {"passed": 40, "failed": 0},
        "measures": {"passed": 18, "failed": 0},
        "bm25": {"passed": 8, "failed": 0},
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", ":1"), ('{"kind": "sorting"}', "kinds: fusion"), ("\n", "holds no case"), ('{"kind": "bm25"}', ":1")],
)
def test_bad_case_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(text, encoding="utf-8")
    assert says in error_of(capsys, "verify", str(file))


@pytest.mark.parametrize("arguments", [[], ["datasets"], ["scenarios"]])
def test_without_a_command_the_help_is_whole(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(arguments) == 2
    err = capsys.readouterr().err
    assert err.count("\n") > 8
    assert "Commands:" in err
    assert "recallbench: error" not in err


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """A file where the folder should be: also root cannot write below it."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    environment = {**os.environ, "RECALLBENCH_CACHE": str(blocked / "cache")}
    arguments = [
        "run",
        "--dataset",
        "kb-preretrieval",
        "--system",
        "bm25-okapi",
        "--quiet",
        "--out",
        str(tmp_path / "o"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "recallbench", *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0
    assert done.stderr.startswith("recallbench: warning: cache: cannot write to")
    assert done.stderr.count("\n") == 1


def test_a_recipe_with_a_long_name_has_a_short_file(tmp_path: Path) -> None:
    name = "long" * 100
    made = tmp_path / "r.toml"
    made.write_text(f'name = "{name}"\nkind = "search"\nchannels = ["bm25"]\n[fusion]\nmethod = "single"\n')
    out = tmp_path / "out"
    assert (
        _run(["run", "--dataset", "kb-preretrieval", "--system", f"recipe:{made}", "--quiet", "--out", str(out)]) == 0
    )
    [folder] = out.iterdir()
    [file] = (folder / "runs").glob("*.trec")
    assert file.name.startswith("longlong")
    assert len(file.name) < 120


@pytest.mark.parametrize("name", ["two\\nlines", "nul\\u0000", "\\u2028", "  "])
def test_a_recipe_name_is_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "r.toml"
    made.write_text(f'name = "{name}"\nkind = "search"\nchannels = ["bm25"]\n[fusion]\nmethod = "single"\n')
    assert _run(["recipes", "show", str(made)]) == 2
    assert "a name is one line of text without control characters" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("python:os:path", "the object has no start, and cannot be called"),
        ("python:json:dumps", "calling dumps without arguments failed: TypeError"),
        ("python:os:nothing", "os has no nothing"),
    ],
)
def test_an_implementation_that_is_none(spec: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["scenarios", "run", "--implementation", spec]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert says in err


def test_a_csv_set_is_told_how_to_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "questions.csv").write_text("question,relevant\nx,is\n")
    assert _run(["datasets", "check", str(tmp_path)]) == 2
    assert f"recallbench datasets convert {tmp_path} OUT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--turns", "3"], "--turns is for --replay sessions; give that too, or leave it out"),
        (["--latency-ms", "300"], "--latency-ms is for --replay sessions"),
        (["--allow-zero", "nope"], "--allow-zero nope: not among the systems: bm25-okapi"),
        (["--system", "presets:"], "--system presets:: use presets, presets:search or presets:inject"),
    ],
)
def test_an_option_without_effect_is_refused(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["run", "--dataset", "kb-preretrieval", "--system", "bm25-okapi", "--out", str(tmp_path / "o")]
    assert _run([*base, *arguments]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert says in err
    assert not (tmp_path / "o").exists()


def test_a_replay_takes_the_first_step_of_a_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--replay", "sessions", "--system", "inject-fixed", "--baseline", "no-bug", "--split", "dev"]
    assert _run(["run", "--dataset", "kb-preretrieval", *arguments, "--out", str(tmp_path)]) == 0
    assert "no-bug.step1" in capsys.readouterr().out
