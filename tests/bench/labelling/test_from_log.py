"""`recallbench datasets from-log`: a log becomes a set to judge, masked, with nothing labelled."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path

import pytest
from made import jsonl

from recallbench.cli import _run
from recallbench.datasets.readers import native

ROWS = [
    {
        "query": "who is ann@x.example?",
        "returned": [{"id": "m1", "text": "Ann, ann@x.example"}, {"id": "m2", "title": "Tea", "text": "13812345678"}],
        "used": ["m1"],
        "score": 0.3,
    },
    {"query": " who  is ann@x.example? ", "returned": ["m2"], "used": ["m1"], "session": {"channel": "owner"}},
    {"query": "who is  ann@x.example?", "returned": ["m2", {"id": "/home/a/n.md#3", "text": "a note"}]},
    {"query": "tea", "returned": []},
]


def log_of(folder: Path, rows: list[object]) -> Path:
    path = folder / "log.jsonl"
    path.write_text(jsonl(rows), encoding="utf-8")
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = _run(["datasets", "from-log", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_log_becomes_an_unlabelled_masked_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, log_of(tmp_path, ROWS), tmp_path / "set")
    assert (code, err) == (0, "")
    assert "3 questions from 4 recalls, 3 memories" in out
    labelled = native.read(tmp_path / "set")
    # Rows 1 and 3 are one question (white space evened out); row 2 was asked over a channel, which makes it another.
    assert [(q.text, q.session.channel, q.note) for q in labelled.questions] == [
        ("who is <email-1>?", None, "asked 2 times; used: m1 (1)"),
        ("who is <email-1>?", "owner", "asked once; used: m1 (1)"),
        ("tea", None, "asked once"),
    ]
    assert not any(q.relevant or q.not_relevant or q.forbidden or q.expects_empty for q in labelled.questions)
    assert {m.id: m.content for m in labelled.corpora["main"].memories} == {
        "m1": "Ann, <email-1>",
        "m2": "<phone-1>",
        "<path-1>": "a note",
    }
    with (tmp_path / "set/pool.csv").open(encoding="utf-8-sig", newline="") as file:
        pairs = {(row["question"], row["memory"]) for row in csv.DictReader(file)}
    assert pairs == {
        ("log-0001", "m1"),
        ("log-0001", "m2"),
        ("log-0001", "<path-1>"),
        ("log-0002", "m1"),
        ("log-0002", "m2"),
    }
    for path in (tmp_path / "set").iterdir():  # nothing that was masked is left anywhere
        for secret in ("ann@x", "13812345678", "/home/a"):
            assert secret not in path.read_text(encoding="utf-8"), path


def test_the_pool_can_be_judged_and_applied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, log_of(tmp_path, ROWS), tmp_path / "set")
    pool = tmp_path / "set/pool.csv"
    pool.write_text(pool.read_text(encoding="utf-8-sig").replace("log-0001,m1,,", "log-0001,m1,2,"), encoding="utf-8")
    assert _run(["datasets", "judge", str(tmp_path / "set"), str(pool), "--apply", "me"]) == 0
    assert native.read(tmp_path / "set").questions[0].relevant == {"m1": 2}


def test_sqlite_with_other_names_and_a_memories_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE other (x)")
        connection.execute("CREATE TABLE recalls (q TEXT, returned TEXT, used TEXT, time TEXT)")
        connection.execute("INSERT INTO recalls VALUES ('tea', '[\"m1\"]', NULL, '2026-01-02T03:04:05Z')")
    connection.close()
    before = path.read_bytes()
    memories = tmp_path / "memories.jsonl"
    rows = [{"id": "m1", "content": "green", "source": {"file": "/home/x"}}, {"id": "m2", "content": "never returned"}]
    memories.write_text(jsonl(rows), encoding="utf-8")
    code, _, err = run(capsys, path, tmp_path / "a", "--memories", memories, "--field", "query=q")
    assert (code, err) == (
        2,
        f"recallbench: error: {path}: name the table of recalls with --table; it has other, recalls\n",
    )
    arguments = ("--memories", memories, "--field", "query=q", "--table", "recalls")
    assert run(capsys, path, tmp_path / "a", *arguments)[0] == 0
    labelled = native.read(tmp_path / "a")
    assert [m.id for m in labelled.corpora["main"].memories] == ["m1", "m2"]  # all, so that more can be found
    assert "/home" not in (tmp_path / "a/memories.jsonl").read_text()
    assert path.read_bytes() == before


def test_a_sample_is_seeded_and_in_the_order_of_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"query": f"question {n}", "returned": [{"id": "m", "text": "x"}]} for n in range(30)]
    log = log_of(tmp_path, rows)
    texts = {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert run(capsys, log, tmp_path / name, "--questions", 5, "--seed", seed)[0] == 0
        texts[name] = [q.text for q in native.read(tmp_path / name).questions]
    assert len(texts["a"]) == 5
    assert texts["a"] == sorted(texts["a"], key=lambda text: int(text.split()[1]))
    assert texts["a"] == texts["b"] != texts["c"]
    assert (tmp_path / "a/questions.jsonl").read_bytes() == (tmp_path / "b/questions.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"returned": []}, "no field 'query'; name the log's own with --field query=NAME"),
        ({"query": "x", "returnd": []}, "did you mean 'returnd'?"),
        ({"query": " ", "returned": []}, "the query is empty"),
        ({"query": "x", "returned": ["m9"]}, "no text of memory 'm9'; give --memories FILE"),
        ({"query": "x", "returned": [], "used": ["m9"]}, "no text of memory 'm9'"),
        ({"query": "x", "returned": [{"id": ""}]}, "length >= 1"),
        ({"query": "x", "returned": "m1"}, "Expected `array`, got `str`"),
        ({"query": "x", "returned": [], "session": {"channel": 3}}, "Expected `str | null`, got `int`"),
        ([1], "a row is an object with query and returned"),
    ],
)
def test_bad_rows_are_one_line_or_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: object, says: str
) -> None:
    log = log_of(tmp_path, [ROWS[0], row])
    code, _, err = run(capsys, log, tmp_path / "set")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"recallbench: error: {log}:2: ")
    assert says in err
    assert not (tmp_path / "set").exists()
    code, out, _ = run(capsys, log, tmp_path / "set", "--skip-bad", "--json")
    assert (code, json.loads(out)["skipped"]) == (0, 1)


def test_other_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = log_of(tmp_path, ROWS)
    for arguments, says in (
        ((tmp_path / "none", tmp_path / "o"), "cannot be read: No such file or directory"),
        ((log, tmp_path / "o", "--field", "qury=q"), "did you mean 'query'?"),
        ((log, tmp_path / "o", "--table", "t"), "--table is for SQLite logs"),
        ((log, tmp_path), "is there already"),
        ((log_of(tmp_path / "..", []), tmp_path / "o"), "no recall in it"),
    ):
        code, _, err = run(capsys, *arguments)
        assert (code, err.count("\n")) == (2, 1)
        assert says in err


def test_the_session_is_masked_and_still_matches_the_memories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = {"workspace_scope": "/home/alice/acme", "agent_scope": "alice@x.example", "user": "u1"}
    memories = tmp_path / "m.jsonl"
    memories.write_text(jsonl([{"id": "1", "content": "x", "workspace_scope": "/home/alice/acme"}]), encoding="utf-8")
    rows = [{"query": "q", "returned": [1], "session": session, "time": "2026-01-02T03:04:05Z"}]
    assert run(capsys, log_of(tmp_path, rows), tmp_path / "set", "--memories", memories)[0] == 0
    labelled = native.read(tmp_path / "set")
    [question] = labelled.questions
    [memory] = labelled.corpora["main"].memories
    assert question.session.workspace_scope == memory.workspace_scope == "<path-1>"
    assert question.session.agent_scope == "<email-1>"
    assert question.now is not None
    assert question.now.isoformat() == "2026-01-02T03:04:05+00:00"
    for path in (tmp_path / "set").iterdir():
        assert "alice" not in path.read_text(encoding="utf-8")


def test_rows_as_real_logs_have_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ids that are numbers, `content` for the text, a session that is only an id."""
    rows = [{"query": "q", "returned": [{"id": 7, "content": "seven"}], "used": [7], "session": "sess-1"}]
    assert run(capsys, log_of(tmp_path, rows), tmp_path / "set")[0] == 0
    [memory] = native.read(tmp_path / "set").corpora["main"].memories
    assert (memory.id, memory.content) == ("7", "seven")


