"""`recallbench datasets convert`: what goes in comes out, whole or not at all, in bounded memory."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import os
import resource
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made import files, jsonl, refused
from paths import ROOT, data_folder

from recallbench.cli import _run
from recallbench.datasets import native
from recallbench.datasets.convert import convert
from recallbench.datasets.detect import READERS, detect, stream_of
from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import LabelledSet, Question, Session, SetInfo
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import Stream, corpora_of, gather
from recallstack.preretrieval.contract import ContextEntry
from recallstack.rows import Memory, Source

BEIR = {
    "corpus.jsonl": jsonl([{"_id": "d1", "title": "Tea", "text": "红茶"}, {"_id": "d 2", "text": "green"}]),
    "queries.jsonl": jsonl([{"_id": "q1", "text": "tea?"}, {"_id": "q2", "text": "nobody judged this"}]),
    "qrels/test.tsv": "q1\td1\t2\nq1\td 2\t0\n",
}
TREC = {
    "docs.jsonl": jsonl([{"id": "d1", "text": "tea"}]),
    "topics.tsv": "1\ttea?\n",
    "qrels.txt": "1 0 d1 1\n",
}
CSV = {"questions.csv": "question,relevant\nx,is\n", "notes/public.md": "# Tea\n\nit is green\n"}
SQUAD = {
    "version": "1",
    "data": [{"paragraphs": [{"context": "tea", "qas": [{"id": "q1", "question": "x"}]}]}],
}
LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question": "x",
        "haystack_session_ids": ["s1"],
        "haystack_sessions": [[{"role": "user", "content": "tea", "has_answer": True}]],
        "answer_session_ids": ["s1"],
    }
]


def same(one: LabelledSet, other: LabelledSet) -> None:
    assert one.questions == other.questions
    assert {name: corpus.memories for name, corpus in one.corpora.items()} == {
        name: corpus.memories for name, corpus in other.corpora.items()
    }
    assert list(one.corpora) == list(other.corpora)
    hashes = ("memories_hash", "labels_hash", "questions_hash")
    assert [getattr(one, name) for name in hashes] == [getattr(other, name) for name in hashes]


def info_but_provenance(info: SetInfo) -> dict[str, object]:
    return {**dataclasses.asdict(info), "provenance": ""}


def error_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line on standard error of a call that must exit with 2."""
    code = _run([str(one) for one in arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    return err.strip().removeprefix("recallbench: error: ")


# Round trips.


@pytest.mark.parametrize(
    ("form", "contents"),
    [
        ("beir", BEIR),
        ("trec", TREC),
        ("csv", CSV),
        ("squad", {"tea.json": json.dumps(SQUAD)}),
        ("longmemeval", {"longmemeval_s.json": json.dumps(LONGMEMEVAL)}),
    ],
)
def test_each_format_is_told_from_its_names_and_reads_back_equal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, contents: dict[str, str]
) -> None:
    source = files(tmp_path / "source", contents)
    assert _run(["datasets", "convert", str(source), str(tmp_path / "out")]) == 0
    assert f"from the {form} form" in capsys.readouterr().out
    direct, converted = gather(READERS[form](source)), native.read(tmp_path / "out")
    same(direct, converted)
    assert info_but_provenance(converted.info) == info_but_provenance(direct.info)
    assert converted.info.provenance.endswith(f"converted from the {form} form")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"dataset.toml", "memories.jsonl", "questions.jsonl"}
    assert {path.name for path in tmp_path.iterdir()} == {"source", "out"}


@pytest.mark.parametrize(("name", "form"), [("locomo10.json", "locomo"), ("cmrc2018_trial.json", "cmrc2018")])
def test_the_real_files_read_back_equal(tmp_path: Path, name: str, form: str) -> None:
    source = data_folder() / name
    assert _run(["datasets", "convert", str(source), str(tmp_path / "out")]) == 0
    same(gather(READERS[form](source)), native.read(tmp_path / "out"))


