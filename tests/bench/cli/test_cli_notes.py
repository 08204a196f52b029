"""`recallbench notes`: a user's own folder, from the first index to what a group may see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recallbench.cli import _run
from recallbench.datasets.readers.notes import iterate, read_notes
from recallbench.datasets.skips import Skips
from recallstack.errors import InputError
from recallstack.systems.notes.prompt import HEAD

FILES = {
    "public.md": "# Office\n\n- the lantern hangs in the hall\n- issue #24 is C++ only\n",
    "secret.md": "the lantern code is 4711\n",
    "carryover/2026.md": "we talked about the lantern\n",
    ".index/old.md": "lantern of the index\n",
    "node_modules/x/readme.md": "lantern of a package\n",
    "drafts/d.md": "lantern draft\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "my notes"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


class Shell:
    """Runs commands; keeps both streams of the last."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: object, code: int = 0) -> str:
        got = _run(["notes", *map(str, arguments)])
        out, self.err = self._capsys.readouterr()
        assert got == code, (out, self.err)
        return out

    def json(self, *arguments: object) -> Any:
        return json.loads(self(*arguments, "--json"))

    def error(self, *arguments: object) -> str:
        out = self(*arguments, code=2)
        (line,) = self.err.strip().splitlines()
        assert out == ""
        assert line.startswith("recallbench: error: ")
        assert "Traceback" not in line
        return line


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def test_index_search_sync_status(folder: Path, shell: Shell) -> None:
    assert shell("index", folder) == ("4 files added, 0 changed, 0 forgotten (0 renamed), 0 unchanged; 6 chunks cut\n")
    assert (folder / ".index/recallbench-notes.db").is_file()

    # Each list holds one token. Lengths in tokens: secret 5, carryover 5, drafts 2, public 6. By keyword the draft
    # is first (1/11 * 1 = 0.0909); secret and carryover are equal, carryover first by name (1/12 * 0.5 = 0.0417),
    # secret third (1/13 * 1.5 = 0.1154), public fourth (1/14 * 1.5 = 0.1071).
    text = shell("search", folder, "lantern")
    heads = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert heads == [
        "secret.md:1  0.1154  secret",
        "public.md:3  0.1071  public",
        "drafts/d.md:1  0.0909  personal",
        "carryover/2026.md:1  0.0417  personal",
    ]
    assert "    - the lantern hangs in the hall\n" in text

    (folder / "drafts/d.md").unlink()
    (folder / "new.md").write_text("a new lantern")
    status = shell.json("status", folder)
    assert (status["files"], status["new"], status["changed"], status["gone"]) == (4, 1, 0, 1)
    assert shell.json("sync", folder)["added"] == ["new.md"]
    assert "| files          | 4" in shell("status", folder)


def test_search_makes_and_follows_the_index(folder: Path, shell: Shell) -> None:
    assert "no such index" in shell.error("search", folder, "lantern", "--no-sync")
    assert "no such index" in shell.error("status", folder)
    assert not (folder / ".index/recallbench-notes.db").exists()
    assert len(shell.json("search", folder, "C++")["hits"]) == 1
    (folder / "new.md").write_text("C++ again")
    assert len(shell.json("search", folder, "C++", "--no-sync")["hits"]) == 1
    assert len(shell.json("search", folder, "C++", "--limit", 5)["hits"]) == 2
    assert [hit["id"] for hit in shell.json("search", folder, "C++", "--limit", 1)["hits"]] == ["public.md#4"]


def test_nothing_found_is_no_error(folder: Path, shell: Shell) -> None:
    assert shell("search", folder, "giraffe") == ""
    assert shell.err == "nothing found\n"
    assert shell("search", folder, "giraffe", "--section") == ""
    assert shell.err == "nothing to recall\n"
    assert shell.json("search", folder, "giraffe", "--section") is None


