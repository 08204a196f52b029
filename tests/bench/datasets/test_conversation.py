"""Questions asked with their conversation."""

from __future__ import annotations

import pytest

from recallbench.datasets.conversation import asked_with_context, conversation_text
from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import Question, SetInfo
from recallbench.evaluation.experiment import Experiment
from recallstack.errors import InputError
from recallstack.ranking.rows import Corpus, Memory
from recallstack.systems.preretrieval.contract import ContextEntry

MEMORIES = [Memory(id="a", content="The importer needs port 7001"), Memory(id="b", content="The exporter needs quiet")]


def asked(*context: ContextEntry) -> Question:
    return Question(id="q", text="same error on the other one", context=context, relevant={"a": 2})


def test_the_history_says_what_the_task_is_about() -> None:
    """Task alone shares no word with the memory; with the history the importer is named."""
    question = asked(ContextEntry("user", "the importer does not start"), ContextEntry("assistant", "Which port?"))
    labelled = hashed(SetInfo(name="talk"), {"main": Corpus.of("main", MEMORIES)}, [question])
    alone = Experiment(labelled, ["bm25-lucene"], ["R@1"], allow_zero=["bm25-lucene"])
    together = Experiment(labelled, ["bm25-lucene"], ["R@1"], query="context")
    assert alone.table()["mean"].tolist() == [0.0]
    assert together.table()["mean"].tolist() == [1.0]
    assert asked_with_context(labelled).questions_hash != labelled.questions_hash
    assert asked_with_context(labelled).labels_hash == labelled.labels_hash


def test_the_bounds_are_those_of_pre_retrieval() -> None:
    """Of a tool 200 characters, of an entry 800; the task comes last."""
    text = conversation_text(asked(ContextEntry("assistant", "y" * 900), ContextEntry("tool", "z" * 900, "shell")))
    assert text == "\n".join(["y" * 800, "z" * 200, "same error on the other one"])


def test_a_set_without_conversations_says_so() -> None:
    labelled = hashed(SetInfo(name="plain"), {"main": Corpus.of("main", MEMORIES)}, [asked()])
    with pytest.raises(InputError, match="no question has a conversation"):
        asked_with_context(labelled)