@pytest.mark.parametrize("name", sorted(path.parent.name for path in (ROOT / "datasets").glob("*/dataset.toml")))
def test_the_shipped_sets_read_back_equal(tmp_path: Path, name: str) -> None:
    """Notes become rows, snippets become ids; the second conversion writes the bytes of the first."""
    source = ROOT / "datasets" / name
    assert _run(["datasets", "convert", str(source), str(tmp_path / "one")]) == 0
    assert _run(["datasets", "convert", str(tmp_path / "one"), str(tmp_path / "two")]) == 0
    direct, converted = native.read(source), native.read(tmp_path / "one")
    same(direct, converted)
    assert dataclasses.asdict(converted.info) == dataclasses.asdict(direct.info)
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


text = st.text(st.characters(codec="utf-8"), max_size=8)
texts = st.lists(text, max_size=2).map(tuple)
name = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)
# Fixed offsets: a local time that a clock change skips equals no time at all (PEP 495), not even itself read back.
offset = st.integers(-23 * 60, 23 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
moment = st.none() | st.datetimes(timezones=st.none() | offset)


@st.composite
def labelled_sets(draw: st.DrawFn) -> LabelledSet:
    memory = st.builds(
        Memory,
        id=name,
        corpus=st.sampled_from(["main", "b c"]),
        title=text,
        content=text,
        importance=st.floats(1, 5),
        quality=st.floats(0, 1),
        archived=st.booleans(),
        updated_at=moment,
        agent_scope=st.none() | text,
        tags=texts,
        entities=st.dictionaries(text, st.sampled_from(["attribute", "relation"]), max_size=2),
        source=st.none() | st.builds(Source, file=text, line=st.none() | st.integers(1, 9)),
    )
    memories = draw(st.lists(memory, min_size=1, max_size=5, unique_by=lambda one: (one.corpus, one.id)))
    corpora = corpora_of(memories)
    entry = st.builds(ContextEntry, role=st.sampled_from(["user", "assistant", "tool"]), text=text)

    def question(number: int) -> Question:
        corpus = draw(st.sampled_from(sorted(corpora)))
        ids = st.sampled_from([one.id for one in corpora[corpus].memories])
        some = st.lists(ids, max_size=2, unique=True).map(tuple)
        return Question(
            id=f"{draw(name)}{number}",
            text=draw(text),
            context=draw(st.lists(entry, max_size=2).map(tuple)),
            corpus=corpus,
            lang=draw(text),
            categories=draw(texts),
            cluster=draw(st.none() | text),
            split=draw(st.sampled_from([None, "dev", "test"])),
            now=draw(moment),
            relevant=draw(st.dictionaries(ids, st.integers(0, 10), max_size=3)),
            not_relevant=draw(some),
            forbidden=draw(some),
            judged_by=draw(texts),
            session=draw(st.builds(Session, agent_scope=st.none() | text, channel=st.none() | text)),
            expects_empty=draw(st.booleans()),
            note=draw(text),
        )

    questions = [question(number) for number in range(draw(st.integers(1, 4)))]
    info = SetInfo(
        name=draw(text.filter(str.strip)),
        languages=draw(st.lists(text, max_size=2).map(tuple)),
        licence=draw(text),
        provenance=draw(text),
        default_rel=draw(st.integers(1, 10)),
        depth=draw(st.integers(1, 99)),
    )
    return hashed(info, corpora, questions)


def stream_of_set(labelled: LabelledSet) -> Stream:
    def memories(_: Skips) -> Iterator[tuple[str, Memory]]:
        return (("here", memory) for corpus in labelled.corpora.values() for memory in corpus.memories)

    return Stream(labelled.info, memories, lambda _: (("here", one) for one in labelled.questions), "m", "q")


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(labelled=labelled_sets())
def test_any_set_reads_back_equal(tmp_path_factory: pytest.TempPathFactory, labelled: LabelledSet) -> None:
    out = tmp_path_factory.mktemp("any") / "out"
    convert(stream_of_set(labelled), out, form="native")
    other = native.read(out)
    same(labelled, other)
    assert dataclasses.asdict(other.info) == dataclasses.asdict(labelled.info)


# Formats.


def test_names_that_speak_for_several_formats_or_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = files(tmp_path / "both", {**BEIR, **TREC})
    assert refused(detect, both).startswith(f"{both}: may be beir or trec; give --format, one of native, ")
    assert _run(["datasets", "convert", str(both), str(tmp_path / "out"), "--format", "trec"]) == 0
    capsys.readouterr()
    nothing = files(tmp_path / "nothing", {"readme.md": "x"})
    assert refused(detect, nothing).startswith(f"{nothing}: its names do not tell the format; give --format, one of ")
    assert refused(stream_of, both, "bier") == "no format 'bier'; did you mean 'beir'?"
    assert refused(stream_of, tmp_path / "none") == f"{tmp_path / 'none'}: no such file or folder"


@pytest.mark.parametrize(
    ("file", "content", "form"),
    [
        ("locomo10.json", "[]", "locomo"),
        ("locomo10.json.gz", "[]", "locomo"),
        ("cmrc2018_trial.json", "{}", "cmrc2018"),
        ("longmemeval_oracle.json", "[]", "longmemeval"),
        ("dev-v2.0.json", ' {"data": []}', "squad"),
        ("dev-v2.0.json.gz", ' {"data": []}', "squad"),
        ("other.json", "[]", None),
        ("other.txt", "{}", None),
    ],
)
def test_the_format_of_a_file(tmp_path: Path, file: str, content: str, form: str | None) -> None:
    path = files(tmp_path, {file: content}) / file
    if form is None:
        assert "its names do not tell the format" in refused(detect, path)
    else:
        assert detect(path) == form


def test_a_folder_with_a_table_and_a_toml_is_a_table(tmp_path: Path) -> None:
    assert detect(files(tmp_path, {**CSV, "dataset.toml": 'name = "x"'})) == "csv"


def test_long_mem_eval_by_turns(tmp_path: Path) -> None:
    source = files(tmp_path, {"longmemeval_s.json": json.dumps(LONGMEMEVAL)})
    assert _run(["datasets", "convert", str(source), str(tmp_path / "out"), "--format", "longmemeval-turns"]) == 0
    assert native.read(tmp_path / "out").questions[0].relevant == {"s1_1": 1}


# Bad input.


BAD = {
    "corpus.jsonl": BEIR["corpus.jsonl"] + '{"_id": 5}\n{"_id": "d1", "text": "again"}\n',
    "qrels/test.tsv": BEIR["qrels/test.tsv"] + "q1\td1\tbad\nq1\td9\t1\n",
}


def test_a_bad_row_ends_it_with_its_place_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also the bad row that is only found while rows are written (a repeated id)."""
    for number, (file, content, says) in enumerate(
        [
            ("corpus.jsonl", BEIR["corpus.jsonl"] + '{"_id": 5}\n', ":3: Expected `str`, got `int` - at `$._id`"),
            ("corpus.jsonl", BEIR["corpus.jsonl"] + '{"_id": "d1", "text": ""}\n', ":3: memory id 'd1' is already at "),
            ("qrels/test.tsv", "q1\td1\tbad\n", ":1: grade 'bad' is no whole number"),
            (
                "qrels/test.tsv",
                "q1\td9\t1\n",
                ":1: question 'q1': relevant: no memory of corpus 'main' has the id 'd9'",
            ),
        ]
    ):
        source = files(tmp_path / str(number) / "source", {**BEIR, file: content})
        message = error_of(capsys, "datasets", "convert", source, tmp_path / str(number) / "out")
        assert message.startswith(f"{source / file}{says}")
        assert [path.name for path in (tmp_path / str(number)).iterdir()] == ["source"]


def test_skip_bad_counts_and_says_what_it_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = files(tmp_path / "source", {**BEIR, **BAD}), tmp_path / "out"
    assert _run(["datasets", "convert", str(source), str(out), "--skip-bad"]) == 0
    lines = capsys.readouterr().out.splitlines()
    corpus, qrels = source / "corpus.jsonl", source / "qrels" / "test.tsv"
    assert lines == [
        "note: queries without judgements, left out: 1",
        f"skipped: {qrels}:3: grade 'bad' is no whole number",
        f"skipped: {corpus}:3: Expected `str`, got `int` - at `$._id`",
        f"skipped: {qrels}:4: question 'q1': relevant: no memory of corpus 'main' has the id 'd9'",
        f"skipped: {corpus}:4: memory id 'd1' is already at {corpus}:1; ids must be unique in a corpus",
        f"{out}: 2 memories and 1 questions from the beir form; 4 bad rows or labels skipped",
    ]
    labelled = native.read(out)
    assert labelled.info.provenance == "converted from the beir form, 4 bad rows or labels left out"
    same(gather(READERS["beir"](files(tmp_path / "clean", BEIR))), labelled)


def test_json_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = files(tmp_path / "source", {**BEIR, **BAD})
    assert _run(["datasets", "convert", str(source), str(tmp_path / "out"), "--skip-bad", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert len(values.pop("reasons")) == 4
    notes = ["queries without judgements, left out: 1"]
    assert values == {"format": "beir", "memories": 2, "questions": 1, "skipped": 4, "notes": notes}


def test_skip_bad_on_a_sound_source_says_that_nothing_was_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = files(tmp_path / "source", BEIR)
    assert _run(["datasets", "convert", str(source), str(tmp_path / "out"), "--skip-bad"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("; 0 bad rows or labels skipped")


# Whole or not at all.


@pytest.mark.parametrize("there", ["folder", "empty folder", "file", "dangling link"])
def test_what_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str], there: str) -> None:
    source, out = files(tmp_path / "source", BEIR), tmp_path / "out"
    if there == "file":
        out.write_text("mine")
    elif there == "dangling link":
        out.symlink_to(tmp_path / "nowhere")
    else:
        out.mkdir()
    if there == "folder":
        (out / "mine.txt").write_text("mine")
    message = error_of(capsys, "datasets", "convert", source, out)
    assert message == f"{out}: is there already; name a folder that is not"
    assert {path.name for path in tmp_path.iterdir()} == {"source", "out"}
    assert there != "folder" or [path.name for path in out.iterdir()] == ["mine.txt"]


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    def memories(_: Skips) -> Iterator[tuple[str, Memory]]:
        yield "x:1", Memory(id="a")
        if list(tmp_path.glob(".out.*.partial/set/memories.jsonl")):
            raise KeyboardInterrupt
        yield "x:2", Memory(id="b")

    stream = Stream(SetInfo("x"), memories, lambda _: iter([("x:1", Question(id="q", text="x"))]), "m", "q")
    with pytest.raises(KeyboardInterrupt):
        convert(stream, tmp_path / "out", form="native")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    def memories(_: Skips) -> Iterator[tuple[str, Memory]]:
        (tmp_path / "out").mkdir(exist_ok=True)
        yield "x:1", Memory(id="a")

    stream = Stream(SetInfo("x"), memories, lambda _: iter([("x:1", Question(id="q", text="x"))]), "m", "q")
    assert "appeared while it was made" in refused(lambda: convert(stream, tmp_path / "out", form="native"))
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]
    assert list((tmp_path / "out").iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = files(tmp_path / "source", BEIR)
    (tmp_path / "file").write_text("x")
    message = error_of(capsys, "datasets", "convert", source, tmp_path / "file" / "out")
    assert (
        message == f"{tmp_path / 'file' / 'out'}: cannot be written: {tmp_path / 'file'} is no folder; nothing was kept"
    )


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    """The kernel refuses to grow a file over 2 KB (RLIMIT_FSIZE): the same failure of write() as a full disk."""
    source = files(
        tmp_path / "source", {**BEIR, "corpus.jsonl": jsonl({"_id": f"d{n}", "text": ""} for n in range(999))}
    )
    (source / "qrels" / "test.tsv").write_text("q1\td1\t1\n")

    def limit() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-m", "recallbench", "datasets", "convert", str(source), str(out)],
        capture_output=True,
        text=True,
        preexec_fn=limit,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"recallbench: error: {out}: cannot be written: File too large; nothing was kept\n"
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_the_folder_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    convert(stream_of(files(tmp_path / "source", BEIR))[1], tmp_path / "out", form="beir")
    (tmp_path / "plain").mkdir()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_the_toml_holds_what_is_said_and_no_defaults(tmp_path: Path) -> None:
    convert(stream_of(files(tmp_path / "tea", BEIR))[1], tmp_path / "out", form="beir")
    assert tomllib.loads((tmp_path / "out" / "dataset.toml").read_text()) == {
        "name": "tea",
        "description": "BEIR collection",
        "provenance": "converted from the beir form",
        "primary_measure": "nDCG@10",
        "default_rel": 1,
        "depth": 100,
        "memory_unit": "a document: title, text",
    }


def test_progress_is_told_for_both_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recallbench.datasets import convert as module

    monkeypatch.setattr(module, "EVERY", 2)
    memories = [Memory(id=f"m{number}") for number in range(5)]
    labelled = hashed(SetInfo("x"), corpora_of(memories), [Question(id="q", text="x")])
    told: list[tuple[str, int]] = []
    convert(stream_of_set(labelled), tmp_path / "out", form="native", progress=lambda what, n: told.append((what, n)))
    assert told == [("checked", 2), ("checked", 4), ("written", 2), ("written", 4)]


def test_help_names_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["datasets", "convert", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert all(form in words for form in READERS)
    assert "--skip-bad" in words


# Memory.

ROWS, QUERIES, WORDS = 200_000, 500, 110
PEAK = 80 * 2**20
"""Bytes. The interpreter with NumPy takes about 40 MB; the corpus is over twice the bound on disk, more in memory."""

_LAUNCH = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "recallbench", *sys.argv[1:]], capture_output=True, text=True)
scale = 1 if sys.platform == "darwin" else 1024
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * scale)
print(done.stdout, done.stderr)
"""
"""The peak of a child, seen by a small process: one started by the tests would begin with their own peak."""


def test_a_corpus_of_200_000_rows_is_never_held(tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    files(source, {"queries.jsonl": jsonl({"_id": f"q{n}", "text": f"question {n}"} for n in range(QUERIES))})
    files(source, {"qrels/test.tsv": "".join(f"q{n}\td{n * 397}\t1\n" for n in range(QUERIES))})
    with (source / "corpus.jsonl").open("w") as file:
        for number in range(ROWS):
            row = {"_id": f"d{number}", "title": f"title {number}", "text": f"word{number % 977:04d} " * WORDS}
            file.write(json.dumps(row) + "\n")
    size = (source / "corpus.jsonl").stat().st_size
    done = subprocess.run(
        [sys.executable, "-S", "-c", _LAUNCH, "datasets", "convert", str(source), str(out)],
        capture_output=True,
        text=True,
        check=True,
    )
    code, peak = map(int, done.stdout.split("\n")[0].split())
    assert code == 0, done.stdout
    assert f"{ROWS} memories and {QUERIES} questions" in done.stdout
    assert size > 2.4 * PEAK
    assert peak < PEAK
    with (out / "memories.jsonl").open("rb") as lines:
        decoder = msgspec.json.Decoder(Memory)
        for number, line in enumerate(lines):
            assert decoder.decode(line).id == f"d{number}"
    assert number == ROWS - 1
