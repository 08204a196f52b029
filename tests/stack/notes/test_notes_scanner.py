"""The scan: which files are notes, which are left out, and what is said about the rest."""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notes_support import START_NS, config_of, write

from recallstack.errors import InputError
from recallstack.systems.notes.globs import DEFAULT_EXCLUDE, excluded, folder_excluded
from recallstack.systems.notes.scanner import Stamp, scan


def names(*roots: Path, exclude: tuple[str, ...] = DEFAULT_EXCLUDE) -> list[str]:
    return [file for _, file in scan(roots, exclude).files]


def test_markdown_files_below_the_roots_by_name(tmp_path: Path) -> None:
    write(tmp_path, {"b.md": "", "a/c.md": "", "a.md": "", "x.txt": "", "d.md.bak": "", "e.MD": "", "f.md/g.md": ""})
    assert names(tmp_path) == ["a.md", "a/c.md", "b.md", "f.md/g.md"]


def test_stamp_is_mtime_and_size(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "字"}, START_NS + 7)
    assert scan([tmp_path]).files == {(str(tmp_path.resolve()), "a.md"): Stamp(START_NS + 7, 3)}


def test_default_excludes(tmp_path: Path) -> None:
    write(tmp_path, {".index/a.md": "", "x/.index/y/b.md": "", "node_modules/c.md": "", "z/node_modules.md": ""})
    write(tmp_path, {"my.index/d.md": "", ".git/e.md": ""})
    assert names(tmp_path) == [".git/e.md", "my.index/d.md", "z/node_modules.md"]
    assert len(names(tmp_path, exclude=())) == 6


def test_no_roots_is_empty_and_a_warning() -> None:
    found = scan([])
    assert found.files == {}
    assert len(found.warnings) == 1
    assert "no roots" in found.warnings[0]


def test_a_missing_root_is_a_warning_and_the_others_are_scanned(tmp_path: Path) -> None:
    write(tmp_path / "here", {"a.md": ""})
    found = scan([tmp_path / "gone", tmp_path / "here"])
    assert [file for _, file in found.files] == ["a.md"]
    assert len(found.warnings) == 1
    assert "gone" in found.warnings[0]


def test_a_file_below_two_roots_belongs_to_the_first(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "", "sub/b.md": ""})
    top, sub = str(tmp_path.resolve()), str((tmp_path / "sub").resolve())
    assert list(scan([tmp_path / "sub", tmp_path]).files) == [(top, "a.md"), (sub, "b.md")]
    assert list(scan([tmp_path, tmp_path / "sub", tmp_path]).files) == [(top, "a.md"), (top, "sub/b.md")]


def test_links_are_not_followed_and_told(tmp_path: Path) -> None:
    # A link named public.md to secret.md would make the secret public.
    write(tmp_path / "notes", {"secret.md": "s"})
    write(tmp_path / "other", {"b.md": "b"})
    (tmp_path / "notes/public.md").symlink_to(tmp_path / "notes/secret.md")
    (tmp_path / "notes/folder").symlink_to(tmp_path / "other")
    (tmp_path / "notes/loop").symlink_to(tmp_path / "notes/loop")
    (tmp_path / "notes/x.txt").symlink_to(tmp_path / "other/b.md")
    found = scan([tmp_path / "notes"])
    assert [file for _, file in found.files] == ["secret.md"]
    assert len(found.warnings) == 1
    assert "not followed (2)" in found.warnings[0]


def test_a_root_may_be_a_link(tmp_path: Path) -> None:
    write(tmp_path / "real", {"a.md": ""})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert list(scan([tmp_path / "link"]).files) == [(str((tmp_path / "real").resolve()), "a.md")]


def test_a_pipe_is_no_note(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    assert names(tmp_path) == []


def test_a_name_that_is_not_utf8_is_a_warning_of_one_line(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "", "line\nbreak.md": ""})
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md")).write_text("x")
    found = scan([tmp_path])
    assert [file for _, file in found.files] == ["a.md", "line\nbreak.md"]
    assert len(found.warnings) == 1
    assert "UTF-8" in found.warnings[0]
    found.warnings[0].encode()
    assert "\n" not in found.warnings[0]


def test_a_folder_that_cannot_be_read_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.md": "", "closed/b.md": "", "open/c.md": ""})
    real = os.scandir

    def refusing(path: str) -> Any:
        if "closed" in path:
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)  # root, which tests may run as, can read everything
    found = scan([tmp_path])
    assert [file for _, file in found.files] == ["a.md", "open/c.md"]
    assert len(found.warnings) == 1
    assert "closed" in found.warnings[0]
    assert "Permission denied" in found.warnings[0]


# Expected values by the meaning of the globs: ** any folders or none, * and ? inside one name, [] a set.
@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("**/.index/**", ".index/a.md", True),
        ("**/.index/**", "x/y/.index/z/a.md", True),
        ("**/.index/**", "x.index/a.md", False),
        ("**/.index/**", "xindex/a.md", False),
        ("*.md", "a.md", True),
        ("*.md", "x/a.md", False),
        ("**/*.md", "a.md", True),
        ("**/*.md", "x/y/a.md", True),
        ("x/**", "x/a/b.md", True),
        ("x/**", "xx/a.md", False),
        ("x/*/a.md", "x/y/a.md", True),
        ("x/*/a.md", "x/y/z/a.md", False),
        ("a?.md", "ab.md", True),
        ("a?.md", "a.md", False),
        ("a?b.md", "a/b.md", False),
        ("[ab].md", "b.md", True),
        ("[!ab].md", "b.md", False),
        ("[!ab].md", "c.md", True),
        ("a[!b]c.md", "a/c.md", False),
        ("a.b+(c).md", "a.b+(c).md", True),
        ("a.md", "aXmd", False),
        ("a[.md", "a[.md", True),
    ],
)
def test_globs(glob: str, path: str, expected: bool) -> None:
    assert excluded(path, [glob]) is expected


@settings(max_examples=500)
@given(st.text("abc*?[]!-^.\\", max_size=8), st.text("abc!]-^.\\", max_size=5))
def test_inside_one_name_globs_are_those_of_fnmatch(glob: str, name: str) -> None:
    if glob and "**" not in glob:
        assert excluded(name, [glob]) == fnmatch.fnmatchcase(name, glob)


@given(st.lists(st.sampled_from(["a", "b", "c.md"]), min_size=1, max_size=4))
def test_a_folder_is_left_out_only_if_all_below_it_is(parts: list[str]) -> None:
    folder = "/".join(parts)
    for glob in ("**/a/**", "a/b/**", "**", "a/**", "**/a/*"):
        if folder_excluded(folder, [glob]):
            assert all(excluded(f"{folder}/{below}", [glob]) for below in ("x.md", "y/z.md"))


@pytest.mark.parametrize("glob", ["", "/a/**"])
def test_a_glob_that_matches_nothing_by_mistake_is_refused(glob: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"glob '{glob[:1]}"):
        config_of(tmp_path, exclude=("x", glob))
