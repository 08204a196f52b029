"""TREC style folders made for the test: topics and judgements in their dialects, sound and broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made import BOM, files, jsonl, refused, windows

from recallbench.datasets.model import Question
from recallbench.datasets.readers import trec as trec_set
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import gather
from recallstack.ranking.rows import Memory

DOCS: list[Any] = [
    {"id": "d1", "title": "Tea", "text": "红茶", "url": "x"},
    {"docno": "FT 911", "contents": "green"},
    {"id": "d3", "docno": "other", "text": None, "contents": "both ids: the first counts"},
]
TOPICS = "301\tinternational organized crime\n302\tpolio\n303\tnobody judged this\n"
QRELS = "301 0 d1 2\n301 0 d3 0\n302\t0\tFT 911\t1\n"

BLOCKS = """
<top>
<num> Number: 301
<title> Topic: International
Organized  Crime

<desc> Description:
Identify organizations
</top>

<TOP><NUM>302</NUM><TITLE>polio</TITLE></TOP>
<top>
<num> 303
<title> nobody judged this
"""


def made(folder: Path, docs: list[Any] = DOCS, topics: str | bytes = TOPICS, qrels: str | bytes = QRELS) -> Path:
    return files(folder, {"docs.jsonl": jsonl(docs), "topics.tsv": topics, "qrels.txt": qrels})


def test_a_made_folder(tmp_path: Path) -> None:
    labelled = trec_set.read(made(tmp_path / "tea"))
    assert labelled.info.name == "tea"
    assert labelled.corpora["main"].memories == (
        Memory(id="d1", title="Tea", content="红茶"),
        Memory(id="FT 911", content="green"),
        Memory(id="d3", content="both ids: the first counts"),
    )
    assert labelled.questions == (
        Question(id="301", text="international organized crime", relevant={"d1": 2}, not_relevant=("d3",)),
        Question(id="302", text="polio", relevant={"FT 911": 1}),
    )
    assert labelled.notes == ("queries without judgements, left out: 1",)


@pytest.mark.parametrize("blocks", [BLOCKS, BLOCKS.replace("\n", "\r\n"), BOM + BLOCKS.encode()])
def test_topics_in_blocks(tmp_path: Path, blocks: str | bytes) -> None:
    """The form of TREC's own topic files: with and without closing tags, in any case, over several lines."""
    folder = made(tmp_path)
    (folder / "topics.tsv").unlink()
    files(folder, {"topics.txt": blocks})
    found = [(one.id, one.text) for one in trec_set.read(folder).questions]
    assert found == [("301", "International Organized Crime"), ("302", "polio")]


def test_windows_and_gzip_read_the_same(tmp_path: Path) -> None:
    plain = trec_set.read(made(tmp_path / "plain"))
    raw = {name: (tmp_path / "plain" / name).read_bytes() for name in ("docs.jsonl", "topics.tsv", "qrels.txt")}
    saved = trec_set.read(files(tmp_path / "saved", {name: windows(data) for name, data in raw.items()}))
    packed = trec_set.read(files(tmp_path / "packed", {f"{name}.gz": windows(data) for name, data in raw.items()}))
    for one in (saved, packed):
        assert (one.memories_hash, one.questions) == (plain.memories_hash, plain.questions)


@pytest.mark.parametrize(
    ("qrels", "relevant", "not_relevant"),
    [
        ("301 Q0 d1 1\n", {"d1": 1}, ()),
        ("301\t0\td1\t1\n", {"d1": 1}, ()),
        ("301\t0 d1   1 \n", {"d1": 1}, ()),
        ("301\t0\tFT 911\t1\n", {"FT 911": 1}, ()),
        ("301 0 d1 -2\n301 0 d3 -1\n", {}, ("d1", "d3")),
        ("301 0 d1 1.0\n301 0 d1 1\n", {"d1": 1}, ()),
        ("301 0 d1 0\n301 1 d1 -1\n", {}, ("d1",)),
    ],
)
def test_dialects_of_judgements(
    tmp_path: Path, qrels: str, relevant: dict[str, int], not_relevant: tuple[str, ...]
) -> None:
    question = trec_set.read(made(tmp_path, qrels=qrels)).questions[0]
    assert (question.id, question.relevant, question.not_relevant) == ("301", relevant, not_relevant)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("301 0 d1 0.5", "grade '0.5' is no whole number"),
        ("301 0 d1", "expected a query id, a document id and a grade; ids that hold blanks need tabs"),
        ("301 0 FT 911 1", "expected a query id, a document id and a grade; ids that hold blanks need tabs"),
        ("301 0 d1 high", "grade 'high' is no whole number"),
        ("302 0 d1 99", "grade 99 is over 10"),
        ("301 0 d3 1", "'301' 'd3' is already judged 2, and here 1"),
    ],
)
def test_a_bad_judgement_in_line_17(tmp_path: Path, line: str, says: str) -> None:
    folder = made(tmp_path, qrels="301 0 d3 2\n" + "302 0 d3 1\n" * 15 + line + "\n302 0 d1 1\n")
    message = refused(trec_set.read, folder)
    assert message == f"{folder / 'qrels.txt'}:17: {says}"
    skips = Skips(allowed=True)
    labelled = gather(trec_set.stream(folder), skips)
    assert skips.reasons == [message]
    assert [dict(one.relevant) for one in labelled.questions] == [{"d3": 2}, {"d3": 1, "d1": 1}]


