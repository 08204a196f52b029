"""Sets from a spreadsheet: tables as spreadsheets save them, sound and broken."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from made import BOM, files, refused, windows

from recallbench.datasets.model import Question
from recallbench.datasets.readers import csv_table as csv_set
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import gather
from recallstack.ranking.rows import Memory

MEMORIES = (
    "id,content,title,importance,archived,tags,updated_at,corpus\n"
    'm 1,"the release window, as agreed,\nis ""Friday""",Ship,5,,ops; urgent,2026-01-02T03:04:05Z,\n'
    "m2,窗口改到周五,,,true,,,\n"
    "m3,another corpus,,,,,,other\n"
)
QUESTIONS = (
    'question,relevant,helps,category\nwhen do we ship?,m 1; 周五,,exact;identifier\n"comma, and\nline end",,window,\n'
)


def made(folder: Path, questions: str | bytes = QUESTIONS, memories: str | bytes = MEMORIES) -> Path:
    return files(folder, {"questions.csv": questions, "memories.csv": memories})


def test_a_made_folder(tmp_path: Path) -> None:
    labelled = csv_set.read(made(tmp_path / "tea", questions=QUESTIONS.replace(",window,", ",agreed,")))
    assert labelled.info.name == "tea"
    assert labelled.corpora["main"].memories == (
        Memory(
            id="m 1",
            content='the release window, as agreed,\nis "Friday"',
            title="Ship",
            importance=5,
            tags=("ops", "urgent"),
            updated_at=dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        ),
        Memory(id="m2", content="窗口改到周五", archived=True),
    )
    assert labelled.corpora["other"].memories == (Memory(id="m3", content="another corpus", corpus="other"),)
    # A label is the id of a memory where there is one, else words of one memory; 1 for those that only help.
    assert labelled.questions == (
        Question(id="q1", text="when do we ship?", relevant={"m 1": 2, "m2": 2}, categories=("exact", "identifier")),
        Question(id="q2", text="comma, and\nline end", relevant={"m 1": 1}),
    )


def test_every_column_of_a_question(tmp_path: Path) -> None:
    header = ",".join(csv_set.QUESTION_COLUMNS)
    row = "what?,m3,,, another ,a1,other,en,exact,k,dev,2026-05-01T09:00:00Z,false,by hand"
    labelled = csv_set.read(made(tmp_path, questions=f"{header}\n{row}\n"))
    assert labelled.questions == (
        Question(
            id="a1",
            text="what?",
            corpus="other",
            lang="en",
            categories=("exact",),
            cluster="k",
            split="dev",
            now=dt.datetime(2026, 5, 1, 9, tzinfo=dt.UTC),
            relevant={"m3": 2},
            forbidden=("m3",),
            note="by hand",
        ),
    )
    empty = csv_set.read(made(tmp_path, questions="question,expects_empty\nwhat?,true\n")).questions[0]
    assert empty.expects_empty is True


def test_a_label_that_is_an_id_and_words_of_another_memory_is_the_id(tmp_path: Path) -> None:
    folder = made(tmp_path, "question,relevant\nx,one\n", "id,content\none,first\ntwo,one and two\n")
    assert csv_set.read(folder).questions[0].relevant == {"one": 2}


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("start", [b"", BOM])
def test_line_ends_of_every_system(tmp_path: Path, end: str, start: bytes) -> None:
    def saved(text: str) -> bytes:
        return start + text.replace("\n", end).encode() + (end * 3).encode()

    questions = "question,relevant\nx,m1\n\ny,m2\n"
    labelled = csv_set.read(made(tmp_path, saved(questions), saved("id,content\nm1,a\n , \nm2,b\n")))
    assert [(one.id, dict(one.relevant)) for one in labelled.questions] == [("q1", {"m1": 2}), ("q2", {"m2": 2})]
    assert [one.id for one in labelled.corpora["main"].memories] == ["m1", "m2"]


def test_windows_reads_the_same(tmp_path: Path) -> None:
    questions = QUESTIONS.replace(",window,", ",agreed,")
    plain = csv_set.read(made(tmp_path / "a", questions))
    other = csv_set.read(made(tmp_path / "b", windows(questions.encode()), windows(MEMORIES.encode())))
    assert [one.relevant for one in plain.questions] == [one.relevant for one in other.questions]


def test_notes_and_memory_lines_serve_too(tmp_path: Path) -> None:
    folder = files(
        tmp_path / "a", {"questions.csv": "question,relevant\nx,window is\n", "notes/a.md": "- the window is\n"}
    )
    assert csv_set.read(folder).questions[0].relevant == {"a.md#1": 2}
    folder = files(tmp_path / "b", {"questions.csv": "question,relevant\nx,m1\n", "memories.jsonl": '{"id": "m1"}\n'})
    files(folder, {"dataset.toml": 'name = "named"'})
    assert csv_set.read(folder).info.name == "named"


