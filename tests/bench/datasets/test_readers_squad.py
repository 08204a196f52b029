"""SQuAD style: the real CMRC file where it is given, and small made ones, sound and broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made import files, refused, windows
from paths import data_folder

from recallbench.datasets.readers import squad
from recallbench.datasets.skips import Skips
from recallbench.datasets.stream import gather
from recallstack.ranking.rows import Memory


def asked(name: str, text: str = "x?", **more: Any) -> dict[str, Any]:
    return {"id": name, "question": text, "answers": [{"text": "a", "answer_start": 0}], **more}


def paragraph(context: str, *qas: Any, **more: Any) -> dict[str, Any]:
    return {"context": context, "qas": list(qas), **more}


ARTICLES = [
    {
        "title": "one",
        "paragraphs": [paragraph("红茶", asked("q1")), paragraph("绿茶", asked("q2"), asked("q3"), id="P2")],
    },
    {
        "title": "two",
        "id": 7,
        "paragraphs": [paragraph("红茶", asked("q4")), paragraph("水", asked("q5", is_impossible=True))],
    },
]


def made(folder: Path, articles: Any = ARTICLES, name: str = "tea.json") -> Path:
    whole = {"version": "v1", "data": articles}
    return files(folder, {name: json.dumps(whole, indent=1, ensure_ascii=False)}) / name


def test_the_real_file() -> None:
    """1,002 questions; two of them have no text in the file, which is told and not mended."""
    labelled = squad.read_cmrc(data_folder())
    raw = json.loads((data_folder() / "cmrc2018_trial.json").read_text(encoding="utf-8"))
    paragraphs = [part for article in raw["data"] for part in article["paragraphs"]]
    assert len(labelled.questions) == 1002
    corpus = labelled.corpora["main"]
    want = {one["id"]: (one["question"], part["context"]) for part in paragraphs for one in part["qas"]}
    found = {
        one.id: (one.text, corpus.memories[corpus.index[name]].content)
        for one in labelled.questions
        for name in one.relevant
    }
    assert found == want
    empty = [name for name, (text, _) in want.items() if not text.strip()]
    assert len(empty) == 2
    assert list(labelled.notes) == [f"question {name!r} has no text" for name in empty]


def test_words_nearly_saturate_the_real_file() -> None:
    """BM25 Success@5 is about 0.99 (the data's own notes), and the trust check says that the set is saturated."""
    from recallbench.evaluation.experiment import Experiment
    from recallstack.ranking.presets import presets

    labelled = squad.read_cmrc(data_folder())
    result = Experiment(labelled, [presets()["bm25-okapi"], presets()["keyword-only"]], ["Success(rel=2)@5"])
    (evaluation,) = result.evaluations
    assert evaluation.values[0].mean() == pytest.approx(0.99, abs=0.01)
    assert [one.level for one in evaluation.checks if one.name == "saturated"] == ["warning"]


def test_a_made_file(tmp_path: Path) -> None:
    labelled = squad.read(made(tmp_path))
    assert labelled.info.name == "tea"
    # Ids are those of the file, else article-paragraph by number; a text that comes again is the same memory.
    assert labelled.corpora["main"].memories == (
        Memory(id="1-1", content="红茶"),
        Memory(id="P2", content="绿茶"),
        Memory(id="2-2", content="水"),
    )
    found = [(one.id, dict(one.relevant), one.expects_empty, one.cluster) for one in labelled.questions]
    assert found == [
        ("q1", {"1-1": 2}, False, "article-1"),
        ("q2", {"P2": 2}, False, "article-1"),
        ("q3", {"P2": 2}, False, "article-1"),
        ("q4", {"1-1": 2}, False, "article-2"),
        ("q5", {}, True, "article-2"),
    ]
    assert labelled.notes == ("paragraph '2-1' has the text of '1-1': one memory",)


def test_windows_gzip_and_one_line_read_the_same(tmp_path: Path) -> None:
    plain = squad.read(made(tmp_path / "a"))
    raw = (tmp_path / "a" / "tea.json").read_bytes()
    flat = json.dumps(json.loads(raw)).encode()
    for folder, data in (("b", windows(raw)), ("c", flat)):
        for name in ("tea.json", "tea.json.gz"):
            other = squad.read(files(tmp_path / folder / name.replace(".", "-"), {name: data}))
            assert (other.questions, other.memories_hash) == (plain.questions, plain.memories_hash)


@pytest.mark.parametrize(
    ("part", "mark", "above", "says"),
    [
        ({"qas": ["BAD"]}, "BAD", 2, "Object missing required field `context`"),
        (paragraph("", asked("BAD")), '"context": ""', 1, "Expected `str` of length >= 1 - at `$.context`"),
        (paragraph("黑茶", {"id": "BAD"}), "BAD", 1, "Object missing required field `question`"),
        (paragraph("黑茶", {"id": 5, "question": "BAD"}), "BAD", 2, "Expected `str`, got `int` - at `$.id`"),
        (paragraph("黑茶", asked("q6"), id="P2"), "黑茶", 1, "paragraph id 'P2' occurs twice; ids must be unique"),
    ],
)
def test_a_bad_part_is_named_with_its_line_and_can_be_skipped(
    tmp_path: Path, part: Any, mark: str, above: int, says: str
) -> None:
    """The line is that of the brace that opens the bad part, `above` the line of the mark."""
    path = made(tmp_path, [*ARTICLES, {"paragraphs": [part, paragraph("白茶", asked("q9"))]}])
    lines = path.read_text(encoding="utf-8").splitlines()
    line = next(n for n, text in enumerate(lines, 1) if mark in text) - above
    assert lines[line - 1].strip() == "{"
    message = refused(squad.read, path)
    assert message == f"{path}:{line}: {says}"
    skips = Skips(allowed=True)
    labelled = gather(squad.stream(path), skips)
    assert skips.reasons == [message]
    assert {one.id for one in labelled.questions} == {"q1", "q2", "q3", "q4", "q5", "q9"}
    assert {one.content for one in labelled.corpora["main"].memories} >= {"红茶", "绿茶", "水", "白茶"}


def test_a_repeated_question(tmp_path: Path) -> None:
    path = made(tmp_path, [*ARTICLES, {"paragraphs": [paragraph("白茶", asked("q1"))]}])
    assert "question 'q1' is already at" in refused(squad.read, path)


def test_an_article_without_paragraphs(tmp_path: Path) -> None:
    path = made(tmp_path, [*ARTICLES, {"title": "three"}])
    assert refused(squad.read, path).endswith("Object missing required field `paragraphs`")
    skips = Skips(allowed=True)
    assert len(gather(squad.stream(path), skips).questions) == 5
    assert skips.count == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ":1: broken JSON: expected an object ({), found the end of the text"),
        ("[]", ":1: broken JSON: expected an object ({), found '['"),
        ('{"version": "1"}', ": holds no array under the key 'data'"),
        ('{"data": []}', ": holds no question"),
        ('{"data": [{"paragraphs": [{"context": "x", "qas": []}]}]}', ": holds no question"),
        ('{"data":\n[\n{"paragraphs": [', ":3: broken JSON: the text ends before this element does"),
    ],
)
def test_files_of_another_shape(tmp_path: Path, text: str, says: str) -> None:
    path = files(tmp_path, {"x.json": text}) / "x.json"
    assert refused(squad.read, path) == f"{path}{says}"


def test_broken_json_in_line_17(tmp_path: Path) -> None:
    path = made(tmp_path)
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[16] += ' "more"'
    path.write_text("\n".join(lines), encoding="utf-8")
    # The comma that must follow is looked for up to the next word, in the next line.
    assert refused(squad.read, path) == f"{path}:17: broken JSON: expecting ',' delimiter"


def test_folders(tmp_path: Path) -> None:
    assert "holds 0 .json files; name the one to read" in refused(squad.read, tmp_path)
    assert "holds no cmrc2018_trial.json" in refused(squad.read_cmrc, tmp_path)
    made(tmp_path)
    assert squad.read(tmp_path).info.name == "tea"
    made(tmp_path, name="two.json")
    assert "holds 2 .json files; name the one to read" in refused(squad.read, tmp_path)
