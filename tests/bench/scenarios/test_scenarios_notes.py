"""Notes under scenarios: what the adapter refuses, and what each of its words does."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from scenario_files import passes_and_its_mutant_is_caught, scenario
from scenario_files import saved as saved_of

from recallbench.scenarios import engine
from recallbench.scenarios.reference import Reference
from recallstack.errors import InputError
from recallstack.systems.notes.vectors import QWEN3_INSTRUCTION

HEAD = """id: my-notes
system: notes
kind: guard
title: {en: A title, zh: 标题}
source: a test
needs: [notes]
symptom: what a user sees
cause: why
"""
GOOD = (
    HEAD
    + """given:
  files: {public.md: blue lantern, diary.md: lantern}
  config: {session_map: {"group:1": chat}}
mutant: {group_sees_personal: true}
steps:
  - {call: sync}
  - {probe: search, query: lantern, session: chat, save: hits}
expect:
  - {equal: [hits.ids, [public.md#1]]}
"""
)


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders of scenarios are made here, so that a test can see whether one is left."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


def saved(folder: Path, given: str, steps: str) -> dict[str, Any]:
    """What the steps of a scenario saved."""
    return saved_of(folder, f"{HEAD}mutant: {{deleted_kept: true}}\n", given, steps)


def test_the_good_file_passes_and_its_mutant_is_caught(tmp_path: Path) -> None:
    assert passes_and_its_mutant_is_caught(tmp_path, GOOD)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("probe: search", "probe: serch", 15, "unknown probe 'serch'; did you mean 'search'?"),
        ("query: lantern", "qery: lantern", 15, "unknown argument of search 'qery'; did you mean 'query'?"),
        ("session: chat", "sesion: chat", 15, "unknown argument of search 'sesion'"),
        ("call: sync", "call: snyc", 14, "unknown call 'snyc'; did you mean 'sync'?"),
        (
            "{call: sync}",
            "{call: reopen, longst: 3}",
            14,
            "unknown argument of reopen 'longst'; did you mean 'longest'?",
        ),
        ("{call: sync}", "{fault: {embed: slow}}", 14, "unknown fault of embed 'slow'"),
        ("{call: sync}", "{fault: {session_map: lost}}", 14, "unknown fault of session_map 'lost'"),
        ("{call: sync}", "{event: turn/end}", 14, "unknown event 'turn/end'"),
        ("session_map:", "sesion_map:", 11, "unknown setting of notes 'sesion_map'; did you mean 'session_map'?"),
        ("group_sees_personal", "group_sees_secret", 12, "unknown switch of notes 'group_sees_secret'"),
        ("query: lantern", "query: 7", 15, "query is 7"),
        ("query: lantern", "query: lantern, limit: 0", 15, "limit is 0"),
        ("session: chat", "session: [chat]", 15, "session is ['chat']"),
        ("needs: [notes]", "needs: [lane]", 6, "unknown capability of notes 'lane'"),
        ("diary.md: lantern", "diary.md: 7", 10, "given.files"),
    ],
)
def test_words_that_notes_does_not_have(old: str, new: str, line: int, message: str, tmp_path: Path) -> None:
    """Refused before anything is played, with file and line."""
    assert old in GOOD
    with pytest.raises(InputError) as caught:
        scenario(tmp_path, GOOD.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 'mine.yaml'}:{line}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{probe: search, save: hits}", "search: Object missing required field `query`"),
        ("{probe: search, query: null, save: hits}", "search: Expected `str`, got `null` - at `query`"),
        ("{call: write, file: a.md}", "write: Object missing required field `text`"),
        ("{call: write, file: ../a.md, text: x}", "file '../a.md' must be a path inside the notes"),
        ("{call: write, file: /a.md, text: x}", "file '/a.md' must be a path inside the notes"),
        ('{call: write, file: "", text: x}', "file '' must be a path inside the notes"),
        ("{call: write, file: public.md/a.md, text: x}", "file 'public.md/a.md' cannot be written"),
        ("{call: write, file: a.md, text: x, repeat: many}", "write: Expected `int`, got `str` - at `repeat`"),
        ('{call: write, file: a.md, text: "\\ud800"}', "file 'a.md': half a character in its text"),
        ("{call: delete, file: none.md}", "there is no file 'none.md'; write it first"),
        ("{call: rename, file: none.md, to: a.md}", "there is no file 'none.md'; write it first"),
        ("{call: rename, file: diary.md, to: ../a.md}", "file '../a.md' must be a path inside the notes"),
        ("{call: reopen, longest: short}", "reopen: Expected `int | null`, got `str` - at `longest`"),
        ("{call: reopen, longest: 0}", "longest chunk is 0; it must be at least 1 character"),
        ("{call: reopen, candidates: 0}", "notes: candidates is 0; it must be at least 1"),
        ("{call: reopen, exclude: [/drafts]}", "exclude glob '/drafts' must be relative to the root"),
        ("{call: reopen, embedder: mine}", "embedder 'mine' has vectors of [] dimensions"),
        ("{call: reopen, vectors: {a: [1, 0], b: [1]}}", "has vectors of [1, 2] dimensions; all must have the same"),
        ("{event: user/message, data: {}}", "user/message: Object missing required field `text`"),
    ],
)
def test_a_value_that_cannot_be_is_a_failure_of_its_step(step: str, message: str, tmp_path: Path) -> None:
    """File and line of the step, one line of what is wrong, and no folder left."""
    text = GOOD.replace("{call: sync}", step, 1)
    if "save: hits" in step:
        text = text.replace("  - {probe: search, query: lantern, session: chat, save: hits}\n", "", 1)
    [fixed, _] = engine.run([scenario(tmp_path, text)], Reference())
    assert fixed.outcome == "failed"
    assert fixed.why[0].where == f"{tmp_path / 'mine.yaml'}:14"
    assert message in fixed.why[0].came
    assert "\n" not in fixed.why[0].came
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('{session_map: {"group:1": chat}}', "{session_map: chat}", "config: Expected `object | null`"),
        ('{session_map: {"group:1": chat}}', "{recall_chars: 0}", "notes: recall_chars is 0"),
        ('{session_map: {"group:1": chat}}', "{sync_interval_ms: 0}", "notes: sync_interval_s is 0"),
        ("{public.md: blue", "{../public.md: blue", "file '../public.md' must be a path inside the notes"),
        ("{group_sees_personal: true}", "{group_sees_personal: 3}", "notes switches: Expected `bool`"),
    ],
)
def test_what_is_given_and_cannot_be_used(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in GOOD
    with pytest.raises(InputError) as caught:
        engine.run([scenario(tmp_path, GOOD.replace(old, new, 1))], Reference())
    assert message in str(caught.value)
    assert re.match(rf"{re.escape(str(tmp_path))}/mine\.yaml:\d+: ", str(caught.value))
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_map_that_is_not_there_cannot_fail(tmp_path: Path) -> None:
    text = GOOD.replace('{session_map: {"group:1": chat}}', "{}").replace(
        "{call: sync}", "{fault: {session_map: broken}}"
    )
    [fixed, _] = engine.run([scenario(tmp_path, text)], Reference())
    assert "there is no session map that could fail" in fixed.why[0].came


def test_time_of_a_file_is_the_clock(tmp_path: Path) -> None:
    """Without `advance_ms` a file of the same size is taken as unchanged: mtime and size are all that is looked at."""
    steps = """
  - {call: sync}
  - {call: write, file: a.md, text: beta}
  - {call: sync, save: same}
  - {advance_ms: 1}
  - {call: write, file: a.md, text: gama}
  - {call: sync, save: got}"""
    found = saved(tmp_path, "{files: {a.md: alfa}}", steps)
    assert list(found["same"]["changed"]) == []
    assert list(found["got"]["changed"]) == ["a.md"]


def test_an_embedder_that_fails_leaves_keywords_and_is_repaid(tmp_path: Path) -> None:
    """The texts are there by keyword; the next sync embeds what has no vector."""
    steps = """
  - {fault: {embed: error}}
  - {call: sync, save: first}
  - {probe: search, query: lantern, save: words}
  - {probe: index, save: owed}
  - {fault: {embed: none}}
  - {call: sync, save: again}
  - {probe: search, query: Laterne, save: got}
  - {call: reopen, embedder: none}
  - {probe: search, query: Laterne, save: without}"""
    found = saved(tmp_path, "{files: {a.md: lantern}, vectors: {lantern: [1, 0], Laterne: [1, 0]}}", steps)
    assert (found["first"]["embedded"], found["again"]["embedded"]) == (0, 1)
    assert (found["owed"]["without_vector"], found["owed"]["vectors"]) == (1, 0)
    assert found["words"]["ids"] == ["a.md#1"]
    assert found["got"]["ids"] == ["a.md#1"]
    assert found["without"]["ids"] == []


def test_an_embedder_that_fails_stays_down_when_the_notes_are_opened_again(tmp_path: Path) -> None:
    steps = "  - {fault: {embed: error}}\n  - {call: reopen, embedder: b}\n  - {call: sync, save: got}"
    assert saved(tmp_path, "{files: {a.md: x}, vectors: {x: [1]}}", steps)["got"]["embedded"] == 0


def test_a_map_that_fails_stays_broken_when_the_notes_are_opened_again(tmp_path: Path) -> None:
    given = '{files: {public.md: x}, config: {session_map: {"group:1": chat}}}'
    steps = """
  - {call: sync}
  - {fault: {session_map: broken}}
  - {call: reopen, owners: []}
  - {probe: search, query: x, session: chat, save: got}
  - {fault: {session_map: none}}
  - {probe: search, query: x, session: chat, save: mended}"""
    found = saved(tmp_path, given, steps)
    assert found["got"]["ids"] == []
    assert found["mended"]["ids"] == ["public.md#1"]


def test_settings_reach_the_notes(tmp_path: Path) -> None:
    """Each by what it does: globs, bounds of auto-recall, the chunking rule, the interval, the named instruction."""
    given = """
  files: {a.md: "- one\\n- two\\n# Head\\nthree", drafts/b.md: one}
  vectors: {one: [1], $QWEN3one: [1]}
  config: {exclude: ["drafts/**"], recall_items: 1, recall_chars: 75, items: false, headings: false,
    sync_interval_ms: 1000, query_instruction: $QWEN3}"""
    steps = """
  - {call: sync-if-due, save: got}
  - {probe: search, query: one, save: hits}
  - {probe: assemble, query: one, save: prompt}
  - {probe: embedder, save: model}
  - {advance_ms: 999}
  - {call: sync-if-due, save: early}
  - {advance_ms: 1}
  - {call: sync-if-due, save: due}
  - {call: reopen, items: true, headings: true, candidates: 1, rrf_k: 1}
  - {call: accept-spec-change}
  - {probe: index, save: index}"""
    found = saved(tmp_path, given, steps)
    assert list(found["got"]["added"]) == ["a.md"]  # no draft
    assert found["got"]["chunks"] == 1  # neither an item nor a heading begins an entry
    assert found["hits"]["ids"] == ["a.md#1"]
    assert found["prompt"]["characters"] == 75  # cut there
    assert found["prompt"]["sources"] == ["a.md:1"]
    assert found["model"]["queries"] == [QWEN3_INSTRUCTION + "one"] * 2
    assert (found["early"]["synced"], found["due"]["synced"]) == (False, True)
    assert found["index"]["changed"] == 1  # its rule is the default again: it waits for the next sync


def test_candidates_and_k_reach_the_fusion(tmp_path: Path) -> None:
    """One list, one candidate, k = 1: a single hit that scores 1 / (1 + 1)."""
    steps = "  - {call: sync}\n  - {probe: search, query: x, save: got}"
    got = saved(tmp_path, "{files: {a.md: x, b.md: x y}, config: {candidates: 1, rrf_k: 1}}", steps)["got"]
    assert (got["ids"], got["scores"]) == (["a.md#1"], [0.5])


def test_answers_do_not_name_the_temporary_folder(tmp_path: Path) -> None:
    """It has another name each time, so that two runs of a scenario would differ."""
    given = "{config: {session_map: {}}}"
    steps = """
  - {call: write, file: latin.md, text: "caf\\udce9"}
  - {call: sync, save: got}
  - {fault: {session_map: broken}}
  - {probe: index, save: index}"""
    found = saved(tmp_path, given, steps)
    assert found["got"]["warnings"] == ["notes/latin.md:1: not UTF-8, so it is not in the index; save it as UTF-8"]
    assert [one.partition(":")[0] for one in found["index"]["warnings"]] == ["sessions.json"]
    assert found == saved(tmp_path, given, steps)
    assert str(tmp_path) not in repr(found)