@pytest.mark.parametrize(
    ("questions", "line", "says"),
    [
        ("question,relevnt\nx,m2\n", 1, "unknown column 'relevnt'; did you mean 'relevant'?"),
        ("id,relevant\nx,m2\n", 1, "column 'question' is missing"),
        ("question,note,note\nx,a,b\n", 1, "column 'note' occurs twice"),
        ("question;relevant\nx;m2\n", 1, "the columns are not separated by commas; save the table as CSV with commas"),
        (
            "question\trelevant\nx\tm2\n",
            1,
            "the columns are not separated by commas; save the table as CSV with commas",
        ),
        ("\n\nquestion,relevnt\n", 3, "unknown column 'relevnt'; did you mean 'relevant'?"),
        ('question,relevant\n"a\nb",m2\nx,m2,more\n', 4, "3 cells under 2 columns"),
        ("question,relevant\nx,m2\n,m2\n", 3, "the cell under question is empty"),
        (
            'question,relevant\n"a\n\nb",m2\nx,m9\n',
            5,
            "question 'q2': relevant: no memory has this id or holds the snippet",
        ),
        (
            "question,forbidden\nx,cat\n",
            2,
            "question 'q1': forbidden: no memory has this id or holds the snippet 'cat'",
        ),
        ("question,split\nx,train\n", 2, "Invalid enum value 'train' - at `$.split`"),
        ("question,now\nx,yesterday\n", 2, "Invalid RFC3339 encoded datetime - at `$.now`"),
        ("question,expects_empty\nx,perhaps\n", 2, "Expected `bool`, got `str` - at `$.expects_empty`"),
        ("question,id\nx,a\ny,a\n", 3, "question 'a' is already at "),
        ("question,corpus\nx,othr\n", 2, "question 'q1': no memory is in corpus 'othr'; did you mean 'other'?"),
        ('question,relevant\nx,m2\n"never closed,m2\n\n', 3, "broken CSV: unexpected end of data"),
        (b"question,relevant\nx,m2\n\xff,m2\n", 3, "byte 1 is not UTF-8; save the file as UTF-8"),
    ],
)
def test_a_bad_question(tmp_path: Path, questions: str | bytes, line: int, says: str) -> None:
    folder = made(tmp_path, questions)
    assert refused(csv_set.read, folder).startswith(f"{folder / 'questions.csv'}:{line}: {says}")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("m9", "1 cells under 8 columns"),
        ("m2,again,,,,,,", "memory id 'm2' is already at "),
        (",no id,,,,,,", "Object missing required field `id`"),
        ("m9,x,,7,,,,", "Expected `float` <= 5.0 - at `$.importance`"),
        ("m9,x,,high,,,,", "Expected `float`, got `str` - at `$.importance`"),
        ("m9,x,,,maybe,,,", "Expected `bool`, got `str` - at `$.archived`"),
    ],
)
def test_a_bad_memory_in_line_17_can_be_skipped(tmp_path: Path, row: str, says: str) -> None:
    """Line 17 of the file: the table has a cell of two lines, and a row's line is where it begins."""
    more = "".join(f"n{number},x,,,,,,\n" for number in range(11))
    folder = made(tmp_path, "question,relevant\nx,m2\n", MEMORIES + more + row + "\nlast,x,,,,,,\n")
    message = refused(csv_set.read, folder)
    assert message.startswith(f"{folder / 'memories.csv'}:17: {says}")
    skips = Skips(allowed=True)
    assert len(gather(csv_set.stream(folder), skips).corpora["main"]) == 14
    assert skips.reasons == [message]


def test_bad_questions_and_labels_can_be_skipped(tmp_path: Path) -> None:
    questions = "question,relevant,split\nx,m2; m9,\ny,m2,train\nz,m2,test,more\nw,m3,dev\n"
    folder = made(tmp_path, questions)
    skips = Skips(allowed=True)
    labelled = gather(csv_set.stream(folder), skips)
    assert [(one.id, dict(one.relevant)) for one in labelled.questions] == [("q1", {"m2": 2}), ("q3", {})]
    # Lines 3 and 4 cannot be read as questions; m9 is nothing, and m3 is in another corpus than q3.
    assert [reason.split(": ")[0].rpartition(":")[2] for reason in skips.reasons] == ["3", "4", "2", "5"]


@pytest.mark.parametrize(
    ("questions", "memories", "says"),
    [
        ("", MEMORIES, "questions.csv: holds no question"),
        ("question\n\n,\n".replace(",", ""), MEMORIES, "questions.csv: holds no question"),
        ("question\nx\n", "", "memories.csv: holds no memory"),
        ("question\nx\n", BOM + b"id,content\r\n\r\n", "memories.csv: holds no memory"),
    ],
)
def test_empty_tables(tmp_path: Path, questions: str, memories: str | bytes, says: str) -> None:
    folder = made(tmp_path, questions, memories)
    assert refused(csv_set.read, folder) == f"{folder}/{says}"


def test_missing_files(tmp_path: Path) -> None:
    assert refused(csv_set.read, tmp_path).startswith(
        f"{tmp_path / 'questions.csv'}: no such file; its columns are question"
    )
    files(tmp_path, {"questions.csv": "question\nx\n"})
    assert "has neither memories.jsonl nor notes/" in refused(csv_set.read, tmp_path)


def test_a_day_is_a_time_of_asking(tmp_path: Path) -> None:
    folder = files(tmp_path, {"questions.csv": "question,relevant,now\nx,is,2026-05-01\n", "notes/a.md": "it is\n"})
    now = csv_set.read(folder).questions[0].now
    assert now is not None
    assert now.isoformat() == "2026-05-01T00:00:00+00:00"


def test_memories_from_one_place_only(tmp_path: Path) -> None:
    contents = {"questions.csv": "question\nx\n", "memories.csv": "id,content\na,b\n", "notes/a.md": "it is\n"}
    assert "has both memories.csv and notes/; keep one" in refused(csv_set.read, files(tmp_path, contents))


@pytest.mark.parametrize("snippet", ["kettle is in the LEFT", "the left cupboard, see map", "kettle is in"])
def test_words_as_a_reader_sees_them(snippet: str, tmp_path: Path) -> None:
    """Marks of Markdown, link targets and case are not what somebody copies from a page."""
    note = "- The **kettle** is in the ==left== cupboard, see [map](https://x.example/m)\n"
    contents = {"questions.csv": f'question,relevant\nx,"{snippet}"\n', "notes/a.md": note, "notes/.trash/b.md": note}
    assert list(csv_set.read(files(tmp_path, contents)).questions[0].relevant.values()) == [2]
