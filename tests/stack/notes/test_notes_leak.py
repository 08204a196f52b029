"""No session ever receives a row above its level: random trees, session maps and questions."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notes_support import Table, config_of, write

from recallstack.systems.notes import Message, Notes, Prompt, Switches

NAMES = ("public.md", "personal.md", "secret.md", "diary.md", "Public.md", "public.md.md")
FOLDERS = ("", "work/", "carryover/", "public/", "secret/", "a/b/", ".index/")
KEYS = ("c2c:me", "c2c:you", "group:1", "grp:2", "Group:3", "me")
SESSIONS = ("s1", "s2", "s3")
WORDS = ("lantern", "window", "发布", "blue-lantern", "C++")

trees = st.dictionaries(
    st.tuples(st.sampled_from(FOLDERS), st.sampled_from(NAMES)),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
    max_size=8,
)
maps = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(SESSIONS), max_size=5) | st.none()


def may_see(session: str | None, known: dict[str, str] | None, owners: frozenset[str]) -> set[str]:
    """The documented table, written a second time: channel by key, the stricter of two."""
    if known is None:
        return {"public", "personal", "secret"}
    keys = [key for key, one in known.items() if one == session]
    if not keys:
        return set()
    groups = any(key.lower().startswith(("group:", "grp:")) for key in keys)
    return {"public"} if groups or not owners.issuperset(keys) else {"public", "personal", "secret"}


def level(file: str) -> str:
    """The level of a file, written a second time."""
    name = file.split("/")[-1]
    return name[:-3] if name in ("public.md", "secret.md") else "personal"


@settings(max_examples=120, deadline=None)
@given(
    tree=trees,
    known=maps,
    owners=st.frozensets(st.sampled_from(KEYS), max_size=3),
    question=st.lists(st.sampled_from((*WORDS, "nothing", '"')), max_size=3).map(" ".join),
    limit=st.integers(1, 5),
    candidates=st.integers(1, 6),
    semantic=st.booleans(),
)
def test_no_session_receives_a_row_above_its_level(
    tmp_path_factory: pytest.TempPathFactory,
    tree: dict[tuple[str, str], list[str]],
    known: dict[str, str] | None,
    owners: frozenset[str],
    question: str,
    limit: int,
    candidates: int,
    semantic: bool,
) -> None:
    folder = tmp_path_factory.mktemp("leak")
    # Each file holds a marker of its own, so that any way out shows up in plain text.
    files = {f"{a}{b}": f"{' '.join(words)} mark{n:03}" for n, ((a, b), words) in enumerate(tree.items())}
    write(folder / "notes", files)
    config = config_of(folder, session_map=known, owners=owners, candidates=candidates)
    with Notes(config, Table() if semantic else None) as notes:
        notes.sync()
        for session in (*SESSIONS, "stranger", None):
            allowed = may_see(session, known, owners)
            found = notes.search(question, session, limit)
            assert {hit.sensitivity for hit in found.hits} <= allowed
            assert all(hit.sensitivity == level(hit.file) for hit in found.hits)
            prompt = notes.assemble(Prompt((), (Message("user", question),)), question, session)
            shown = f"{found!r} {prompt!r}"
            for name, text in files.items():
                if level(name) not in allowed:
                    assert text[-7:] not in shown
                    assert f"{name}:" not in shown.replace(f"/{name}:", "")


@pytest.mark.parametrize(
    "switch",
    ["group_sees_personal", "guest_sees_personal", "unknown_is_owner", "looser_of_two_keys", "other_file_is_public"],
)
def test_the_property_can_fail(tmp_path: Path, switch: str) -> None:
    """Each fault of sensitivity shows personal text to a session of the property above."""
    write(tmp_path / "notes", {"diary.md": "lantern"})
    known = {"group:1": "s1", "c2c:you": "s2", "c2c:me": "s3", "grp:2": "s3"}
    owners = frozenset({"c2c:me"})
    for switches, leaks in ((Switches(), False), (Switches(**{switch: True}), True)):
        with Notes(config_of(tmp_path, session_map=known, owners=owners, switches=switches)) as notes:
            notes.sync()
            sessions = ("s1", "s2", "s3", "stranger")
            assert any(notes.search("lantern", session).hits for session in sessions) == leaks


def test_remarks_warnings_and_logs_hold_no_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Table):
        def encode_documents(self, texts: object) -> object:  # type: ignore[override]
            raise RuntimeError(f"cannot embed {texts}")

        encode_queries = encode_documents  # type: ignore[assignment]

    write(tmp_path / "notes", {"secret.md": "lantern mark000"})
    (tmp_path / "notes/bad.md").write_bytes(b"mark001 \xff")
    caplog.set_level(logging.DEBUG)
    with Notes(config_of(tmp_path, session_map={}), Broken()) as notes:
        told = f"{notes.sync()!r} {notes.status()!r} {notes.search('lantern', 's1')!r} {caplog.text}"
    with Notes(config_of(tmp_path), Broken()) as notes:
        told += repr(notes.search("nobody wrote this"))
    assert "mark00" not in told
