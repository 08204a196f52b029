"""BEIR: folders made for the test, sound and broken, and the judgement files in all their dialects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import BOM, files, jsonl, refused, windows

from recallbench.datasets.model import Question
from recallbench.datasets.readers import beir
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import check, gather
from recallstack.ranking.rows import Memory

DOCUMENTS: list[Any] = [
    {"_id": "d1", "title": "Tea", "text": "红茶", "metadata": {"url": "x"}},
    {"_id": "d 2", "title": None, "text": "green"},
    {"_id": "d3", "text": ""},
]
QUERIES: list[Any] = [
    {"_id": "q1", "text": "tea?", "metadata": {}},
    {"_id": "q 2", "text": "green?"},
    {"_id": "q3", "text": "nobody judged this"},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td 2\t0\nq 2\td 2\t1\n"


def made(
    folder: Path,
    documents: list[Any] = DOCUMENTS,
    queries: list[Any] = QUERIES,
    qrels: str | bytes = QRELS,
    **more: str | bytes,
) -> Path:
    contents: dict[str, str | bytes] = {
        "corpus.jsonl": jsonl(documents),
        "queries.jsonl": jsonl(queries),
        "qrels/test.tsv": qrels,
    }
    return files(folder, {**contents, **more})


def judged(folder: Path, qrels: str | bytes) -> Question:
    """The question q1 of a set with these judgements, with q1 and q 2 among the queries."""
    return next(one for one in beir.read(made(folder, qrels=qrels, queries=QUERIES)).questions if one.id == "q1")


def test_a_made_folder(tmp_path: Path) -> None:
    labelled = beir.read(made(tmp_path / "tea"))
    assert labelled.info.name == "tea"
    assert labelled.corpora["main"].memories == (
        Memory(id="d1", title="Tea", content="红茶"),
        Memory(id="d 2", content="green"),
        Memory(id="d3"),
    )
    assert labelled.questions == (
        Question(id="q1", text="tea?", split="test", relevant={"d1": 2}, not_relevant=("d 2",)),
        Question(id="q 2", text="green?", split="test", relevant={"d 2": 1}),
    )
    assert labelled.notes == ("queries without judgements, left out: 1",)


def test_windows_and_gzip_read_the_same(tmp_path: Path) -> None:
    plain = beir.read(made(tmp_path / "plain"))
    names = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")
    raw = {name: (tmp_path / "plain" / name).read_bytes() for name in names}
    saved = beir.read(files(tmp_path / "saved", {name: windows(data) for name, data in raw.items()}))
    packed = beir.read(files(tmp_path / "packed", {f"{name}.gz": windows(data) for name, data in raw.items()}))
    for one in (saved, packed):
        assert (one.memories_hash, one.questions) == (plain.memories_hash, plain.questions)


def test_splits(tmp_path: Path) -> None:
    more = {"qrels/train.tsv": "q1\td1\t1\n", "qrels/dev.tsv": "q 2\td1\t1\n", "qrels/extra.tsv": "q3\td1\t1\n"}
    labelled = beir.read(made(tmp_path, qrels="", **more))
    assert {one.id: one.split for one in labelled.questions} == {"q1": "dev", "q 2": "dev", "q3": None}


@pytest.mark.parametrize(
    ("qrels", "relevant", "not_relevant"),
    [
        ("q1\td1\t1\n", {"d1": 1}, ()),  # no header
        ("q1 d1 1\n", {"d1": 1}, ()),  # blanks
        ("q1   d1 \t 1\n".replace("\t", ""), {"d1": 1}, ()),
        ("q1\td 2\t1\n", {"d 2": 1}, ()),  # an id with a blank, which only tabs can part
        ("q1\td1\t 1 \n", {"d1": 1}, ()),  # blanks around the grade
        ("query-id corpus-id score\nq1 d1 1\n", {"d1": 1}, ()),
        ("\n\nquery-id\tcorpus-id\tscore\n\nq1\td1\t1\n", {"d1": 1}, ()),
        ("qid\tdocid\trelevance\nq1\td1\t1\n", {"d1": 1}, ()),
        ("q1\td1\t-1\nq1\td3\t-2\n", {}, ("d1", "d3")),  # negative: judged and not relevant
        ("q1\td1\t2.0\nq1\td3\t1e0\nq1\td 2\t-0.0\n", {"d1": 2, "d3": 1}, ("d 2",)),  # whole, written as floats
        ("q1\td1\t1\nq1\td1\t1\nq1\td3\t0\nq1\td3\t-1\n", {"d1": 1}, ("d3",)),  # repeated, and of one mind
        ("q1\td1\t10\n", {"d1": 10}, ()),
        (BOM + b"q1\td1\t1", {"d1": 1}, ()),  # no line end at the end
    ],
)
def test_dialects_of_judgements(
    tmp_path: Path, qrels: str | bytes, relevant: dict[str, int], not_relevant: tuple[str, ...]
) -> None:
    question = judged(tmp_path, qrels)
    assert (question.relevant, question.not_relevant) == (relevant, not_relevant)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("q1\td1\t0.5", "grade '0.5' is no whole number"),
        ("q1\td1\tnan", "grade 'nan' is no whole number"),
        ("q1\td1\t1e999", "grade '1e999' is no whole number"),
        ("q1\td1\t1_0", "grade '1_0' is no whole number"),
        ("q1\td1\trelevant", "grade 'relevant' is no whole number"),
        ("q1\td1\t11", "grade 11 is over 10"),
        ("q1\td1", "expected a query id, a document id and a grade; ids that hold blanks need tabs"),
        ("q1 d 2 1", "expected a query id, a document id and a grade; ids that hold blanks need tabs"),
        ("q1\t0\td1\t1", "expected a query id, a document id and a grade; ids that hold blanks need tabs"),
        ("q1\t\t1", "expected a query id, a document id and a grade; ids that hold blanks need tabs"),
        ("q1\td3\t1", "'q1' 'd3' is already judged 2, and here 1"),
        ("q1\td3\t-1", "'q1' 'd3' is already judged 2, and here -1"),
    ],
)
@pytest.mark.parametrize("place", [2, 17])
def test_a_bad_judgement(tmp_path: Path, place: int, line: str, says: str) -> None:
    """Also in the first line of data: it must never pass for a header."""
    lines = ["q1\td3\t2", *["q 2\td3\t1"] * (place - 2), line, "q 2\td1\t1"]
    folder = made(tmp_path, qrels="\n".join(lines))
    message = refused(beir.read, folder)
    assert message == f"{folder / 'qrels' / 'test.tsv'}:{place}: {says}"
    skips = Skips(allowed=True)
    questions = gather(beir.stream(folder), skips).questions
    assert skips.reasons == [message]
    assert questions[0].relevant == {"d3": 2}


def test_a_first_line_with_a_bad_grade_is_no_header(tmp_path: Path) -> None:
    folder = made(tmp_path, qrels="q1\td1\t0.5\nq 2\td1\t1\n")
    assert refused(beir.read, folder).endswith("test.tsv:1: grade '0.5' is no whole number")


def test_a_judged_document_that_is_not_in_the_corpus(tmp_path: Path) -> None:
    """The line of the judgement is named, not only the question."""
    folder = made(tmp_path, qrels=QRELS + "q 2\td9\t1\n")
    path = folder / "qrels" / "test.tsv"
    says = f"{path}:5: question 'q 2': relevant: no memory of corpus 'main' has the id 'd9'"
    assert refused(beir.read, folder) == says
    skips = Skips(allowed=True)
    labelled = gather(beir.stream(folder), skips)
    assert skips.reasons == [says]
    assert labelled.questions[1].relevant == {"d 2": 1}
    folder = made(tmp_path, qrels=QRELS + "q 2\td9\t0\nq1\td8\t1\n")
    assert refused(beir.read, folder) == (
        f"{path}:6: question 'q1': relevant: labels of this set name 2 ids that are in no corpus of theirs: 'd8', 'd9'"
    )


def test_a_judged_query_that_is_not_among_the_queries(tmp_path: Path) -> None:
    folder = made(tmp_path, qrels=QRELS + "q9\td1\t1\nq9\td3\t1\n")
    says = f"{folder / 'qrels' / 'test.tsv'}:5: query 'q9' is judged here, and is not among the queries"
    assert refused(beir.read, folder) == says
    skips = Skips(allowed=True)
    assert len(check(beir.stream(folder), skips).questions) == 2
    assert skips.reasons == [says]


def test_a_query_that_is_judged_in_two_splits(tmp_path: Path) -> None:
    folder = made(tmp_path, **{"qrels/train.tsv": "q3\td1\t1\nq1\td1\t1\n"})
    assert refused(beir.read, folder) == (
        f"{folder / 'qrels' / 'train.tsv'}:2: query 'q1' is already judged at {folder / 'qrels' / 'test.tsv'}:2,"
        " in another split"
    )


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"text": "x"}, "Object missing required field `_id`"),
        ({"_id": "", "text": "x"}, "Expected `str` of length >= 1 - at `$._id`"),
        ({"_id": 5, "text": "x"}, "Expected `str`, got `int` - at `$._id`"),
        ({"_id": "d9"}, "Object missing required field `text`"),
        ('{"_id": "d9", "text": "x"', "broken JSON: "),
        ('{"_id": "d9", "text": "x", "metadata": ' + "[" * 100_000, "the JSON is nested too deeply"),
        ({"_id": "d1", "text": "again"}, "memory id 'd1' is already at "),
    ],
)
def test_a_bad_document_in_line_17(tmp_path: Path, row: Any, says: str) -> None:
    documents = [*DOCUMENTS, *({"_id": f"m{n}", "text": "x"} for n in range(4, 17)), row, {"_id": "z", "text": "x"}]
    folder = made(tmp_path, documents=documents)
    message = refused(beir.read, folder)
    assert message.startswith(f"{folder / 'corpus.jsonl'}:17: {says}")
    skips = Skips(allowed=True)
    assert len(gather(beir.stream(folder), skips).corpora["main"]) == 17
    assert skips.reasons == [message]


def test_a_repeated_query(tmp_path: Path) -> None:
    folder = made(tmp_path, queries=[*QUERIES, {"_id": "q1", "text": "again"}])
    path = folder / "queries.jsonl"
    assert refused(beir.read, folder) == (
        f"{path}:4: question 'q1' is already at {path}:1; question ids must be unique"
    )


@pytest.mark.parametrize(
    ("contents", "says"),
    [
        ({"corpus.jsonl": ""}, "corpus.jsonl: holds no memory"),
        ({"queries.jsonl": "", "qrels/test.tsv": ""}, "queries.jsonl: holds no question"),
        ({"qrels/test.tsv": ""}, "queries.jsonl: holds no question; queries without judgements, left out: 3"),
        (
            {"qrels/test.tsv": b"q1\td1\t1\nq\xff\td1\t1\n"},
            "qrels/test.tsv:2: byte 2 is not UTF-8; save the file as UTF-8",
        ),
    ],
)
def test_empty_files_and_other_encodings(tmp_path: Path, contents: dict[str, str | bytes], says: str) -> None:
    folder = made(tmp_path, **contents)
    assert refused(beir.read, folder) == f"{folder}/{says}"


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_missing_files(tmp_path: Path, name: str) -> None:
    (made(tmp_path) / name).unlink()
    assert (
        refused(beir.read, tmp_path) == f"{tmp_path}: a BEIR folder holds corpus.jsonl, queries.jsonl and qrels/*.tsv"
    )


ids = st.text(
    st.characters(codec="utf-8", exclude_characters="\t\r\n", exclude_categories=["Cc", "Zl", "Zp"]),
    min_size=1,
    max_size=5,
).filter(str.strip)


@given(pairs=st.dictionaries(st.tuples(ids, ids), st.integers(-2, 10), min_size=1, max_size=8))
def test_judgements_by_tabs_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, pairs: dict[tuple[str, str], int]
) -> None:
    from recallbench.datasets.readers import qrels

    path = tmp_path_factory.mktemp("qrels") / "x.tsv"
    path.write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t{g}\n" for (q, d), g in pairs.items()), "utf-8"
    )
    found = qrels.parse(path, qrels.three, Skips())
    assert {(q, d): g for q, one in found.items() for d, g in one.grades.items()} == {
        pair: max(grade, 0) for pair, grade in pairs.items()
    }
