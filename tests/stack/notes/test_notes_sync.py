"""The index follows the files: what is cut, forgotten and kept, and when."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notes_support import START_NS, Table, check_invariants, config_of, holds, ids, write

from recallstack.errors import InputError
from recallstack.systems.notes import ChunkRule, Notes, SyncReport
from recallstack.systems.notes.scanner import scan

FILES = {"a.md": "alpha one\n\nalpha two", "b.md": "beta", "sub/c.md": "# Gamma\n- delta"}
OTHER_RULE = ChunkRule(longest=4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "notes", FILES, START_NS)
    return tmp_path


def names(report: SyncReport) -> tuple[list[str], list[str], list[str]]:
    return list(report.added), list(report.changed), list(report.deleted)


def test_first_sync_cuts_everything_and_the_second_nothing(folder: Path) -> None:
    with Notes(config_of(folder)) as notes:
        first, second = notes.sync(), notes.sync()
    assert names(first) == (["a.md", "b.md", "sub/c.md"], [], [])
    assert first.chunks == 5  # two, one, and a heading and an item
    assert names(second) == ([], [], [])
    assert (second.unchanged, second.chunks) == (3, 0)


def test_only_the_changed_file_is_cut(folder: Path) -> None:
    table = Table()
    with Notes(config_of(folder), table) as notes:
        notes.sync()
        table.documents.clear()
        write(folder / "notes", {"b.md": "beta better"}, START_NS + 1)
        report = notes.sync()
        assert names(report) == ([], ["b.md"], [])
        assert (report.chunks, report.unchanged) == (1, 2)
        assert table.documents == ["beta better"]
        assert notes.search("better").hits[0].text == "beta better"


@pytest.mark.parametrize(
    ("text", "mtime_ns", "changed"),
    [
        ("betb", START_NS + 1, True),  # same size, other mtime
        ("beta!", START_NS, True),  # same mtime, other size
        ("beta", START_NS - 1, True),  # an older file was put back
        ("betb", START_NS, False),  # neither: the documented limit of mtime and size
    ],
)
def test_change_is_seen_by_mtime_or_size(folder: Path, text: str, mtime_ns: int, changed: bool) -> None:
    with Notes(config_of(folder)) as notes:
        notes.sync()
        write(folder / "notes", {"b.md": text}, mtime_ns)
        assert list(notes.sync().changed) == (["b.md"] if changed else [])
        assert notes.sync().changed == ()


def test_a_deleted_file_is_forgotten(folder: Path) -> None:
    with Notes(config_of(folder), Table()) as notes:
        notes.sync()
        (folder / "notes/a.md").unlink()
        assert names(notes.sync()) == ([], [], ["a.md"])
        assert ids(notes, "alpha")  # the semantic list has no floor
        assert not any(name.startswith("a.md") for name in ids(notes, "alpha"))
        assert "a.md" not in {row[1] for row in holds(folder / "index.db")}
    check_invariants(folder / "index.db")


def test_a_renamed_file_has_its_new_name_and_level_and_is_not_embedded_again(folder: Path) -> None:
    table = Table()
    with Notes(config_of(folder), table) as notes:
        notes.sync()
        table.documents.clear()
        (folder / "notes/b.md").rename(folder / "notes/sub/secret.md")
        report = notes.sync()
        assert report.renamed == (("b.md", "sub/secret.md"),)
        assert names(report) == (["sub/secret.md"], [], ["b.md"])
        hit = notes.search("beta").hits[0]
        assert (hit.id, hit.sensitivity) == ("sub/secret.md#1", "secret")
        assert table.documents == []
        assert report.embedded == 0
    check_invariants(folder / "index.db")


def test_a_file_that_becomes_a_folder(folder: Path) -> None:
    with Notes(config_of(folder)) as notes:
        notes.sync()
        (folder / "notes/b.md").unlink()
        write(folder / "notes", {"b.md/x.md": "beta"})
        assert names(notes.sync()) == (["b.md/x.md"], [], ["b.md"])


def test_the_index_can_be_deleted(folder: Path) -> None:
    config = config_of(folder)
    with Notes(config, Table()) as notes:
        notes.sync()
        write(folder / "notes", {"b.md": "alpha beta", "d.md": "alpha"}, START_NS + 5)
        (folder / "notes/a.md").unlink()
        notes.sync()
        grown = [(hit.id, hit.score) for hit in notes.search("alpha beta delta").hits]
    before = holds(config.database)
    for path in folder.glob("index.db*"):
        path.unlink()
    with Notes(config, Table()) as notes:
        notes.sync()
        assert [(hit.id, hit.score) for hit in notes.search("alpha beta delta").hits] == grown
    assert holds(config.database) == before


def test_rebuild_equals_a_new_index(folder: Path) -> None:
    config = config_of(folder)
    with Notes(config, Table({}, "one")) as notes:
        notes.sync()
    with Notes(config_of(folder, rule=OTHER_RULE), Table({"beta": [1.0, 2.0]}, "two")) as notes:
        assert notes.sync().rule_waits
        write(folder / "notes", {"a.md": "a"})
        for name in ("b.md", "sub/c.md"):
            (folder / "notes" / name).unlink()
        write(folder / "notes", {"d.md": "beta"})
        report = notes.rebuild()
        assert not report.rule_waits
        assert report.warnings == (
            "embedder 'two' failed with ValueError; 2 texts have no vector yet, the next sync tries again",
        )  # 3 numbers for "a", 2 for "beta"
    check_invariants(config.database)
    assert {row[4] for row in holds(config.database)} == {OTHER_RULE.signature}


def test_no_roots_is_an_empty_index_and_a_warning(folder: Path) -> None:
    with Notes(config_of(folder)) as notes:
        notes.sync()
    with Notes(config_of(folder, roots=())) as notes:
        report = notes.sync()
        assert "no roots" in report.warnings[0]
        assert len(report.deleted) == 3
        assert notes.search("alpha").hits == ()


def test_two_roots_and_one_taken_away(tmp_path: Path) -> None:
    write(tmp_path / "x", {"public.md": "lantern x"})
    write(tmp_path / "y", {"public.md": "lantern y"})
    both = config_of(tmp_path, roots=(tmp_path / "x", tmp_path / "y"))
    with Notes(both) as notes:
        notes.sync()
        found = notes.search("lantern").hits
        assert [(Path(hit.root).name, hit.id) for hit in found] == [("x", "public.md#1"), ("y", "public.md#1")]
    with Notes(config_of(tmp_path, roots=(tmp_path / "y",))) as notes:
        assert notes.sync().deleted == ("public.md",)
        assert [hit.text for hit in notes.search("lantern").hits] == ["lantern y"]


def test_a_file_that_is_not_utf8_is_told_and_tried_again(folder: Path) -> None:
    path = folder / "notes/b.md"
    path.write_bytes(b"fine\nbad \xff\n")
    with Notes(config_of(folder)) as notes:
        for _ in range(2):
            report = notes.sync()
            assert len(report.warnings) == 1
            assert f"{path.resolve()}:2: not UTF-8" in report.warnings[0]
            assert "b.md" not in report.added
        path.write_bytes("\ufefffine".encode())
        assert notes.sync().added == ("b.md",)
        assert [hit.text for hit in notes.search("fine").hits] == ["fine"]


def test_a_file_that_turns_bad_is_forgotten(folder: Path) -> None:
    with Notes(config_of(folder)) as notes:
        notes.sync()
        (folder / "notes/b.md").write_bytes(b"beta \xff")
        assert names(notes.sync()) == ([], [], ["b.md"])
        assert notes.search("beta").hits == ()


def test_a_file_that_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def refusing(self: Path, *arguments: Any, **more: Any) -> Any:
        if self.name == "b.md":
            raise PermissionError(13, "Permission denied", str(self))
        if self.name == "c.md":
            raise FileNotFoundError(2, "gone since the scan", str(self))
        return real(self, *arguments, **more)

    with Notes(config_of(folder)) as notes:
        monkeypatch.setattr(Path, "open", refusing)
        report = notes.sync()
        assert report.added == ("a.md",)
        assert len(report.warnings) == 1
        assert "Permission denied" in report.warnings[0]
        monkeypatch.undo()
        assert notes.sync().added == ("b.md", "sub/c.md")


def test_a_file_that_changes_while_it_is_read_is_cut_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fstat
    path = folder / "notes/b.md"

    def late(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        if path.samefile(f"/proc/self/fd/{descriptor}") and path.read_text() == "beta":
            write(folder / "notes", {"b.md": "news"}, START_NS + 9)
        return found

    with Notes(config_of(folder)) as notes:
        monkeypatch.setattr(os, "fstat", late)
        notes.sync()
        monkeypatch.undo()
        assert notes.sync().changed == ("b.md",)
        assert ids(notes, "news") == ["b.md#1"]


def test_a_changed_rule_waits_for_consent(folder: Path) -> None:
    table = Table()
    with Notes(config_of(folder), table) as notes:
        notes.sync()
        before = holds(folder / "index.db")
        table.documents.clear()
    with Notes(config_of(folder, rule=OTHER_RULE), table) as notes:
        report = notes.sync()
        assert report.rule_waits
        assert (report.chunks, report.embedded, table.documents) == (0, 0, [])
        assert holds(folder / "index.db") == before
        status = notes.status()
        assert (status.rule, status.rule_waiting) == (ChunkRule().signature, OTHER_RULE.signature)

        write(folder / "notes", {"b.md": "beta beta"}, START_NS + 1)
        assert notes.sync().chunks == 1  # by the old rule: one chunk of nine characters
        assert {row[4] for row in holds(folder / "index.db")} == {ChunkRule().signature}

        notes.accept_spec_change()
        report = notes.sync()
        assert not report.rule_waits
        assert set(report.changed) == set(FILES)
        assert {len(row[7]) <= 4 for row in holds(folder / "index.db")} == {True}
        assert notes.status().rule_waiting is None


def test_a_recorded_rule_can_be_accepted_later_and_taken_back(folder: Path) -> None:
    with Notes(config_of(folder)) as notes:
        notes.sync()
    with Notes(config_of(folder, rule=OTHER_RULE)) as notes:
        notes.sync()
    with Notes(config_of(folder)) as notes:  # asks for no rule: what was recorded still waits
        assert notes.sync().rule_waits
    with Notes(config_of(folder, rule=ChunkRule())) as notes:  # asks for the rule in force
        assert not notes.sync().rule_waits
        assert notes.status().rule_waiting is None
        notes.accept_spec_change()
        assert notes.sync().chunks == 0
    with Notes(config_of(folder, rule=OTHER_RULE)) as notes:
        notes.sync()
    with Notes(config_of(folder)) as notes:
        notes.accept_spec_change()
        assert notes.sync().changed == tuple(FILES)


def test_a_rule_of_another_version_cuts_nothing_until_accepted(folder: Path) -> None:
    with Notes(config_of(folder)) as notes:
        notes.sync()
    unknown = ChunkRule().signature.replace('"version":1', '"version":99')
    with sqlite3.connect(folder / "index.db") as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'rule'", (unknown,))
        connection.execute("UPDATE files SET rule = ?", (unknown,))
    connection.close()
    with Notes(config_of(folder)) as notes:
        with pytest.raises(InputError, match="does not know"):
            notes.sync()
        assert ids(notes, "beta") == ["b.md#1"]  # searching goes on
        notes.accept_spec_change()
        assert notes.sync().changed == tuple(FILES)


def test_the_rule_that_waits_is_accepted_where_the_one_in_force_is_unknown(folder: Path) -> None:
    with Notes(config_of(folder)) as notes:
        notes.sync()
    with Notes(config_of(folder, rule=OTHER_RULE)) as notes:
        notes.sync()
    with sqlite3.connect(folder / "index.db") as connection:
        connection.execute(
            "UPDATE meta SET value = replace(value, '\"version\":1', '\"version\":99') WHERE key = 'rule'"
        )
    connection.close()
    with Notes(config_of(folder)) as notes:
        notes.accept_spec_change()
        assert notes.sync().changed == tuple(FILES)
        assert notes.status().rule == OTHER_RULE.signature


def test_a_file_that_another_process_adds_during_the_scan_is_not_taken_for_deleted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*arguments: Any) -> Any:
        monkeypatch.undo()
        found = scan(*arguments)
        write(folder / "notes", {"d.md": "epsilon"})
        with Notes(config_of(folder)) as other:
            assert other.sync().added == ("d.md",)
        return found

    with Notes(config_of(folder)) as notes:
        notes.sync()
        monkeypatch.setattr("recallstack.systems.notes.sync.scan", slow)
        assert notes.sync().deleted == ()
        assert ids(notes, "epsilon") == ["d.md#1"]


def test_rescan_when_the_interval_is_over(folder: Path) -> None:
    now = [1000.0]
    with Notes(config_of(folder), clock=lambda: now[0]) as notes:
        assert notes.sync_if_due() is not None
        write(folder / "notes", {"d.md": "epsilon"})
        now[0] += 299.9
        assert notes.sync_if_due() is None
        assert ids(notes, "epsilon") == []
        now[0] = 1300.0
        report = notes.sync_if_due()
        assert report is not None
        assert report.added == ("d.md",)
        now[0] = 1599.0
        assert notes.sync_if_due() is None
        now[0] = 1600.0
        assert notes.sync_if_due() is not None


def test_status_tells_what_a_sync_would_do(folder: Path) -> None:
    with Notes(config_of(folder), Table()) as notes:
        notes.sync()
        write(folder / "notes", {"b.md": "beta two", "d.md": "d", "e.md": "e"})
        (folder / "notes/a.md").unlink()
        status = notes.status()
        assert (status.files, status.chunks, status.vectors, status.without_vector) == (3, 5, 5, 0)
        assert (status.new, status.changed, status.gone) == (2, 1, 1)
        assert (status.embedder, status.dimensions) == ("table", 3)
        assert notes.status() == status  # it changed nothing
        notes.sync()
        assert (notes.status().new, notes.status().changed, notes.status().gone) == (0, 0, 0)


file_names = st.sampled_from(["a.md", "public.md", "secret.md", "s/a.md", "s/t/b.md", "carryover/public.md"])
texts = st.lists(st.sampled_from(["alpha", "beta gamma", "# H", "- item", "", "发布窗口", "c" * 30]), max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(file_names, texts | st.none()), min_size=1, max_size=12), st.data())
def test_a_grown_index_equals_one_made_anew(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, list[str] | None]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("grown")
    config = config_of(folder)
    with Notes(config, Table()) as notes:
        for number, (name, content) in enumerate(steps):
            path = folder / "notes" / name
            if content is not None:
                write(folder / "notes", {name: "\n".join(content)}, START_NS + number)
            elif path.exists():
                path.unlink()
            if data.draw(st.booleans()):
                notes.sync()
                check_invariants(config.database)
        notes.sync()
        with Notes(config_of(folder, database=folder / "anew.db"), Table()) as anew:
            anew.sync()
            for query in ("alpha item", "发布窗口", "beta"):
                assert notes.search(query).hits == anew.search(query).hits
    assert holds(config.database) == holds(folder / "anew.db")