def test_what_a_session_sees(folder: Path, tmp_path: Path, shell: Shell) -> None:
    known = tmp_path / "map.json"
    known.write_text(json.dumps({"c2c:me": {"sessionId": "mine"}, "group:1": {"sessionId": "ours"}}))
    arguments = ("search", folder, "lantern", "--session-map", known, "--owner", "c2c:me")

    def seen(*more: str) -> set[str]:
        return {hit["sensitivity"] for hit in shell.json(*arguments, *more)["hits"]}

    assert seen("--session", "mine") == {"public", "personal", "secret"}
    assert seen("--session", "ours") == {"public"}
    assert seen("--session", "else") == seen() == set()
    assert "4711" not in shell(*arguments, "--session", "ours", "--section")
    shell(*arguments, "--session", "else")
    assert "no recall" in shell.err


def test_the_section_of_auto_recall(folder: Path, shell: Shell) -> None:
    text = shell("search", folder, "lantern code", "--section")
    assert text.startswith(f"{HEAD}\n[secret.md:1] the lantern code is 4711\n")
    section = shell.json("search", folder, "lantern code", "--section")
    assert (section["name"], section["order"], section["text"] + "\n") == ("memory-search", 130, text)


def test_a_changed_rule_waits(folder: Path, shell: Shell) -> None:
    shell("index", folder)
    assert shell.json("sync", folder, "--longest", 10)["rule_waits"]
    shell("sync", folder)
    assert "--accept-spec-change" in shell.err
    report = shell.json("sync", folder, "--accept-spec-change")
    assert len(report["changed"]) == 4
    assert all(len(hit["text"]) <= 10 for hit in shell.json("search", folder, "lantern")["hits"])
    assert not shell.json("index", folder)["rule_waits"]


def test_semantic_list(folder: Path, shell: Shell) -> None:
    assert "6 texts embedded" in shell("index", folder, "--embedder", "hash3")
    assert shell.json("status", folder)["dimensions"] == 3
    assert len(shell.json("search", folder, "giraffe", "--embedder", "hash3")["hits"]) == 6
    assert shell.json("search", folder, "giraffe")["hits"] == []


