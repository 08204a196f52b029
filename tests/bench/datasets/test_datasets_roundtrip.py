"""What `recallbench datasets convert` writes reads back equal to its source, in memory that does not grow with it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made import BEIR, CSV, LONGMEMEVAL, SQUAD, TREC, files, jsonl, same, stream_of_set
from paths import ROOT, data_folder

from recallbench.cli import _run
from recallbench.datasets.convert import convert
from recallbench.datasets.detect import READERS
from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import LabelledSet, Question, Session, SetInfo
from recallbench.datasets.readers import native
from recallbench.datasets.stream import corpora_of, gather
from recallstack.ranking.rows import Memory, Source
from recallstack.systems.preretrieval.contract import ContextEntry


def info_but_provenance(info: SetInfo) -> dict[str, object]:
    return {**dataclasses.asdict(info), "provenance": ""}


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


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(labelled=labelled_sets())
def test_any_set_reads_back_equal(tmp_path_factory: pytest.TempPathFactory, labelled: LabelledSet) -> None:
    out = tmp_path_factory.mktemp("any") / "out"
    convert(stream_of_set(labelled), out, form="native")
    other = native.read(out)
    same(labelled, other)
    assert dataclasses.asdict(other.info) == dataclasses.asdict(labelled.info)


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
