"""The history of a question: read, written back, hashed, and refused in one line when it is broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recallbench.datasets.hashing import questions_hash
from recallbench.datasets.labels import QuestionRow
from recallbench.datasets.model import LabelledSet, Question
from recallbench.datasets.readers.native import read
from recallstack.errors import InputError
from recallstack.systems.preretrieval.contract import ContextEntry

HISTORY = [
    {"role": "user", "text": "the ingest pod restarts"},
    {"role": "tool", "text": "OOMKilled", "name": "kubectl"},
    {"role": "assistant", "text": "它被杀了：内存不够。"},
]


def load(folder: Path, context: Any) -> LabelledSet:
    row = {"id": "q", "text": "同样的错，修一下", "context": context, "relevant": {"a": 2}}
    (folder / "dataset.toml").write_text('name = "t"\n', encoding="utf-8")
    (folder / "memories.jsonl").write_text('{"id": "a", "content": "limit 512Mi"}\n', encoding="utf-8")
    (folder / "questions.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    return read(folder)


def test_a_history_comes_back_as_it_was_written(tmp_path: Path) -> None:
    (question,) = load(tmp_path, HISTORY).questions
    assert question.context == (
        ContextEntry("user", "the ingest pod restarts"),
        ContextEntry("tool", "OOMKilled", "kubectl"),
        ContextEntry("assistant", "它被杀了：内存不够。"),
    )
    written = msgspec.json.encode(question)
    assert json.loads(written)["context"] == HISTORY
    assert msgspec.json.decode(written, type=Question) == question
    assert load(tmp_path, json.loads(written)["context"]).questions == (question,)


def test_only_a_history_changes_the_hash_of_what_is_asked(tmp_path: Path) -> None:
    # SHA-256 of {"corpus":"main","id":"q","now":null,"session":{},"text":"x"} and a line feed, by sha256sum:
    # what the hash of a question was before questions had histories.
    before = "b1c31df4d2a49c5b35afea491616f677e6c3b71e62da0a8de358e6a4665a78f3"
    assert questions_hash([Question(id="q", text="x")]) == before
    hashes = {load(tmp_path, part).questions_hash for part in ([], HISTORY, HISTORY[:2], HISTORY[::-1])}
    assert len(hashes) == 4


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"role": "system", "text": "x"}, "context[1].role is 'system'; known: user, assistant, tool"),
        ({"role": "asistant", "text": "x"}, "context[1].role is 'asistant'; did you mean 'assistant'?"),
    ],
)
def test_a_bad_role_is_one_line_that_names_the_place(tmp_path: Path, entry: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, [HISTORY[0], entry])
    assert str(caught.value) == f"{tmp_path / 'questions.jsonl'}:1: question 'q': {message}"


def test_an_entry_without_text_or_with_an_unknown_field_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"questions\.jsonl:1: .*missing required field `text`"):
        load(tmp_path, [{"role": "user"}])
    with pytest.raises(InputError, match=r"questions\.jsonl:1: .*unknown field `tool`"):
        load(tmp_path, [{"role": "tool", "text": "x", "tool": "kubectl"}])


def test_a_row_keeps_the_fields_of_a_question() -> None:
    assert set(QuestionRow.__struct_fields__) == set(Question.__struct_fields__)
