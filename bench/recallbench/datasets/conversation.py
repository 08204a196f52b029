"""Questions that come with a conversation: asked with their task alone, or with the conversation too."""

from __future__ import annotations

import dataclasses

import msgspec

from recallbench.datasets.hashing import questions_hash
from recallbench.datasets.model import LabelledSet, Question
from recallstack.errors import InputError
from recallstack.systems.preretrieval.context import fold
from recallstack.systems.preretrieval.log import Event

_TYPES = {"user": "user/message", "assistant": "assistant/message", "tool": "tool/result"}


def conversation_text(question: Question) -> str:
    """What pre-retrieval sends in query mode context, a line an entry: the bounded history, then the task."""
    log = [Event(_TYPES[entry.role], {"text": entry.text, "name": entry.name}) for entry in question.context]
    return "\n".join(entry.text for entry in fold(log, [question.text]))


def asked_with_context(labelled: LabelledSet) -> LabelledSet:
    """The set with the bounded conversation in the place of each question's text.

    Raises InputError for a set in which no question has a conversation.
    """
    if not any(question.context for question in labelled.questions):
        raise InputError(f"set {labelled.info.name!r}: no question has a conversation; ask with --query task")
    questions = tuple(
        msgspec.structs.replace(one, text=conversation_text(one)) if one.context else one for one in labelled.questions
    )
    return dataclasses.replace(labelled, questions=questions, questions_hash=questions_hash(questions))
