"""The semantic list: what is embedded, what is compared, and what is never computed."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from notes_support import START_NS, Table, check_invariants, config_of, ids, write
from numpy.typing import NDArray

from recallstack.errors import InputError
from recallstack.ranking.embedders import resolve_embedder
from recallstack.systems.notes import Notes, Switches
from recallstack.systems.notes import vectors as vectors_module
from recallstack.systems.notes.vectors import QWEN3_INSTRUCTION

# No text shares a token with another, so that the semantic list alone answers.
TABLE = {"one": [1.0, 0.0], "two": [0.6, 0.8], "three": [0.0, 1.0], "near": [1.0, 0.1]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "notes", {"a.md": "one\n\ntwo", "b.md": "three"}, START_NS)
    return tmp_path


def test_order_by_cosine_without_a_shared_word(folder: Path) -> None:
    # Cosines to (1, 0.1)/1.005: one 0.995, two 0.677, three 0.0995.
    with Notes(config_of(folder), Table(TABLE)) as notes:
        assert notes.sync().embedded == 3
        assert ids(notes, "near") == ["a.md#1", "a.md#3", "b.md#1"]


def test_no_embedder_is_keywords_only_and_no_error(folder: Path) -> None:
    with Notes(config_of(folder)) as notes:
        report = notes.sync()
        assert (report.embedded, report.warnings) == (0, ())
        assert ids(notes, "near") == []
        found = notes.search("two")
        assert [hit.id for hit in found.hits] == ["a.md#3"]
        assert found.remarks == ()


def test_an_embedder_that_comes_later_finds_everything_embedded_once(folder: Path) -> None:
    write(folder / "notes", {"c.md": "one"}, START_NS)
    with Notes(config_of(folder)) as notes:
        notes.sync()
    table = Table(TABLE)
    with Notes(config_of(folder), table) as notes:
        found = notes.search("near")
        assert (found.hits, found.remarks) == ((), ())  # no vectors yet: no list, no error, nothing to mend
        assert notes.sync().embedded == 3  # three distinct texts in four chunks
        assert sorted(table.documents) == ["one", "three", "two"]
        assert set(ids(notes, "near")[:2]) == {"a.md#1", "c.md#1"}
        assert notes.sync().embedded == 0


def test_the_matrix_is_read_again_after_a_change_by_another_process(folder: Path) -> None:
    with Notes(config_of(folder), Table(TABLE)) as notes, Notes(config_of(folder), Table(TABLE)) as other:
        notes.sync()
        assert ids(notes, "near")[0] == "a.md#1"
        write(folder / "notes", {"a.md": "two"}, START_NS + 1)
        other.sync()
        assert ids(notes, "near") == ["a.md#1", "b.md#1"]


def test_the_matrix_is_read_again_after_another_process_only_forgot(folder: Path) -> None:
    with Notes(config_of(folder), Table(TABLE)) as notes:
        notes.sync()
        assert ids(notes, "near") == ["a.md#1", "a.md#3", "b.md#1"]
        (folder / "notes/a.md").unlink()
        with Notes(config_of(folder)) as other:
            assert other.sync().deleted == ("a.md",)
        assert ids(notes, "near") == ["b.md#1"]


def test_the_matrix_is_read_again_after_another_process_only_embedded(folder: Path) -> None:
    with Notes(config_of(folder), Table(TABLE)) as notes:
        notes.sync()
        write(folder / "notes", {"c.md": "near"}, START_NS)
        with Notes(config_of(folder)) as other:  # no embedder: the text is there, its vector is not
            other.sync()
        assert ids(notes, "one") == ["a.md#1", "a.md#3", "b.md#1"]
        with Notes(config_of(folder), Table(TABLE)) as other:
            assert other.sync().embedded == 1
        # Cosines to (1, 0): one 1, near 0.995, two 0.6, three 0; "one" is first by its word too.
        assert ids(notes, "one") == ["a.md#1", "c.md#1", "a.md#3", "b.md#1"]


def test_another_model_that_comes_first_while_we_embed_is_not_mixed_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process embeds one text by another model of the same dimension, and fails at the next."""
    monkeypatch.setattr(vectors_module, "BATCH", 1)

    class Failing(Table):
        def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float64]:
            if self.documents:
                raise RuntimeError
            return super().encode_documents(texts)

    class Slow(Table):
        def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float64]:
            if not self.documents:
                with Notes(config_of(folder), Failing(TABLE, "other")) as other:
                    assert other.sync().embedded == 1
            return super().encode_documents(texts)

    with Notes(config_of(folder), Slow(TABLE)) as notes:
        report = notes.sync()
        assert report.embedded == 0
        assert "vectors of 'other', not of 'table'" in report.warnings[0]
        assert notes.status().vectors == 1


