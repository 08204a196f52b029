"""Killed with SIGKILL at random points, and two processes at once: nothing is lost, nothing is half-written."""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from killing import Killer
from notes_support import START_NS, Table, check_invariants, config_of, holds, write

from recallstack.systems.notes import ChunkRule, Notes

SCRIPT = Path(__file__).parents[2] / "notes_process.py"
BEFORE = {f"{name}.md": f"alpha {name}\n\nbeta {name}" for name in "abcdefg"} | {"sub/public.md": "# Head\n- gamma"}
WORK = [{"do": "first"}, {"do": "sync"}, {"do": "accept", "longest": 4}, {"do": "rebuild", "longest": 3}]
"""What is interrupted: a first index, a sync of a changed tree, a rule change, an index made anew."""

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    one = Killer(SCRIPT, "kills")
    yield one
    one.close()


def change(root: Path) -> None:
    """New, changed, deleted and renamed files; one text moves to another file."""
    write(root, {"a.md": "alpha a\n\nnew in a", "new/h.md": "beta c\n\neta"}, START_NS + 1)
    (root / "b.md").unlink()
    (root / "c.md").unlink()
    (root / "d.md").rename(root / "secret.md")


def template(folder: Path, command: dict[str, Any]) -> Path:
    """A folder as it stands when the work begins."""
    write(folder / "notes", BEFORE, START_NS)
    if command["do"] != "first":
        with Notes(config_of(folder), Table()) as notes:
            notes.sync()
        change(folder / "notes")
    return folder


def copy(source: Path, target: Path) -> Path:
    """A copy of a folder, index included, that knows its new place."""
    shutil.copytree(source, target)
    with sqlite3.connect(target / "index.db") as connection:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            connection.execute("UPDATE files SET root = ?", (str((target / "notes").resolve()),))
    connection.close()
    return target


def without_root(folder: Path) -> Rows:
    return [row[1:] for row in holds(folder / "index.db")]


def texts_by_file(rows: Rows) -> dict[str, Rows]:
    """file -> its stamp, rule and texts, row by row, without vectors."""
    out: dict[str, Rows] = {}
    for row in rows:
        out.setdefault(row[0], []).append(row[1:-1])
    return out


def check_nothing_is_half_written(now: Rows, before: Rows, after: Rows, rebuilt: bool) -> None:
    """Each file stands as it was before or as it will be; one that was there and stays is there all the time."""
    one, old, new = texts_by_file(now), texts_by_file(before), texts_by_file(after)
    for file, rows in one.items():
        assert rows in (old.get(file), new.get(file))
    if not rebuilt:
        assert one.keys() >= old.keys() & new.keys()


def kill_at_random_points(killer: Killer, folder: Path, points: int, seed: int) -> int:
    """Kill `points` times; after each, the invariants hold, and the next sync ends where an undisturbed one ends.

    Returns how many processes were really killed.
    """
    draw = random.Random(seed)
    templates, totals, before, after = [], [], [], []
    for number, command in enumerate(WORK):
        templates.append(template(folder / f"template{number}", command))
        whole = copy(templates[-1], folder / f"whole{number}")
        before.append(without_root(whole))
        assert killer.run({**command, "folder": str(whole)}, 0) == 0
        totals.append(int((whole / "events").read_text()))
        after.append(without_root(whole))
        assert all(row[-1] for row in after[-1])  # every chunk has its vector
        assert before[-1] != after[-1]
    killed = 0
    for trial in range(points):
        which = trial % len(WORK)
        command = WORK[which]
        place = copy(templates[which], folder / f"trial{trial}")
        for _ in range(1 + (trial % 3 == 0)):  # every third is killed again, while the next sync repairs
            ended = killer.run({**command, "folder": str(place)}, draw.randint(1, totals[which]))
            assert ended in (0, -signal.SIGKILL)
            killed += ended == -signal.SIGKILL
            check_invariants(place / "index.db", settled=False)
            now = without_root(place)
            check_nothing_is_half_written(now, before[which], after[which], command["do"] in ("first", "rebuild"))
        rule = ChunkRule(longest=command["longest"]) if "longest" in command else None
        with Notes(config_of(place, rule=rule), Table()) as notes:
            if rule is not None and notes.status().rule != rule.signature:
                notes.accept_spec_change()  # killed before the consent was written
            notes.sync()
        check_invariants(place / "index.db")
        assert without_root(place) == after[which]
        shutil.rmtree(place)
    return killed


def test_killed_at_random_points(killer: Killer, tmp_path: Path) -> None:
    killed = kill_at_random_points(killer, tmp_path, 24, seed=1)
    assert killed >= 24


@pytest.mark.slow
def test_killed_at_many_random_points(killer: Killer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    killed = kill_at_random_points(killer, tmp_path, 200, seed=2)
    with capsys.disabled():
        print(f"\nnotes sync: killed {killed} times with SIGKILL, every invariant held")
    assert killed >= 200


def start(what: str, folder: Path, times: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), what, str(folder), str(times)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def test_processes_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Three processes make one index at the same time, one searches, while files change under them."""
    root = tmp_path / "notes"
    write(root, {f"{number}.md": f"alpha {number}\n\nbeta" for number in range(40)})
    running = [start("sync", tmp_path, 12) for _ in range(3)] + [start("search", tmp_path, 40)]
    turn = 0
    while any(one.poll() is None for one in running):
        turn += 1
        write(root, {f"{turn % 40}.md": f"alpha beta {turn}", f"new/{turn % 7}.md": str(turn)})
        (root / f"{(turn * 7) % 40}.md").unlink(missing_ok=True)
    for one in running:
        _, error = one.communicate()
        assert one.returncode == 0, error
    with Notes(config_of(tmp_path), Table()) as notes:
        notes.sync()
        check_invariants(tmp_path / "index.db")
        with Notes(config_of(tmp_path, database=tmp_path / "anew.db"), Table()) as anew:
            anew.sync()
    assert holds(tmp_path / "index.db") == holds(tmp_path / "anew.db")
