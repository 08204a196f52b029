"""Rows that a system names in its own way are matched to memories, and the report says how."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from made import native_set, refused
from systems_support import QUESTIONS, WORDS, Outcome, run_system

from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.systems.faults import Fault
from recallbench.systems.matching import Matcher, read_id_map
from recallbench.systems.wire import Hit
from recallstack.ranking.rows import Corpus, Memory

FOREIGN = Path(__file__).parents[2] / "foreign_system.py"
PERFECT = dict.fromkeys(QUESTIONS, 1.0)
Captured = pytest.CaptureFixture[str]


def foreign(folder: Path, capsys: Captured, mode: str, dataset: Path | None = None, **settings: object) -> Outcome:
    spec = f'stdio:"{sys.executable}" "{FOREIGN}" {mode} "{folder}"'
    return run_system(folder, capsys, spec, dataset=dataset, stop_s=1.0, **settings)


def matches(found: Outcome) -> dict[str, int]:
    """Kind of match -> rows of the system, as `hits.parquet` has them."""
    assert found.folder is not None
    rows = [row["match"] for row in pq.read_table(found.folder / "hits.parquet").to_pylist() if row["system"] == "it"]
    return {kind: rows.count(kind) for kind in dict.fromkeys(rows)}


# Six questions, each of which gets all six memories, its own first.
@pytest.mark.parametrize(
    ("mode", "kind", "said"),
    [
        ("plain", "id", ""),
        ("map", "id_map", "36 by id map"),
        ("map-lists", "id_map", "36 by id map"),
        ("text", "text", "36 by text"),
    ],
)
def test_every_way_to_name_a_memory_finds_it(mode: str, kind: str, said: str, tmp_path: Path, capsys: Captured) -> None:
    found = foreign(tmp_path, capsys, mode)
    assert found.code == 0
    assert found.rr == PERFECT
    assert matches(found) == {kind: 36}
    assert [said in one for one in found.checks.get("matching", [])] == ([True] if said else [])


def test_foreign_ids_without_a_map_are_an_error_of_each_question_that_says_what_to_do(
    tmp_path: Path, capsys: Captured
) -> None:
    found = foreign(tmp_path, capsys, "no-map")
    assert found.code == 2
    assert set(found.failed) == set(QUESTIONS)
    assert "answered an unknown id, 'row-1000': no memory of corpus 'main'" in found.failed["q-1"]
    assert "need a map (ids in the reply to index, or id_map), source_ids or text" in found.failed["q-1"]


@pytest.mark.parametrize("name", ["ids.json", "ids.csv"])
def test_foreign_ids_with_a_map_in_a_file(name: str, tmp_path: Path, capsys: Captured) -> None:
    pairs = {f"row-m-{number}": f"m-{number}" for number in range(1, 7)}
    text = json.dumps(pairs) if name.endswith("json") else "".join(f"{a},{b}\n" for a, b in pairs.items())
    (tmp_path / name).write_text(text)
    found = foreign(tmp_path, capsys, "file-map", id_map=name)  # relative to the configuration file
    assert found.code == 0
    assert found.rr == PERFECT
    assert matches(found) == {"id_map": 36}


def test_rows_that_match_nothing_keep_their_places_and_are_counted(tmp_path: Path, capsys: Captured) -> None:
    found = foreign(tmp_path, capsys, "rewritten")
    assert found.code == 0
    assert set(found.rr.values()) == {0.0}
    assert matches(found) == {"none": 36}
    assert found.checks["matching"] == [
        "returned rows matched to memories: none; 36 matched nothing, each keeps its place"
    ]


def test_a_merged_row_stands_for_its_memories_one_after_the_other(tmp_path: Path, capsys: Captured) -> None:
    """First row: m-1, m-2, m-3. So q-2 is found at rank 2 and q-3 at rank 3; then come the rows behind the third,
    of q-4: (m-4, m-1, m-2, m-3, m-5, m-6)[3:] = m-3, m-5, m-6, without m-4. Of q-1: m-4, m-5, m-6."""
    found = foreign(tmp_path, capsys, "merged")
    assert found.code == 0
    assert found.rr == {"q-1": 1.0, "q-2": 1 / 2, "q-3": 1 / 3, "q-4": 0.0, "q-5": 0.0, "q-6": 0.0}
    assert any("6 returned rows stand for several memories" in one for one in found.checks["system-note"])
    # q-4 returns m-3 again as a row of its own: counted once, at its first place.
    assert "repeated-ids" in found.checks


def test_memories_that_were_merged_at_ingestion_are_all_found_by_the_one_row(tmp_path: Path, capsys: Captured) -> None:
    found = foreign(tmp_path, capsys, "map-merged")
    assert found.code == 0
    assert [found.rr[one] for one in QUESTIONS] == [1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6]


def test_a_row_that_holds_the_words_of_a_label_counts_for_its_memory(tmp_path: Path, capsys: Captured) -> None:
    """The system cuts its rows otherwise: it returns the last four words, and the label quotes three of them."""
    dataset = native_set(
        tmp_path / "cut",
        [{"id": f"m-{i}", "content": f"the long word number {i} is {word}"} for i, word in enumerate(WORDS, 1)],
        [
            {"id": f"q-{i}", "text": f"which is {word}?", "relevant": [{"snippet": f"{i} is {word}"}]}
            for i, word in enumerate(WORDS, 1)
        ],
    )
    found = foreign(tmp_path, capsys, "snippet", dataset)
    assert found.rr == PERFECT
    # Without the words of labels there is nothing that such a row could be recognised by.
    (tmp_path / "b").mkdir()
    assert set(foreign(tmp_path / "b", capsys, "snippet").rr.values()) == {0.0}


TWO = (
    [{"id": f"{corpus}-{i}", "corpus": corpus, "content": f"{corpus} word {word}"} for corpus in "xy" for i, word in
     enumerate(WORDS[:2])],
    [{"id": f"q-{corpus}{i}", "corpus": corpus, "text": f"which {word}?", "relevant": {f"{corpus}-{i}": 2}}
     for corpus in "xy" for i, word in enumerate(WORDS[:2])],
)  # fmt: skip


def test_each_corpus_is_asked_alone(tmp_path: Path, capsys: Captured) -> None:
    found = foreign(tmp_path, capsys, "plain", native_set(tmp_path / "two", *TWO))
    assert found.code == 0
    assert found.rr == dict.fromkeys(["q-x0", "q-x1", "q-y0", "q-y1"], 1.0)


def test_rows_of_another_corpus_after_reset_are_an_error(tmp_path: Path, capsys: Captured) -> None:
    found = foreign(tmp_path, capsys, "leaks", native_set(tmp_path / "two", *TWO))
    assert found.code == 2
    assert set(found.failed) == {"q-y0", "q-y1"}
    assert found.failed["q-y0"] == (
        "answered a row of corpus 'x' to a question of corpus 'y': reset must forget every memory"
    )
    assert (found.rr["q-x0"], found.rr["q-x1"]) == (1.0, 1.0)


def test_who_asks_is_told_to_a_system_that_declares_session_alone(tmp_path: Path, capsys: Captured) -> None:
    questions = [{"id": "q-1", "text": "alpha?", "relevant": {"m-1": 2}, "session": {"agent_scope": "bot"}}]
    dataset = native_set(tmp_path / "who", [{"id": "m-1", "content": "is alpha"}], questions)
    without = "it does not declare session: it was not told who asks"
    assert without in foreign(tmp_path, capsys, "plain", dataset).checks["system-note"]
    (tmp_path / "b").mkdir()
    assert without not in foreign(tmp_path / "b", capsys, "session", dataset).checks.get("system-note", [])


# The rules, one by one.

SET = LabelledSet(
    SetInfo("t"),
    {
        "main": Corpus.of(
            "main",
            [
                Memory(id="a", title="Ship", content="The release window is Friday"),
                Memory(id="b", content="Deploys freeze in December"),
                Memory(id="c", content="Deploys  FREEZE in december"),
                Memory(id="short", content="yes"),
            ],
        ),
        "other": Corpus.of("other", [Memory(id="a", content="another a"), Memory(id="z", content="the last letter")]),
    },
    (Question(id="q", text="x", relevant={"a": 2}),),
)


def found(hit: Hit, **more: Any) -> tuple[tuple[str, ...], str]:
    return Matcher(SET, "main", **more).ids(hit)


def test_text_is_compared_without_case_and_runs_of_white_space() -> None:
    assert found(Hit(text="the release\n window is FRIDAY")) == (("a",), "text")
    assert found(Hit(text="Ship The release window is Friday")) == (("a",), "text")  # title and content


def test_equal_texts_are_all_meant() -> None:
    assert found(Hit(text="deploys freeze in December")) == (("b", "c"), "text")


def test_a_longer_text_stands_for_the_memories_it_holds_in_its_own_order() -> None:
    text = "Deploys freeze in December. And: the release window is Friday."
    assert found(Hit(text=text)) == (("b", "c", "a"), "text")


def test_a_text_that_is_in_every_other_text_is_not_looked_for_inside_one() -> None:
    assert found(Hit(text="eyes and yes men")) == ((), "none")
    assert found(Hit(text="Yes")) == (("short",), "text")


def test_an_id_of_ours_beside_its_sources_comes_first() -> None:
    assert found(Hit("b", source_ids=("a", "b"))) == (("b", "a"), "source_ids")
    assert found(Hit("b", source_ids=("b",))) == (("b",), "id")
    assert found(Hit("new", source_ids=("a", "b"))) == (("a", "b"), "source_ids")


def test_a_mapped_id_goes_before_one_of_ours() -> None:
    """A system may number its rows as we name our memories, in another order."""
    assert found(Hit("a"), id_map={"a": ["b"]}) == (("b",), "id_map")


def test_a_row_of_another_corpus() -> None:
    for hit in (Hit("z"), Hit("new", source_ids=("z",)), Hit(text="the last letter"), Hit("a", text="another a")):
        with pytest.raises(Fault, match="a row of corpus 'other'"):
            found(hit)
    # A system that holds all corpora at once is not at fault; the row counts for nothing.
    assert found(Hit("new", text="the last letter"), given=False) == ((), "none")


def test_of_a_trace_only_our_ids_are_kept() -> None:
    assert Matcher(SET, "main", {"7": ["a", "b"]}).known(["7", "c", "nobody", "b"]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "[]", 'must be an object {"their id": "our id", …}'),
        ("a.json", '{"x": 1}', "'x' must be mapped to an id or a list of ids"),
        ("a.json", "{", "is no JSON"),
        ("a.csv", "x,y\nx\n", "a.csv:2: 1 cells; a line is: their id,our id"),
        ("a.csv", "x,\n", "a.csv:1: 2 cells"),
    ],
)
def test_a_bad_id_map_is_refused(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert said in refused(read_id_map, tmp_path / name)
    assert "cannot be read" in refused(read_id_map, tmp_path / "missing.json")


def test_an_id_map_may_name_several(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,a\nx,b\ny,c\n")
    assert read_id_map(tmp_path / "a.csv") == {"x": ("a", "b"), "y": ("c",)}
