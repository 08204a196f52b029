"""What `systems check` gives a system and asks it: two small corpora, a question, texts that break careless code."""

from __future__ import annotations

import hashlib

from recallbench.datasets.model import LabelledSet, Question, Session, SetInfo
from recallstack.ranking.rows import Corpus, Memory

FIRST, SECOND, EMPTY = "check-a", "check-b", "check-c"

_A = (
    Memory(id="a-1", title="release window", content="The release window is Friday at three", importance=4),
    Memory(id="a-2", content="发布窗口改到周五下午三点", tags=("release",)),
    Memory(id="a-3", content='He said: "50 % off",\nthen 😀 and a\u2028line\u0085separator, C:\\temp'),
    Memory(id="a-4", content="the harbour light is white " + "word " * 4_000),
    Memory(id="a 5/ü", content="ids may hold blanks, slashes and letters of any script"),
)
_B = (
    Memory(id="b-1", content="Cats sleep through the release party"),
    Memory(id="b-2", content="The window of the kitchen faces north"),
)
SET = LabelledSet(
    SetInfo("systems-check"),
    {FIRST: Corpus.of(FIRST, _A), SECOND: Corpus.of(SECOND, _B), EMPTY: Corpus.of(EMPTY, ())},
    (),
)
ODD = {
    "no word": "",
    "quotes": 'what\'s "that" `then`',
    "query syntax": '"release" AND (window OR NEAR) *: -x title:y',
    "emoji": "😀 👩‍👩‍👧 when?",
    "line breaks": "release\nwindow\u2028and\u0085more",
    "Chinese": "发布窗口几点",
    "a percent sign and a null": "100 %\x00 _ \\",
    "8,000 characters": "release " * 1_000,
}
"""What is odd -> the text of the question."""


def question(text: str, name: str = "c-1", session: bool = False) -> Question:
    """A question of the check."""
    who = Session(agent_scope="check", workspace_scope="check", channel="check") if session else Session()
    return Question(id=name, text=text, corpus=FIRST, session=who)


WORDED = (question("When is the release window, Friday?"), "a-1")
"""A question, and the memory whose words it has."""


def _vector(text: str) -> tuple[float, ...]:
    return tuple(byte / 255 - 0.5 for byte in hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8])


VECTORS = {text.strip(): _vector(text) for text in (*(m.text for m in _A), *(m.content for m in _A), WORDED[0].text)}
"""Embeddings that mean nothing: they show whether they are asked for."""
