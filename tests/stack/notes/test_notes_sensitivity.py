"""Levels and channels: the documented table, and nothing where in doubt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallstack.errors import InputError
from recallstack.systems.notes.sensitivity import SessionMap, level_of, read_session_map, visible
from recallstack.systems.notes.switches import Switches

OWNERS = frozenset({"c2c:me"})
EVERY = {"public", "personal", "secret"}


# The table of recall semantics, section 6.
@pytest.mark.parametrize(
    ("file", "level"),
    [
        ("public.md", "public"),
        ("deep/down/public.md", "public"),
        ("personal.md", "personal"),
        ("secret.md", "secret"),
        ("x/secret.md", "secret"),
        ("other.md", "personal"),
        ("public.md/other.md", "personal"),
        ("Public.md", "personal"),
        ("not-public.md", "personal"),
        ("public.md.md", "personal"),
    ],
)
def test_level_by_file_name(file: str, level: str) -> None:
    assert level_of(file) == level


def test_what_each_channel_sees() -> None:
    assert visible("owner") == EVERY
    assert visible("group") == visible("guest") == {"public"}
    assert visible(None) == set()


@pytest.mark.parametrize(
    ("keys", "channel"),
    [
        (["group:1"], "group"),
        (["grp:1"], "group"),
        (["GROUP:1"], "group"),
        (["c2c:me"], "owner"),
        (["c2c:you"], "guest"),
        (["groups:1"], "guest"),
        ([], None),
        # The stricter of two keys, in either order.
        (["c2c:me", "group:1"], "group"),
        (["group:1", "c2c:me"], "group"),
        (["c2c:me", "c2c:you"], "guest"),
        (["c2c:you", "grp:2"], "group"),
    ],
)
def test_channel_by_session_key(keys: list[str], channel: str | None) -> None:
    known = SessionMap({"c2c:x": "another", **dict.fromkeys(keys, "s")}, OWNERS)
    assert known.channel("s") == channel


def test_a_group_key_among_the_owners_is_a_group() -> None:
    assert SessionMap({"group:1": "s"}, frozenset({"group:1"})).channel("s") == "group"


@pytest.mark.parametrize("session", [None, "", "c2c:me", "S", "s "])
def test_a_session_that_no_key_has_is_unknown(session: str | None) -> None:
    assert SessionMap({"c2c:me": "s"}, OWNERS).channel(session) is None


keys = st.sampled_from(["c2c:me", "c2c:you", "group:1", "grp:2", "x"])
levels = {"owner": 3, "guest": 1, "group": 1, None: 0}


@given(st.dictionaries(keys, st.sampled_from(["s", "t"])), keys)
def test_one_more_key_never_shows_more_to_a_known_session(sessions: dict[str, str], key: str) -> None:
    before = SessionMap(sessions, OWNERS).channel("s")
    after = SessionMap({**sessions, key: "s"}, OWNERS).channel("s")
    if before is not None:
        assert levels[after] <= levels[before]


def write_map(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "map.json"
    path.write_text(text)
    return path


def test_a_session_map_file(tmp_path: Path) -> None:
    values = {"c2c:1": {"sessionId": "8f0c", "name": "x"}, "group:2": {"sessionId": "ab12"}}
    assert read_session_map(write_map(tmp_path, json.dumps(values))) == {"c2c:1": "8f0c", "group:2": "ab12"}
    assert read_session_map(write_map(tmp_path, "{}")) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"k": "s"}',
        '{"k": {}}',
        '{"k": {"sessionId": 7}}',
        '{"k": {"sessionId": ""}}',
        '{"k": {"sessionId": "a"}, "k": {"sessionId": "b"}}',
        "[" * 100_000,
    ],
)
def test_a_broken_session_map_is_one_line_that_names_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"map\.json") as caught:
        read_session_map(write_map(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_missing_session_map(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_session_map(tmp_path / "map.json")


def test_switches_change_what_is_seen() -> None:
    assert level_of("x.md", Switches(other_file_is_public=True)) == "public"
    assert visible("group", Switches(group_sees_personal=True)) == {"public", "personal"}
    assert visible("guest", Switches(group_sees_personal=True)) == {"public"}
    assert visible("guest", Switches(guest_sees_personal=True)) == {"public", "personal"}
    assert visible(None, Switches(unknown_is_owner=True)) == EVERY
    both = SessionMap({"c2c:me": "s", "group:1": "s"}, OWNERS)
    assert both.channel("s", Switches(looser_of_two_keys=True)) == "owner"