def test_unknown_ids(tmp_path: Path) -> None:
    folder = made(tmp_path, qrels=QRELS + "302 0 d9 1\n")
    path = folder / "qrels.txt"
    assert refused(trec_set.read, folder) == (
        f"{path}:4: question '302': relevant: no memory of corpus 'main' has the id 'd9'"
    )
    folder = made(tmp_path, qrels=QRELS + "399 0 d1 1\n")
    assert refused(trec_set.read, folder) == f"{path}:4: query '399' is judged here, and is not among the queries"


@pytest.mark.parametrize(
    ("topics", "line", "says"),
    [
        (TOPICS + "304 no tab\n", 4, "expected a topic id, a tab and the text"),
        (TOPICS + "\n\t \n304\t \n", 6, "expected a topic id, a tab and the text"),
        (TOPICS + "301\tagain\n", 4, "question '301' is already at "),
        ("<top>\n<num>301\n<title>a\n</top>\n<top>\n<num>302\n</top>", 5, "a topic needs <num> and <title>"),
        ("<top>\n<num>301\n<title>a\n</top>\n<top>\n<title>b\n</top>", 5, "a topic needs <num> and <title>"),
        (TOPICS.encode() + b"304\t\xff\n", 4, "not UTF-8; save the file as UTF-8"),
    ],
)
def test_a_bad_topic(tmp_path: Path, topics: str | bytes, line: int, says: str) -> None:
    folder = made(tmp_path, topics=topics, qrels="301 0 d1 1\n")
    assert refused(trec_set.read, folder).startswith(f"{folder / 'topics.tsv'}:{line}: {says}")


def test_a_topic_of_the_same_number_twice_in_blocks(tmp_path: Path) -> None:
    folder = made(tmp_path, topics=BLOCKS + "</top><top><num>301<title>again</top>", qrels="301 0 d1 1\n")
    path = folder / "topics.tsv"
    assert refused(trec_set.read, folder) == (
        f"{path}:15: question '301' is already at {path}:2; question ids must be unique"
    )


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"text": "x"}, "a document needs id or docno"),
        ({"id": 5}, "Expected `str`, got `int` - at `$.id`"),
        ('{"id": "d9"', "broken JSON: "),
        ({"docno": "d1"}, "memory id 'd1' is already at "),
    ],
)
def test_a_bad_document_in_line_17(tmp_path: Path, row: Any, says: str) -> None:
    docs = [*DOCS, *({"id": f"m{n}", "text": "x"} for n in range(4, 17)), row, {"id": "z"}]
    folder = made(tmp_path, docs=docs)
    message = refused(trec_set.read, folder)
    assert message.startswith(f"{folder / 'docs.jsonl'}:17: {says}")
    skips = Skips(allowed=True)
    assert len(gather(trec_set.stream(folder), skips).corpora["main"]) == 17
    assert skips.reasons == [message]


@pytest.mark.parametrize("name", ["docs.jsonl", "topics.tsv", "qrels.txt"])
def test_empty_and_missing_files(tmp_path: Path, name: str) -> None:
    folder = made(tmp_path)
    (folder / name).write_bytes(BOM)
    want = {
        "docs.jsonl": f"{folder}/docs.jsonl: holds no memory",
        "topics.tsv": f"{folder}/qrels.txt:1: query '301' is judged here, and is not among the queries",
        "qrels.txt": f"{folder}/topics.tsv: holds no question; queries without judgements, left out: 3",
    }
    assert refused(trec_set.read, folder) == want[name]
    (folder / name).unlink()
    assert refused(trec_set.read, folder) == (
        f"{folder}: a TREC folder holds docs.jsonl, topics.tsv (or topics.txt) and qrels.txt"
    )


def test_a_title_may_hold_marks(tmp_path: Path) -> None:
    topics = "<top>\n<num> Number: 1\n<title> alpha < beta &amp; caf&eacute;\n<desc> not this\n</top>\n"
    folder = files(
        tmp_path, {"docs.jsonl": jsonl([{"id": "d1", "text": "x"}]), "topics.txt": topics, "qrels.txt": "1 0 d1 1\n"}
    )
    assert trec_set.read(folder).questions[0].text == "alpha < beta & café"


def test_a_table_of_topics_may_speak_of_top(tmp_path: Path) -> None:
    contents = {
        "docs.jsonl": jsonl([{"id": "d1", "text": "x"}]),
        "topics.txt": "1\tthe <top> tag\n",
        "qrels.txt": "1 0 d1 1\n",
    }
    assert trec_set.read(files(tmp_path, contents)).questions[0].text == "the <top> tag"
