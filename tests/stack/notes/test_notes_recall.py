"""Search: the order of its steps, and every step by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notes_support import START_NS, Table, config_of, ids, write

from recallstack.errors import InputError
from recallstack.ranking.channels import fts5
from recallstack.ranking.channels.fts5 import fts_query
from recallstack.ranking.source_weights import source_weight
from recallstack.ranking.tokens import tokenize
from recallstack.systems.notes import Notes, NotesConfig, Switches


def opened(folder: Path, files: dict[str, str], table: Table | None = None, **more: object) -> Notes:
    write(folder / "notes", files, START_NS)
    notes = Notes(config_of(folder, **more), table)
    notes.sync()
    return notes


# 0.5 below carryover/ whatever the name; else 1.5 for the three names; else 1 (recall semantics, section 6).
@pytest.mark.parametrize(
    ("file", "weight"),
    [
        ("public.md", 1.5),
        ("x/personal.md", 1.5),
        ("secret.md", 1.5),
        ("diary.md", 1.0),
        ("carryover/diary.md", 0.5),
        ("carryover/public.md", 0.5),
        ("x/carryover/y/secret.md", 0.5),
        ("carryover.md", 1.0),
        ("my-carryover/diary.md", 1.0),
        ("carryover.md/public.md", 1.5),
    ],
)
def test_source_weights(file: str, weight: float) -> None:
    assert source_weight(file) == weight


def test_fusion_weights_and_scores_by_hand(tmp_path: Path) -> None:
    # Keyword list for "lantern": b.md (4 words) before public.md (5 words): the shorter text scores higher.
    # Semantic list: cosine 1 for carryover/c.md, 0.8 for public.md, 0 for b.md. RRF with k = 10:
    #   b.md          1/11 + 1/13 = 0.167832, times 1
    #   public.md     1/12 + 1/12 = 0.166667, times 1.5 = 0.25
    #   carryover/c   1/11        = 0.090909, times 0.5 = 0.045455
    files = {"b.md": "lantern w x y", "public.md": "lantern v w x y", "carryover/c.md": "other"}
    table = Table({"lantern": [1, 0], files["b.md"]: [0, 1], files["public.md"]: [0.8, 0.6], "other": [1, 0]})
    with opened(tmp_path, files, table) as notes:
        hits = notes.search("lantern").hits
        assert [hit.id for hit in hits] == ["public.md#1", "b.md#1", "carryover/c.md#1"]
        assert [hit.score for hit in hits] == pytest.approx([1.5 * (2 / 12), 1 / 11 + 1 / 13, 0.5 / 11], rel=1e-12)
        assert [hit.sensitivity for hit in hits] == ["public", "personal", "personal"]
    with opened(tmp_path, {}, table, switches=Switches(weights_off=True)) as notes:
        assert ids(notes, "lantern") == ["b.md#1", "public.md#1", "carryover/c.md#1"]
    with opened(tmp_path, {}, table, rrf_k=60) as notes:
        assert notes.search("lantern").hits[0].score == pytest.approx(1.5 * 2 / 62, rel=1e-12)


def test_equals_stand_in_the_order_of_files_and_lines(tmp_path: Path) -> None:
    with opened(tmp_path, {"b.md": "lantern\n\nlantern", "a.md": "x\n\nlantern", "c.md": "lantern"}) as notes:
        assert ids(notes, "lantern") == ["a.md#3", "b.md#1", "b.md#3", "c.md#1"]
        write(tmp_path / "notes", {"a.md": "lantern"}, START_NS + 1)  # new row numbers, the same order
        notes.sync()
        assert ids(notes, "lantern") == ["a.md#1", "b.md#1", "b.md#3", "c.md#1"]


@pytest.mark.parametrize("spare", [0, 1, 3, 200])
def test_equals_at_the_cut_of_the_keyword_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spare: int) -> None:
    # Six equal rows, written last to first, for a list of four: the four first by name must come.
    monkeypatch.setattr(fts5, "SPARE", spare)
    with opened(tmp_path, {}, candidates=4) as notes:
        for name in "fedcba":
            write(tmp_path / "notes", {f"{name}.md": "lantern"}, START_NS)
            notes.sync()
        assert ids(notes, "lantern") == ["a.md#1", "b.md#1", "c.md#1", "d.md#1"]
        write(tmp_path / "notes", {"g.md": "lantern lantern x"}, START_NS)
        notes.sync()
        assert len(ids(notes, "lantern")) == 4


def test_text_is_verbatim_with_file_and_line(tmp_path: Path) -> None:
    text = "# Head\n\n- `a  b`\n\ttail {{.Server}} %s 😀\n"
    with opened(tmp_path, {"x/y.md": text}) as notes:
        (hit,) = notes.search("tail").hits
        assert (hit.file, hit.line, hit.text) == ("x/y.md", 3, "- `a  b`\n\ttail {{.Server}} %s 😀")
        assert Path(hit.root, hit.file).read_text().splitlines()[hit.line - 1] == "- `a  b`"


def test_limit_and_candidates(tmp_path: Path) -> None:
    files = {f"{number:02}.md": "lantern" for number in range(60)}
    with opened(tmp_path, files) as notes:
        assert ids(notes, "lantern", limit=3) == ["00.md#1", "01.md#1", "02.md#1"]
        assert len(ids(notes, "lantern", limit=100)) == 40
        with pytest.raises(InputError, match="at least 1"):
            notes.search("lantern", limit=0)


def test_candidates_are_taken_before_the_limit(tmp_path: Path) -> None:
    # By keyword a.md (shorter) beats public.md; the weight turns them: 1/12 * 1.5 = 0.125 above 1/11 = 0.0909.
    files = {"a.md": "lantern", "public.md": "lantern x"}
    with opened(tmp_path, files) as notes:
        assert ids(notes, "lantern", limit=1) == ["public.md#1"]
    with opened(tmp_path, {}, switches=Switches(pool_is_limit=True)) as notes:
        assert ids(notes, "lantern", limit=1) == ["a.md#1"]


SESSIONS = {"group:1": "in-group", "c2c:me": "mine", "c2c:you": "yours", "grp:2": "both", "c2c:me2": "both"}
MAPPED = {"session_map": SESSIONS, "owners": frozenset({"c2c:me", "c2c:me2"})}
LEVELLED = {"public.md": "lantern p", "x/personal.md": "lantern q r", "secret.md": "lantern s t u", "d.md": "lantern v"}
PUBLIC, EVERY = {"public.md#1"}, {"public.md#1", "x/personal.md#1", "secret.md#1", "d.md#1"}


@pytest.mark.parametrize(
    ("session", "seen"),
    [("in-group", PUBLIC), ("yours", PUBLIC), ("both", PUBLIC), ("mine", EVERY), ("else", set()), (None, set())],
)
def test_what_a_session_sees(tmp_path: Path, session: str | None, seen: set[str]) -> None:
    with opened(tmp_path, LEVELLED, **MAPPED) as notes:
        found = notes.search("lantern", session)
        assert {hit.id for hit in found.hits} == seen
        unknown = ("no recall: the session map names no channel for this session",)
        assert found.remarks == (() if seen else unknown)


def test_no_map_is_no_filter_and_an_empty_one_shows_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, LEVELLED) as notes:
        assert set(ids(notes, "lantern")) == set(ids(notes, "lantern", "anybody")) == EVERY
    with opened(tmp_path, {}, session_map={}) as notes:
        assert ids(notes, "lantern", "anybody") == []


def test_top_k_comes_after_sensitivity(tmp_path: Path) -> None:
    files = {"public.md": "lantern a b c d", "secret.md": "lantern"}
    with opened(tmp_path, files, **MAPPED) as notes:
        assert ids(notes, "lantern", "in-group", limit=1) == ["public.md#1"]
    with opened(tmp_path, {}, **MAPPED, switches=Switches(cut_before_filter=True)) as notes:
        assert ids(notes, "lantern", "in-group", limit=1) == []


def test_the_session_map_file_is_read_for_each_recall(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps({"c2c:me": {"sessionId": "mine"}}))
    with opened(tmp_path, LEVELLED, session_map=path, owners=frozenset({"c2c:me"})) as notes:
        assert set(ids(notes, "lantern", "mine")) == EVERY
        path.write_text(json.dumps({"group:1": {"sessionId": "mine"}}))
        assert set(ids(notes, "lantern", "mine")) == PUBLIC
        assert notes.status().warnings == ()
        for broken in ("{", None):
            path.write_text(broken) if broken else path.unlink()
            found = notes.search("lantern", "mine")
            assert (found.hits, found.remarks) == ((), ("no recall: the session map cannot be read",))
            assert "nobody recalls anything" in notes.status().warnings[0]


@pytest.mark.parametrize("query", ["", " ", "?!", '"', "C\x00", "\ud800", "😀", "é"])
def test_a_query_without_tokens_has_no_list(tmp_path: Path, query: str) -> None:
    with opened(tmp_path, {"a.md": "lantern"}) as notes:
        assert notes.search(query).hits == ()


# What a user types is never query syntax. Each query finds the entry that holds its words, and only that.
SPECIAL = {
    "C++": "- C++ is fast",
    "issue #24": "- issue #24 is closed",
    "provider:deepseek": "- provider:deepseek timed out",
    "blue-lantern": "- the blue-lantern release",
    'say "cheese': '- they say "cheese"',
    "^start": "- ^start of line",
    "NEAR(frost, snow)": "- NEAR(frost, snow)",
    "zfs_4421": "- ticket zfs_4421",
    "tokens : bar": "- tokens : bar",
    "'; DROP TABLE chunks --": "- '; DROP TABLE chunks --",
    "(((": "- nothing at all",
    "发布窗口": "- 发布窗口改到周五",
}


@pytest.mark.parametrize("query", SPECIAL)
def test_special_characters_are_text(tmp_path: Path, query: str) -> None:
    with opened(tmp_path, {"a.md": "\n".join(SPECIAL.values())}) as notes:
        found = [hit.text for hit in notes.search(query).hits]
        if query == "(((":
            assert found == []
        else:
            assert found[0] == SPECIAL[query]


@pytest.mark.parametrize("query", ["OR", "AND", "not", "near", "a OR b", "a AND NOT b", "a*", "tok*"])
def test_operators_are_words(tmp_path: Path, query: str) -> None:
    files = {"a.md": "- a\n- b\n- c\n- token\n- or\n- and\n- not\n- near"}
    with opened(tmp_path, files) as notes:
        expected = {f"- {word}" for word in tokenize(query)} & set(files["a.md"].split("\n"))
        assert {hit.text for hit in notes.search(query, limit=80).hits} == expected


def test_raw_query_syntax_is_the_fault(tmp_path: Path) -> None:
    with opened(tmp_path, {"a.md": "C++ is fast"}, switches=Switches(raw_fts_query=True)) as notes:
        assert ids(notes, "C++") == []
        assert ids(notes, "fast") == ["a.md#1"]


def test_each_token_once_quoted_joined_by_or() -> None:
    assert fts_query('A "b" a-zfs_1 发布窗') == '"a" OR "b" OR "zfs_1" OR "发布" OR "布窗"'
    assert fts_query("…") == ""


def test_a_long_question_is_no_error(tmp_path: Path) -> None:
    words = " ".join(f"w{number}" for number in range(20_000))
    with opened(tmp_path, {"a.md": "w19999"}) as notes:
        assert ids(notes, words) == ["a.md#1"]


def test_every_ideograph_of_the_tokens_can_be_found(tmp_path: Path) -> None:
    text = "\n\n".join(chr(code) for code in range(0x4E00, 0xA000, 97)) + "\n\n" + chr(0x9FFF)
    with opened(tmp_path, {"a.md": text}) as notes:
        for one in text.split("\n\n"):
            assert [hit.text for hit in notes.search(one).hits] == [one]


words = st.text("ab_1字符 \"'*:^()-+#", max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(words, min_size=1, max_size=8), st.lists(words, min_size=1, max_size=5))
def test_found_by_keyword_is_what_shares_a_token(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], queries: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("tokens")
    files = {f"{number}.md": f"x{number}: {text}" for number, text in enumerate(texts)}
    with opened(folder, files) as notes:
        for query in queries:
            asked = set(tokenize(query))
            expected = {f"{name}#1" for name, text in files.items() if asked & set(tokenize(text))}
            assert set(ids(notes, query)) == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": 0},
        {"recall_items": 0},
        {"recall_chars": 0},
        {"rrf_k": 0},
        {"rrf_k": float("nan")},
        {"sync_interval_s": -1.0},
    ],
)
def test_settings_that_cannot_work(wrong: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        NotesConfig(database=tmp_path / "x.db", **wrong)  # type: ignore[arg-type]
