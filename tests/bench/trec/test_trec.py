"""TREC files: round trips, and one clear line for a broken one."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallbench.trec.files import quote_id, read_qrels, read_run, unquote_id, write_qrels, write_run
from recallbench.trec.order import trec_order
from recallstack.errors import InputError

ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(ANY)
def test_any_id_round_trips_as_one_field(name: str) -> None:
    field = quote_id(name)
    assert len(field.split()) == 1
    assert unquote_id(field) == name


def test_ordinary_ids_are_left_as_they_are() -> None:
    for name in ("m-118", "D1:3", "笔记/public.md#4", "a+b@c"):
        assert quote_id(name) == name
    assert quote_id("two words") == "two%20words"
    assert quote_id("100%") == "100%25"


@given(st.dictionaries(ANY, st.lists(ANY, min_size=1, max_size=6), min_size=1, max_size=4))
@settings(deadline=None)
def test_a_written_run_reads_back_in_the_same_order(
    tmp_path_factory: pytest.TempPathFactory, lists: dict[str, list[str]]
) -> None:
    path = tmp_path_factory.mktemp("run") / "s.trec"
    write_run(path, lists, "my system")
    back = read_run(path)
    assert {question: trec_order(one) for question, one in back.items()} == {
        question: list(dict.fromkeys(ids)) for question, ids in lists.items()
    }
    for one in back.values():
        scores = [one[name] for name in trec_order(one)]
        assert all(a > b for a, b in itertools.pairwise(scores))


@given(st.dictionaries(ANY, st.dictionaries(ANY, st.integers(-1, 4), min_size=1, max_size=4), min_size=1, max_size=4))
@settings(deadline=None)
def test_qrels_round_trip(tmp_path_factory: pytest.TempPathFactory, qrels: dict[str, dict[str, int]]) -> None:
    path = tmp_path_factory.mktemp("qrels") / "q.txt"
    write_qrels(path, qrels)
    assert read_qrels(path) == qrels


def test_tabs_bom_crlf_blank_lines_and_gzip(tmp_path: Path) -> None:
    text = "\ufeffq1\t0\td1\t2\r\nq1 0 d2 0\r\n\r\n  \nq2  0 d1 -1\n"
    want = {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": -1}}
    (tmp_path / "q.txt").write_text(text, encoding="utf-8", newline="")
    assert read_qrels(tmp_path / "q.txt") == want
    with gzip.open(tmp_path / "q.txt.gz", "wt", encoding="utf-8", newline="") as out:
        out.write(text)
    assert read_qrels(tmp_path / "q.txt.gz") == want


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("q Q0 d 1 0.5", ":2: 5 fields"),
        ("q Q0 d 1 nan t", "'nan' is not a finite number"),
        ("q Q0 d 1 inf t", "'inf' is not a finite number"),
        ("q Q0 d 1 high t", "'high' is not a finite number"),
        ("q Q0 first 2 0.5 t", "'first' occurs twice for question 'q'"),
        ("q Q0 %FF 2 0.5 t", "not percent-encoded UTF-8"),
    ],
)
def test_a_broken_run_line_is_named(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "s.trec"
    path.write_text(f"q Q0 first 1 1.0 t\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_run(path)
    assert says in str(caught.value)
    assert f"{path}:2" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("q 0 d", ":2: 3 fields"),
        ("q 0 d 1.5", "'1.5' is not a whole number"),
        ("q 0 d x", "'x' is not a whole number"),
        ("q 0 first 2", "already have grade 1"),
    ],
)
def test_a_broken_qrels_line_is_named(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "q.txt"
    path.write_text(f"q 0 first 1\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_qrels(path)
    assert says in str(caught.value)


def test_empty_missing_and_undecodable_files(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "latin").write_bytes(b"q 0 caf\xe9 1\n")
    (tmp_path / "not.gz").write_bytes(b"q 0 d 1\n")
    for name, says in (
        ("empty", "holds no"),
        ("latin", "not UTF-8"),
        ("not.gz", "cannot read"),
        ("none", "cannot read"),
    ):
        with pytest.raises(InputError, match=says):
            read_qrels(tmp_path / name)
        with pytest.raises(InputError, match=says):
            read_run(tmp_path / name)