def test_more_roots_another_database_and_excludes(folder: Path, tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/m.md").write_text("one more lantern")
    database = tmp_path / "deep/notes.db"
    where = (folder, "--root", tmp_path / "more", "--db", database, "--exclude", "drafts/**", "--exclude", "carry*/**")
    report = shell.json("index", *where)
    assert sorted(report["added"]) == ["m.md", "public.md", "secret.md"]
    assert database.is_file()
    assert not (folder / ".index/recallbench-notes.db").exists()


def test_bad_input_is_one_line(folder: Path, tmp_path: Path, shell: Shell) -> None:
    shell("index", folder)
    broken, text = tmp_path / "broken.json", folder / "public.md"
    broken.write_text("[")
    database = folder / ".index/recallbench-notes.db"
    for arguments, said in [
        (("index", tmp_path / "gone"), "gone: no such folder"),
        (("sync", folder, "--root", text), "public.md: no such folder"),
        (("search", folder, "  "), "the query is empty"),
        (("search", folder, "x", "--session", "s"), "need --session-map"),
        (("search", folder, "x", "--owner", "k"), "need --session-map"),
        (("search", folder, "x", "--session-map", broken), "broken.json"),
        (("search", folder, "x", "--session-map", tmp_path / "none.json"), "none.json"),
        (("search", folder, "x", "--limit", 0), "--limit"),
        (("search", folder), "QUERY"),
        (("sync", folder, "--longest", 0), "at least 1"),
        (("sync", folder, "--exclude", "/abs/**"), "/abs/**"),
        (("sync", folder, "--embedder", "hash4"), "did you mean 'hash3'"),
        (("sync", folder, "--embedder", "lsa"), "fitted on a fixed corpus"),
        (("status", folder, "--db", text), "no SQLite database"),
        (("sync", folder, "--db", folder), "cannot be opened"),
        (("unknown", folder), "unknown"),
    ]:
        assert said in shell.error(*arguments), arguments
    assert text.read_text() == FILES["public.md"]
    database.write_bytes(b"SQLite format 3\0" + b"\xff" * 8000)
    assert "recallbench-notes.db" in shell.error("sync", folder)


def test_a_note_that_is_not_utf8_is_a_warning(folder: Path, shell: Shell) -> None:
    (folder / "bad.md").write_bytes(b"\xff 4711")
    shell("sync", folder)
    assert shell.err.startswith(f"warning: {folder.resolve()}/bad.md:1: not UTF-8")
    assert "4711" not in shell.err


def test_as_a_command_in_a_terminal(folder: Path) -> None:
    command = [sys.executable, "-m", "recallbench", "notes", "search", ".", "lantern code", "--limit", "1"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout.startswith("secret.md:1  ")
    assert done.stderr == ""


def test_a_labelled_set_cuts_and_classes_as_the_index_does(folder: Path, shell: Shell) -> None:
    hits = shell.json("search", folder, "lantern issue office", "--limit", 80)["hits"]
    by_index = {(hit["id"], hit["text"], hit["sensitivity"], hit["file"], hit["line"]) for hit in hits}
    memories = read_notes(folder)
    assert by_index == {(m.id, m.content, m.sensitivity, m.source.file, m.source.line) for m in memories if m.source}
    assert [memory.id for memory in memories] == [
        "carryover/2026.md#1",
        "drafts/d.md#1",
        "public.md#1",
        "public.md#3",
        "public.md#4",
        "secret.md#1",
    ]


def test_a_bad_note_of_a_labelled_set_is_given_to_skips(folder: Path) -> None:
    (folder / "bad.md").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"bad\.md:1: not UTF-8"):
        read_notes(folder)
    skips = Skips(allowed=True)
    rows = list(iterate(folder, skips))
    assert len(rows) == 6
    assert rows[0][0] == f"{folder}/carryover/2026.md:1"
    assert (skips.count, "bad.md" in skips.reasons[0]) == (1, True)
    with pytest.raises(InputError, match=r"no \.md file"):
        read_notes(folder / "node_modules/x/none")


@pytest.mark.skipif(os.name == "nt", reason="no such file name on Windows")
def test_a_file_name_with_a_line_break_is_one_line(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "a\nb.md").write_text("lantern\n")
    out = shell("search", tmp_path, "lantern")
    assert out.splitlines()[0].startswith("'a\\nb.md':1  ")


def test_faults_of_files_above_the_level_are_not_named_to_a_session(folder: Path, shell: Shell) -> None:
    (folder / "secret-plan.md").write_bytes(b"caf\xe9 lantern\n")
    (folder / "map.json").write_text('{"k": {"sessionId": "s"}}')
    shell("search", folder, "lantern", "--session-map", folder / "map.json", "--session", "s")
    assert "secret-plan" not in shell.err
    assert "warning: 1 files or folders have a fault" in shell.err
    shell("search", folder, "lantern", "--session-map", folder / "map.json")
    assert "secret-plan" not in shell.err
    shell("search", folder, "lantern")
    assert "secret-plan.md" in shell.err


def test_a_map_without_a_session_names_no_faults_either(folder: Path, shell: Shell) -> None:
    """No session is an unknown one: it sees nothing, so it hears of no file."""
    (folder / "secret-plan.md").write_bytes(b"caf\xe9 lantern\n")
    (folder / "map.json").write_text('{"k": {"sessionId": "s"}}')
    assert shell("search", folder, "lantern", "--session-map", folder / "map.json") == ""
    assert "secret-plan" not in shell.err


def test_hits_of_several_roots_name_theirs(folder: Path, tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/public.md").write_text("giraffe")
    (head, *_) = shell("search", folder, "giraffe", "--root", tmp_path / "more").splitlines()
    assert head == f"{tmp_path.resolve()}/more/public.md:1  0.1364  public"  # 1/11 * 1.5


def test_a_session_cannot_tell_from_scores_what_it_may_not_see(folder: Path, tmp_path: Path, shell: Shell) -> None:
    """The same public note, with and without a secret one that ranks before it: the same answer, to the byte."""
    (tmp_path / "map.json").write_text('{"group:1": {"sessionId": "ours"}}')
    arguments = ("search", folder, "lantern", "--session-map", tmp_path / "map.json", "--session", "ours")
    outputs = [(shell(*arguments), shell(*arguments, "--json"))]
    (folder / "secret.md").unlink()
    outputs.append((shell(*arguments), shell(*arguments, "--json")))
    assert outputs[0] == outputs[1]
    assert outputs[0][0].startswith("public.md:3  public\n")