def test_a_log_that_returned_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = log_of(tmp_path, [{"query": "q", "returned": []}])
    code, _, err = run(capsys, log, tmp_path / "set")
    assert (code, err) == (2, f"recallbench: error: {log}: its recalls returned no memory; give --memories FILE\n")


def test_a_text_that_is_not_utf8_is_one_bad_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (query TEXT, returned TEXT)")
        connection.execute("INSERT INTO t VALUES (CAST(x'ff' AS TEXT), '[]')")
        connection.execute('INSERT INTO t VALUES (\'tea\', \'[{"id": "m", "text": "x"}]\')')
    connection.close()
    assert "table t, row 1: a text is not UTF-8" in run(capsys, path, tmp_path / "a")[2]
    assert run(capsys, path, tmp_path / "a", "--skip-bad")[0] == 0


def test_a_log_in_use_is_read_whole_and_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows that are still in the write-ahead log count, and nobody but the owner of the log folds them in."""
    live, copy = tmp_path / "live.db", tmp_path / "copy.db"
    connection = sqlite3.connect(live)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (query TEXT, returned TEXT)")
    connection.execute('INSERT INTO t VALUES (\'tea\', \'[{"id": "m", "text": "x"}]\')')
    connection.commit()
    for end in ("", "-wal"):  # as it is while its owner has it open
        copy.with_name(copy.name + end).write_bytes(live.with_name(live.name + end).read_bytes())
    connection.close()
    before = copy.read_bytes(), copy.with_name("copy.db-wal").read_bytes()
    assert run(capsys, copy, tmp_path / "set")[0] == 0
    assert native.read(tmp_path / "set").questions[0].text == "tea"
    assert (copy.read_bytes(), copy.with_name("copy.db-wal").read_bytes()) == before
