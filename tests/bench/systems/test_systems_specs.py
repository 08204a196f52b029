"""What `--system` takes, and the systems of a configuration file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from made import refused
from systems_support import python_command, small_set

from recallbench.cache.candidates import CandidateCache
from recallbench.cli import _run
from recallbench.evaluation.experiment import as_systems
from recallbench.systems.config import configured_systems
from recallbench.systems.external import ExternalSystem
from recallbench.systems.recipe import RecipeSystem
from recallbench.systems.settings import StdioSettings
from recallbench.systems.spec import parse, public_url
from recallbench.systems.specs import systems_of

GOOD = f"stdio:{python_command('good')}"
Captured = pytest.CaptureFixture[str]


def systems(*specs: str, **more: object) -> list[object]:
    return list(systems_of(list(specs), CandidateCache(), **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "kind", "rest", "name"),
    [
        ("rrf-k60", "recipe", "rrf-k60", ""),
        ("recipe:mine.toml", "recipe", "mine.toml", ""),
        ("stdio:node plugin.mjs", "stdio", "node plugin.mjs", ""),
        ("mine=stdio:node plugin.mjs --a=b", "stdio", "node plugin.mjs --a=b", "mine"),
        ("http:http://localhost:8080/search", "http", "http://localhost:8080/search", ""),
        ("https://example.org/search", "http", "https://example.org/search", ""),
        ("mcp:npx -y a-server", "mcp", "npx -y a-server", ""),
        ("mcp+http:http://localhost/mcp", "mcp+http", "http://localhost/mcp", ""),
        ("old=run:out/bm25.trec", "run", "out/bm25.trec", "old"),
    ],
)
def test_a_spec_is_taken_apart(spec: str, kind: str, rest: str, name: str) -> None:
    one = parse(spec)
    assert (one.kind, one.rest, one.name) == (kind, rest, name)


def test_names_are_short_and_show_no_folder() -> None:
    names = [system.name for system in systems(GOOD, "http:http://me:s3cret@localhost:8080/search?key=s3cret")]  # type: ignore[attr-defined]
    assert names == ["faulty_system.py", "localhost:8080"]
    assert [system.name for system in systems(f"mine={GOOD}")] == ["mine"]  # type: ignore[attr-defined]


def test_the_spec_of_a_system_tells_other_versions_apart(tmp_path: Path) -> None:
    script = tmp_path / "plugin.py"
    specs = []
    for text in ("one", "two", "one"):
        script.write_text(text)
        [system] = systems(f'stdio:"{sys.executable}" "{script}"')
        specs.append(system.spec)  # type: ignore[attr-defined]
    assert specs[0] == specs[2] != specs[1]
    assert str(tmp_path) not in str(specs[0])


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("stdio:", "nothing stands after stdio:"),
        ("stdio:no-such-program-here x", "no program 'no-such-program-here' on this machine"),
        ('stdio:node "plugin.mjs', "No closing quotation"),
        ("http:localhost:8080", "must begin with http:// or https:// and a host"),
        ("mcp+http:ftp://x/y", "must begin with http:// or https:// and a host"),
        ("run:no-such.trec", "cannot read"),
        ("rrf-k61", "rrf-k60"),
        ("presets:all", "use presets, presets:search or presets:inject"),
    ],
)
def test_a_bad_spec_is_refused(spec: str, said: str) -> None:
    assert said in refused(systems, spec)


def test_two_that_differ_need_two_names() -> None:
    assert "another system is named 'it'; give one a name" in refused(
        systems, f"it={GOOD}", f"it=stdio:{python_command('empty')}"
    )
    assert len(systems(f"it={GOOD}", f"it={GOOD}", "bm25-okapi")) == 2  # the same twice is one


def test_presets_are_still_several() -> None:
    assert len(systems("presets:inject")) > 5
    assert isinstance(as_systems("rrf-k60", CandidateCache())[0], RecipeSystem)
    assert isinstance(as_systems(GOOD, CandidateCache())[0], ExternalSystem)


def config(folder: Path, text: str, name: str = "recallbench.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_gives_name_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_THE_TEST", "s3cret")
    path = config(
        tmp_path,
        f"[systems.mine]\nspec = '{GOOD}'\ntimeout_s = 5\nstdio_fd = 3\n"
        "env = {KEY = 'env:KEY_OF_THE_TEST', A = 'b'}\n",
    )
    [one] = systems("mine", configured=configured_systems(path), overrides={"timeout_s": 7.0, "missing": "empty"})
    assert isinstance(one, ExternalSystem)
    assert isinstance(one.settings, StdioSettings)
    assert (one.name, one.settings.stdio_fd) == ("mine", 3)
    assert one.settings.timeout_s == 7.0  # the command line goes before the file
    assert one.settings.env == {"KEY": "s3cret", "A": "b"}
    assert one.settings.folder == str(tmp_path)
    assert "s3cret" not in str(one.spec)
    assert "KEY" not in str(one.spec)


def test_the_tool_table_of_pyproject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config(tmp_path, f"[tool.recallbench.systems.mine]\nspec = '{GOOD}'\n", "pyproject.toml")
    monkeypatch.chdir(tmp_path)
    assert list(configured_systems()) == ["mine"]
    assert [one.name for one in systems("mine")] == ["mine"]  # type: ignore[attr-defined]
    config(tmp_path, "[systems.other]\nspec = 'rrf-k60'\n")
    assert list(configured_systems()) == ["other"]  # a file of our own goes before it


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[systems.mine]\n", 'needs spec, such as spec = "stdio:node plugin.mjs"'),
        ("systems = 3\n", "systems must hold tables"),
        ("[systems.rrf-k60]\nspec = 'stdio:x'\n", "a preset has this name"),
        ("[systems.mine]\nspec = 'rrf-k60'\ntimeout_s = 3\n", "a recipe takes no 'timeout_s'"),
        ("[systems\n", "is no TOML"),
        (f"[systems.mine]\nspec = '{GOOD}'\ntimeoutt_s = 3\n", "takes no 'timeoutt_s'; it takes timeout_s"),
        (f"[systems.mine]\nspec = '{GOOD}'\ntimeout_s = 0\n", "timeout_s"),
        (f"[systems.mine]\nspec = '{GOOD}'\nstdio_fd = 2\n", "stdio_fd: 2 is the system's log"),
        (
            f"[systems.mine]\nspec = '{GOOD}'\nenv = {{A = 'env:NOT_SET_ANYWHERE'}}\n",
            "has no variable 'NOT_SET_ANYWHERE'",
        ),
        (f"[systems.mine]\nspec = '{GOOD}'\nid_map = 'none.csv'\n", "none.csv: cannot be read"),
        ("[systems.mine]\nspec = 'http:http://x/y'\nstdio_fd = 3\n", "http: takes no 'stdio_fd'"),
    ],
)
def test_a_bad_table_is_one_line_that_names_it(text: str, said: str, tmp_path: Path, capsys: Captured) -> None:
    path = config(tmp_path, text)
    dataset = small_set(tmp_path / "set")
    code = _run(["run", "--dataset", str(dataset), "--system", "mine", "--config", str(path), "--out", str(tmp_path)])
    err = capsys.readouterr().err
    assert code == 2
    assert len(err.splitlines()) == 1
    assert str(tmp_path) in err
    assert said in err


def test_configured_systems_are_listed(tmp_path: Path, capsys: Captured) -> None:
    path = config(tmp_path, "[systems.mine]\nspec = 'stdio:node plugin.mjs'\n")
    assert _run(["systems", "list", "--config", str(path)]) == 0
    assert "stdio:node plugin.mjs" in capsys.readouterr().out
    assert _run(["systems", "list", "--config", str(tmp_path / "no.toml")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_addresses_lose_what_may_be_secret() -> None:
    assert public_url("https://me:pw@example.org:81/a/b?key=1#x") == "https://example.org:81/a/b"


def test_commands_that_take_recipes_alone_say_so(tmp_path: Path, capsys: Captured) -> None:
    dataset = small_set(tmp_path / "set")
    assert _run(["explain", "q-1", "--dataset", str(dataset), "--system", "stdio:node x.mjs"]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert "stdio:node x.mjs" in err
    assert "recipe" in err


def test_a_recipe_takes_a_name_too(tmp_path: Path) -> None:
    """Of the command line and of the configuration; one recipe under two names is two systems."""
    path = tmp_path / "recallbench.toml"
    path.write_text("[systems.mine]\nspec = 'recipe:rrf-k60'\n")
    given = ["a=recipe:rrf-k60", "mine", "rrf-k60"]
    found = systems_of(given, CandidateCache(), configured=configured_systems(path))
    assert [one.name for one in found] == ["a", "mine", "rrf-k60"]
    specs = [{key: value for key, value in one.spec.items() if key != "name"} for one in found]
    assert specs[0] == specs[1] == specs[2]
