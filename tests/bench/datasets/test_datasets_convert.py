"""`recallbench datasets convert`: formats, bad input, and a folder that is whole or not there."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from made import BEIR, CSV, LONGMEMEVAL, TREC, files, jsonl, refused, same, stream_of_set

from recallbench.cli import _run
from recallbench.datasets.convert import convert
from recallbench.datasets.detect import READERS, detect, stream_of
from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import Question, SetInfo
from recallbench.datasets.readers import native
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import Stream, corpora_of, gather
from recallstack.ranking.rows import Memory


def error_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line on standard error of a call that must exit with 2."""
    code = _run([str(one) for one in arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    return err.strip().removeprefix("recallbench: error: ")


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