def test_a_text_without_embedding_is_in_no_list_and_not_embedded_again(folder: Path) -> None:
    table = Table({**TABLE, "three": [0.0, 0.0], "nothing": [0.0, 0.0]})
    with Notes(config_of(folder), table) as notes:
        notes.sync()
        assert ids(notes, "near") == ["a.md#1", "a.md#3"]
        assert ids(notes, "nothing") == []
        assert notes.sync().embedded == 0


@pytest.mark.parametrize("switch", ["", "dimension_mismatch_computes"])
def test_another_dimension_drops_the_semantic_list_and_says_so(folder: Path, switch: str) -> None:
    switches = Switches(**({switch: True} if switch else {}))
    with Notes(config_of(folder), Table(TABLE)) as notes:
        notes.sync()
    wide = Table({"near": [0.0, 9.0, 1.0], "two": [9.0, 9.0, 9.0]})
    with Notes(config_of(folder, switches=switches), wide) as notes:
        found = notes.search("near")
        if switch:  # cut to (0, 9): three is nearest, which nobody meant
            assert found.hits[0].id == "b.md#1"
            return
        assert found.hits == ()
        assert found.remarks == (
            "vectors of 'table' have 3 dimensions, the index has 2: no semantic list until the index is built anew",
        )
        assert ids(notes, "two") == ["a.md#3"]  # keywords go on
        write(folder / "notes", {"c.md": "near"})
        report = notes.sync()
        assert report.embedded == 0
        assert "have 3 dimensions" in report.warnings[0]
        assert notes.status().without_vector == 1
        assert notes.rebuild().embedded == 4
        assert notes.status().dimensions == 3


@pytest.mark.parametrize("switch", ["", "model_change_computes"])
def test_another_model_of_the_same_dimension_is_not_compared(folder: Path, switch: str) -> None:
    switches = Switches(**({switch: True} if switch else {}))
    with Notes(config_of(folder), Table(TABLE, "old")) as notes:
        notes.sync()
    with Notes(config_of(folder, switches=switches), Table(TABLE, "new")) as notes:
        write(folder / "notes", {"c.md": "near"})
        report, found = notes.sync(), notes.search("near")
        if switch:
            assert report.embedded == 1
            assert len(found.hits) == 4
            return
        assert report.embedded == 0
        assert "'old', not of 'new'" in report.warnings[0]
        assert [hit.id for hit in found.hits] == ["c.md#1"]
        assert "'old', not of 'new'" in found.remarks[0]
        assert notes.rebuild().embedded == 4
        assert notes.status().embedder == "new"


class Failing(Table):
    """Fails on chosen texts."""

    def __init__(self, bad: Sequence[str]) -> None:
        super().__init__(TABLE)
        self.bad = bad

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float64]:
        if set(texts) & set(self.bad):
            raise ConnectionError("with the text: " + " ".join(texts))
        return super().encode_documents(texts)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return self.encode_documents(texts)


