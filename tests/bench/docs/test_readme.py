"""The tables of both READMEs are what the commands beside them print."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from recallbench.datasets.readers import native
from recallstack.ranking.presets import presets

ROOT = Path(__file__).parents[3]
COMMANDS = {
    "presets": ("run", "--dataset", "mneme-memories", "--system", "presets"),
    "replay": ("run", "--dataset", "mneme-memories", "--replay", "sessions", "--system", "inject-fixed"),
}


@cache
def rows_printed(name: str, out: Path) -> frozenset[str]:
    done = subprocess.run(
        [sys.executable, "-m", "recallbench", *COMMANDS[name], "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=280,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return frozenset(map(plain, done.stdout.splitlines()))


def plain(line: str) -> str:
    return re.sub(r"\s+", " ", line).strip()


def table_rows(text: str, first: str) -> list[str]:
    """The rows of the table whose header begins with `| first`, without header and rule."""
    lines = [plain(line) for line in text.splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} "))
    out = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        out.append(line)
    return out


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
@pytest.mark.parametrize(("name", "first"), [("presets", "system"), ("replay", "bug put back")])
def test_tables_are_what_the_command_prints(
    page: str, name: str, first: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = table_rows((ROOT / page).read_text(encoding="utf-8"), first)
    assert len(rows) >= 8
    printed = rows_printed(name, tmp_path_factory.getbasetemp() / name)
    assert [row for row in rows if row not in printed] == []


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_counts_of_the_page(page: str) -> None:
    """Memories, questions, scenarios and known faults as the page gives them."""
    from recallbench.datasets.registry import load
    from recallbench.scenarios import mutation
    from recallbench.scenarios.catalogue import catalogue_folder
    from recallbench.scenarios.load import load as load_scenarios
    from recallbench.scenarios.reference import Reference

    text = (ROOT / page).read_text(encoding="utf-8")
    labelled = load("mneme-memories")
    found = load_scenarios([catalogue_folder()], Reference())
    counts = {
        "memories": sum(map(len, labelled.corpora.values())),
        "questions": len(labelled.questions),
        "scenarios": len(found),
        "faults": len(mutation.faults(found, Reference())),
    }
    for what, count in counts.items():
        assert re.search(rf"(?<!\d){count}(?!\d)", text), (what, count)


@pytest.mark.parametrize("name", ["mneme-memories", "notes-vault", "kb-preretrieval"])
def test_a_set_page_tells_the_power_of_this_version_and_its_presets(name: str) -> None:
    folder = ROOT / "datasets" / name
    page = (folder / "README.md").read_text(encoding="utf-8")
    info = native.read_info(folder / "dataset.toml")
    assert f"says, of version {info.version} and all presets:" in page
    questions = len((folder / "questions.jsonl").read_text(encoding="utf-8").splitlines())
    assert f"{questions} questions, {len(presets())} systems, seen in all their pairs." in page


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_closed_loop_prints_what_the_page_shows(page: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/memory_loop.py")],
        capture_output=True,
        text=True,
        timeout=120,
        encoding="utf-8",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"```\n{done.stdout.rstrip()}\n```" in (ROOT / page).read_text(encoding="utf-8")


def fenced(text: str, mark: str) -> str:
    """The code block that follows the comment `<!-- mark -->`, or that holds the given first line."""
    found = re.search(
        rf"(?:<!-- {re.escape(mark)} -->\n```\w*\n|```js\n(?={re.escape(mark)}))(.*?)\n```", text, re.DOTALL
    )
    assert found, mark
    return found[1]


def replaced(plugin: str, line: str) -> str:
    """The plugin with one constant defined by the line instead."""
    name = line.split(" =")[0]
    out, count = re.subn(rf"^{re.escape(name)} =.*$", lambda _: line, plugin, flags=re.MULTILINE)
    assert count == 1
    return out


def play(text: str, folder: Path) -> dict[str, tuple[int, str]]:
    """What the chapter on the gate leads to, typed in from the page: state of the plugin -> exit code and output."""

    def command(*args: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "recallbench", *args],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
            encoding="utf-8",
        )
        return done.returncode, done.stdout + ("" if done.returncode in (0, 1) else done.stderr)

    plugin, policy = folder / "plugin.mjs", folder / "recallbench.toml"
    written = fenced(text, "import { serve }") + "\n"
    said = {"adapter": command("systems", "adapter", "javascript", ".")}
    plugin.write_text(written, encoding="utf-8")
    said["check"] = command("systems", "check", "stdio:node plugin.mjs")
    said["init"] = command("init", "--dataset", "mneme-memories", "--system", "plugin=stdio:node plugin.mjs")
    said["save"] = command("baseline", "save")
    said["same"] = command("gate")
    for name in ("tokens", "weight"):
        plugin.write_text(replaced(written, fenced(text, f"change: {name}")), encoding="utf-8")
        said[name] = command("gate")
    commented = policy.read_text(encoding="utf-8")
    assert "# unjudged = " in commented
    policy.write_text(re.sub("# (unjudged = .*)", r"\1", commented), encoding="utf-8")
    said["complete"] = command("gate")
    return said


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_ten_minutes_with_the_gate(page: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    said = play(text, tmp_path)
    assert {name: code for name, (code, _) in said.items() if code} == {"tokens": 1}, said
    assert said["same"][1].startswith("PASS")
    for name in ("tokens", "weight", "complete"):
        shown = [line for line in fenced(text, f"gate: {name}").splitlines() if line != "…"]
        printed = said[name][1].splitlines()
        assert len(shown) > 5
        assert [line for line in shown if line not in printed] == [], said[name][1]


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_search_of_notes_prints_what_the_page_shows(page: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(
        r'recallbench notes search (\S+) "(.*?)" --limit 1 --db out/notes.db\n```\n\n```\n(.*?)\n```', text, re.DOTALL
    )
    assert found
    command = ["notes", "search", str(ROOT / found[1]), found[2], "--limit", "1", "--db", str(tmp_path / "index.db")]
    done = subprocess.run(
        [sys.executable, "-m", "recallbench", *command],
        capture_output=True,
        text=True,
        timeout=120,
        encoding="utf-8",
    )
    assert done.stdout.strip() == found[3].strip(), done.stderr


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "the database address cannot be read"),
        ("postgresql+psycopg://127.0.0.1:1/x", "it cannot be reached"),
    ],
)
def test_the_closed_loop_on_a_bad_address_says_so_in_one_line(url: str, says: str) -> None:
    if "psycopg" in url:
        pytest.importorskip("psycopg")
    command = [sys.executable, str(ROOT / "examples/memory_loop.py"), url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, encoding="utf-8")
    (line,) = done.stderr.splitlines()
    assert says in line
    assert done.returncode == 2


def test_the_closed_loop_a_second_time_on_one_database(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples/memory_loop.py"), f"sqlite:///{tmp_path / 'm.db'}"]
    first, second = (subprocess.run(command, capture_output=True, text=True, timeout=120) for _ in range(2))
    assert (first.returncode, first.stderr) == (0, "")
    (line,) = second.stderr.splitlines()
    assert second.returncode == 2
    assert "run it on an empty database" in line
