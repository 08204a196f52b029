"""Every mutant of notes search is caught: each check holds for the documented behaviour and fails with its switch."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from notes_support import START_NS, Table, config_of, holds, ids, write

from recallstack.systems.notes import ChunkRule, Message, Notes, Prompt, Switches

Check = Callable[[Path, Switches], None]
SESSIONS = {"group:1": "in-group", "c2c:me": "mine", "c2c:you": "yours", "grp:2": "both", "c2c:me2": "both"}
OWNERS = frozenset({"c2c:me", "c2c:me2"})
LEVELLED = {"public.md": "lantern p", "personal.md": "lantern q", "diary.md": "lantern r"}


def opened(
    folder: Path, switches: Switches, files: dict[str, str], table: Table | None = None, **more: object
) -> Notes:
    write(folder / "notes", files, START_NS)
    notes = Notes(config_of(folder, switches=switches, **more), table)
    notes.sync()
    return notes


def spec_change(folder: Path, switches: Switches) -> None:
    with opened(folder, switches, {"a.md": "alpha beta"}):
        before = holds(folder / "index.db")
    with opened(folder, switches, {}, rule=ChunkRule(longest=3)):
        assert holds(folder / "index.db") == before


def nothing_changed(folder: Path, switches: Switches) -> None:
    with opened(folder, switches, {"a.md": "alpha"}) as notes:
        assert notes.sync().chunks == 0


def other_size(folder: Path, switches: Switches) -> None:
    with opened(folder, switches, {"a.md": "alpha"}) as notes:
        write(folder / "notes", {"a.md": "alphabet"}, START_NS)
        notes.sync()
        assert ids(notes, "alphabet") == ["a.md#1"]


def other_mtime(folder: Path, switches: Switches) -> None:
    with opened(folder, switches, {"a.md": "alpha"}) as notes:
        write(folder / "notes", {"a.md": "gamma"}, START_NS + 1)
        notes.sync()
        assert ids(notes, "gamma") == ["a.md#1"]


def deleted(folder: Path, switches: Switches) -> None:
    with opened(folder, switches, {"a.md": "alpha"}) as notes:
        (folder / "notes/a.md").unlink()
        notes.sync()
        assert ids(notes, "alpha") == []


def renamed(folder: Path, switches: Switches) -> None:
    with opened(folder, switches, {"public.md": "alpha"}) as notes:
        (folder / "notes/public.md").rename(folder / "notes/secret.md")
        notes.sync()
        assert ids(notes, "alpha") == ["secret.md#1"]


def rescan(folder: Path, switches: Switches) -> None:
    now = [0.0]
    with Notes(config_of(folder, switches=switches), clock=lambda: now[0]) as notes:
        assert notes.sync_if_due() is not None
        now[0] = 300.0
        assert notes.sync_if_due() is not None


def sees(session: str, expected: set[str]) -> Check:
    def check(folder: Path, switches: Switches) -> None:
        with opened(folder, switches, LEVELLED, session_map=SESSIONS, owners=OWNERS) as notes:
            assert set(ids(notes, "lantern", session)) == expected

    return check


def empty_map(folder: Path, switches: Switches) -> None:
    with opened(folder, switches, LEVELLED, session_map={}) as notes:
        assert ids(notes, "lantern", "mine") == []


def broken_map(folder: Path, switches: Switches) -> None:
    (folder / "map.json").write_text(json.dumps([]))
    with opened(folder, switches, LEVELLED, session_map=folder / "map.json") as notes:
        assert ids(notes, "lantern", "mine") == []


def public_below_the_limit(folder: Path, switches: Switches) -> None:
    files = {"public.md": "lantern a b c", "secret.md": "lantern"}
    with opened(folder, switches, files, session_map=SESSIONS, owners=OWNERS) as notes:
        assert ids(notes, "lantern", "in-group", limit=1) == ["public.md#1"]


def other_vectors(name: str, vector: list[float]) -> Check:
    """The index holds vectors of `old`; the question is asked with another embedder, sharing no word."""

    def check(folder: Path, switches: Switches) -> None:
        with opened(folder, switches, {"a.md": "alpha"}, Table({"alpha": [1, 0]}, "old")):
            pass
        with Notes(config_of(folder, switches=switches), Table({"near": vector}, name)) as notes:
            found = notes.search("near")
            assert found.hits == ()
            assert found.remarks

    return check


def instruction(asked: str, embedded: str, found: list[str], **settings: object) -> Check:
    def check(folder: Path, switches: Switches) -> None:
        table = Table()
        with opened(folder, switches, {"a.md": "alpha", "b.md": "find"}, table, **settings) as notes:
            notes.search("abc")
        assert table.queries == [asked]
        assert table.documents == [embedded, "find"]
        with Notes(config_of(folder, switches=switches, **settings)) as notes:
            assert ids(notes, "alpha") == found

    return check


def order(files: dict[str, str], expected: list[str], limit: int = 10) -> Check:
    def check(folder: Path, switches: Switches) -> None:
        with opened(folder, switches, files) as notes:
            assert ids(notes, "lantern", limit=limit) == expected

    return check


def special(folder: Path, switches: Switches) -> None:
    with opened(folder, switches, {"a.md": "- C++\n- issue #24\n- provider:deepseek\n- blue-lantern\n- x"}) as notes:
        for query in ("C++", "issue #24", "provider:deepseek", "blue-lantern", 'x"'):
            assert len(ids(notes, query)) == 1


def transcript(folder: Path, switches: Switches) -> None:
    prompt = Prompt((), (Message("user", "lantern?"),))
    with opened(folder, switches, LEVELLED) as notes:
        got = notes.assemble(prompt, "lantern")
        assert [one.name for one in got.sections] == ["memory-search"]
        assert got.messages == prompt.messages


def budget(folder: Path, switches: Switches) -> None:
    with opened(folder, switches, {"a.md": "- lantern " + "x" * 900 + "\n- lantern " + "y" * 900}) as notes:
        section = notes.section("lantern")
        assert section is not None
        assert len(section.text) == 1600


def items(folder: Path, switches: Switches) -> None:
    with opened(folder, switches, {"a.md": "- lantern\n" * 9}) as notes:
        section = notes.section("lantern")
        assert section is not None
        assert section.text.count("lantern") == 4


# By keyword the shorter text comes first: the source weights (1.5, 1, 0.5) must turn these lists.
DIARY = {"diary.md": "lantern", "public.md": "lantern x"}
CARRIED = {"carryover/public.md": "lantern", "diary.md": "lantern x"}
CHECKS: dict[str, Check] = {
    "spec_change_recuts": spec_change,
    "everything_recut": nothing_changed,
    "size_ignored": other_size,
    "mtime_ignored": other_mtime,
    "deleted_kept": deleted,
    "rename_keeps_old_path": renamed,
    "no_rescan": rescan,
    "group_sees_personal": sees("in-group", {"public.md#1"}),
    "guest_sees_personal": sees("yours", {"public.md#1"}),
    "unknown_is_owner": sees("else", set()),
    "looser_of_two_keys": sees("both", {"public.md#1"}),
    "other_file_is_public": sees("in-group", {"public.md#1"}),
    "no_entries_is_no_map": empty_map,
    "broken_map_is_no_map": broken_map,
    "cut_before_filter": public_below_the_limit,
    "dimension_mismatch_computes": other_vectors("old", [1, 0, 0]),
    "model_change_computes": other_vectors("new", [1, 0]),
    "instruction_left_in_place": instruction("abc", "alpha", ["a.md#1"]),
    "instruction_on_documents": instruction("find: abc", "alpha", ["a.md#1"], query_instruction="find: "),
    "instruction_in_keywords": instruction("find: abc", "alpha", ["a.md#1"], query_instruction="find: "),
    "weights_off": order(DIARY, ["public.md#1", "diary.md#1"]),
    "carryover_by_name": order(CARRIED, ["diary.md#1", "carryover/public.md#1"]),
    "pool_is_limit": order(DIARY, ["public.md#1"], limit=1),
    "raw_fts_query": special,
    "recall_enters_transcript": transcript,
    "budget_ignored": budget,
    "items_ignored": items,
}


def test_every_switch_has_its_check() -> None:
    assert set(CHECKS) == {field.name for field in dataclasses.fields(Switches)}
    assert Switches() == Switches(**dict.fromkeys(CHECKS, False))


@pytest.mark.parametrize("name", CHECKS)
def test_the_documented_behaviour_passes(name: str, tmp_path: Path) -> None:
    CHECKS[name](tmp_path, Switches())


@pytest.mark.parametrize("name", CHECKS)
def test_the_mutant_is_caught(name: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        CHECKS[name](tmp_path, Switches(**{name: True}))