def test_a_failing_embedder_loses_nothing_and_the_next_sync_repays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "BATCH", 1)
    embedder = Failing(["two"])
    with Notes(config_of(folder), embedder) as notes:
        report = notes.sync()
        assert report.chunks == 3
        assert report.embedded == 1
        assert report.warnings == (
            "embedder 'table' failed with ConnectionError; 2 texts have no vector yet, the next sync tries again",
        )
        found = notes.search("two")
        assert [hit.id for hit in found.hits] == ["a.md#3"]  # by keyword
        assert found.remarks == ("embedder 'table' failed with ConnectionError; searched by keywords only",)
        embedder.bad = []
        assert notes.sync().embedded == 2
        assert ids(notes, "near") == ["a.md#1", "a.md#3", "b.md#1"]
    check_invariants(folder / "index.db")


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (np.ones((1, 2)), "shape (1, 2) for 3 texts"),
        (np.ones(3), "shape (3,)"),
        (np.ones((3, 0)), "shape (3, 0)"),
        (np.array([[1.0], [np.nan], [2.0]]), "not finite"),
    ],
)
def test_an_embedder_that_returns_no_vectors(folder: Path, returned: NDArray[np.float64], said: str) -> None:
    table = Table(TABLE)
    table.encode_documents = lambda texts: returned  # type: ignore[method-assign]
    with Notes(config_of(folder), table) as notes:
        report = notes.sync()
        assert report.embedded == 0
        assert said in report.warnings[0]


def test_an_input_error_of_the_embedder_is_the_users_to_mend(folder: Path) -> None:
    def missing(texts: Sequence[str]) -> NDArray[np.float64]:
        raise InputError("install it")

    table = Table(TABLE)
    table.encode_documents = missing  # type: ignore[method-assign]
    with Notes(config_of(folder), table) as notes, pytest.raises(InputError, match="install it"):
        notes.sync()
    with Notes(config_of(folder)) as notes:
        assert ids(notes, "two") == ["a.md#3"]


def test_a_text_forgotten_while_it_was_embedded_leaves_no_vector(folder: Path) -> None:
    table = Table(TABLE)
    real = table.encode_documents

    def slow(texts: Sequence[str]) -> NDArray[np.float64]:
        (folder / "notes/b.md").unlink()
        with Notes(config_of(folder)) as other:
            other.sync()
        return real(texts)

    table.encode_documents = slow  # type: ignore[method-assign]
    with Notes(config_of(folder), table) as notes:
        notes.sync()
    check_invariants(folder / "index.db")
    with sqlite3.connect(folder / "index.db") as connection:
        assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (2,)
    connection.close()


def test_an_embedder_that_is_fitted_on_a_corpus_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="'lsa' is fitted"):
        Notes(config_of(folder), resolve_embedder("lsa"))


def test_hash3_end_to_end(folder: Path) -> None:
    with Notes(config_of(folder), resolve_embedder("hash3")) as notes:
        assert notes.sync().embedded == 3
        assert ids(notes, "two")[0] == "a.md#3"


@pytest.mark.parametrize(
    ("switch", "queries", "first_document"),
    [
        ("", ["Instruct: near"], "one"),
        ("instruction_on_documents", ["Instruct: near"], "Instruct: one"),
    ],
)
def test_an_instruction_is_put_before_queries_only(
    folder: Path, switch: str, queries: list[str], first_document: str
) -> None:
    table = Table({**TABLE, "Instruct: near": [1.0, 0.0], "Instruct: one": [1.0, 1.0]})
    table.table.update({f"Instruct: {text}": vector for text, vector in TABLE.items()})
    switches = Switches(**({switch: True} if switch else {}))
    with Notes(config_of(folder, query_instruction="Instruct: ", switches=switches), table) as notes:
        notes.sync()
        notes.search("near")
    assert table.queries == queries
    assert table.documents[0] == first_document


def test_no_instruction_unless_it_is_set(folder: Path) -> None:
    for switches, asked in (
        (Switches(), "near"),
        (Switches(instruction_left_in_place=True), QWEN3_INSTRUCTION + "near"),
    ):
        table = Table({**TABLE, QWEN3_INSTRUCTION + "near": [0.0, 1.0]})
        with Notes(config_of(folder, switches=switches), table) as notes:
            notes.sync()
            notes.search("near")
        assert table.queries == [asked]
        assert "one" in table.documents or not table.documents


def test_an_instruction_is_no_keyword(folder: Path) -> None:
    config = config_of(folder, query_instruction="three: ")
    for switches, expected in (
        (Switches(), ["a.md#3"]),
        (Switches(instruction_in_keywords=True), ["a.md#3", "b.md#1"]),
    ):
        with Notes(config_of(folder, query_instruction=config.query_instruction, switches=switches)) as notes:
            notes.sync()
            assert sorted(ids(notes, "two")) == expected
