"""`recallbench datasets grow`: plausible rows that nobody asked for, and nothing else changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import ROOT

from recallbench.cli import _run
from recallbench.datasets.model import LabelledSet
from recallbench.datasets.readers import native
from recallbench.datasets.similar import Overlap, trigrams
from recallbench.labelling.grow import grow
from recallbench.labelling.grow_text import pieces
from recallstack.errors import InputError

SET = ROOT / "datasets/mneme-memories"


@pytest.fixture(scope="module")
def original() -> LabelledSet:
    return native.read(SET)


@pytest.fixture(scope="module")
def grown(original: LabelledSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("grow") / "g"
    grow(original, out, 1500, seed=3)
    return out


def test_questions_and_labels_stay_and_generated_rows_are_marked(original: LabelledSet, grown: Path) -> None:
    new = native.read(grown)
    held = original.corpora["main"].memories
    memories = new.corpora["main"].memories
    assert len(memories) == 1500
    assert memories[: len(held)] == held
    assert new.questions == original.questions
    assert all(m.id.startswith("gen-") and "generated" in m.tags for m in memories[len(held) :])
    labelled = {name for q in new.questions for name in (*q.relevant, *q.not_relevant, *q.forbidden)}
    assert not any(name.startswith("gen-") for name in labelled)
    assert "834 generated ones" in new.info.provenance


def test_no_generated_row_is_half_alike_to_a_relevant_memory(original: LabelledSet, grown: Path) -> None:
    """Trigram overlap by hand, over sets: shared by the smaller set."""
    relevant = {name for q in original.questions for name, grade in q.relevant.items() if grade > 0}
    targets = [trigrams(m.text) for m in original.corpora["main"].memories if m.id in relevant]
    for memory in native.read(grown).corpora["main"].memories[-200:]:
        own = trigrams(memory.text)
        assert max(len(own & one) / min(len(own), len(one)) for one in targets) < 0.5, memory.id


def test_the_same_seed_gives_the_same_bytes_and_a_larger_set_begins_with_the_smaller(
    original: LabelledSet, grown: Path, tmp_path: Path
) -> None:
    lines = (grown / "memories.jsonl").read_bytes().splitlines()
    for name, rows, seed in (("same", 1500, 3), ("large", 1600, 3), ("other", 1500, 4)):
        grow(original, tmp_path / name, rows, seed=seed)
    assert (tmp_path / "same/memories.jsonl").read_bytes().splitlines() == lines
    assert (tmp_path / "large/memories.jsonl").read_bytes().splitlines()[:1500] == lines
    assert (tmp_path / "other/memories.jsonl").read_bytes().splitlines() != lines


def test_bad_input_is_refused(
    original: LabelledSet, grown: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="has 666 memories already"):
        grow(original, tmp_path / "x", 10)
    assert _run(["datasets", "grow", str(grown), str(tmp_path / "x"), "--rows", "9999"]) == 2
    assert "is a generated one; grow the original set" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_set_of_too_few_words_is_refused(tmp_path: Path) -> None:
    """Every draw is the one memory itself: the generator must say so, not turn for ever."""
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "dataset.toml").write_text('name = "s"\n')
    (folder / "memories.jsonl").write_text(json.dumps({"id": "a", "content": "green tea is good"}))
    (folder / "questions.jsonl").write_text(json.dumps({"id": "q", "text": "tea", "relevant": {"a": 2}}))
    with pytest.raises(InputError, match="too few different words"):
        grow(native.read(folder), tmp_path / "x", 5)


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_pieces_lose_nothing(text: str) -> None:
    assert "".join(piece.text for piece in pieces(text)) == text


def test_overlap_by_hand() -> None:
    # "abcd": abc bcd; "xabcdx": xab abc bcd cdx: 2 shared by the smaller 2.
    assert Overlap(["xabcdx", "zzzz"]).greatest("abcd") == 1.0
    # "abce": abc bce against the four of "xabcdx": 1 of 2.
    assert Overlap(["xabcdx"]).greatest("abce") == 0.5
    assert Overlap([]).greatest("abc") == 0.0
