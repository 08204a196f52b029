"""Known-item questions drawn from memories: a first set, to be replaced by questions that people really ask.

Each question is made of the words of one memory that are rarest among all memories, in their order, or of its title,
and that memory is the one right answer (Azzopardi, de Rijke and Balog 2007, Building simulated queries for known-item
topics). Such questions share their words with the answer, so that they favour keyword search: they notice that recall
broke, and say little about paraphrase.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence

from recallbench.datasets.model import Question
from recallbench.labelling.grow_text import VALUES, pieces
from recallstack.errors import InputError
from recallstack.ranking.rows import Memory

WORDS = 4
"""Words of a question."""
LEAST = 6
"""Different words that a memory must have to be asked for: a heading or `ok` is the answer to nothing."""
LEAST_QUESTIONS = 10


def known_items(memories: Sequence[Memory], count: int, seed: int = 0) -> list[Question]:
    """At most `count` questions, each about another memory, in the order of the memories.

    Questions about chunks of one file are of one cluster. Raises InputError where fewer than LEAST_QUESTIONS memories
    have enough words to be told from the others.
    """
    words = [_words(memory.text) for memory in memories]
    held = Counter(word for one in words for word in set(one))
    texts = Counter(memory.text.strip() for memory in memories)
    able = [
        place
        for place, memory in enumerate(memories)
        if len(set(words[place])) >= LEAST and texts[memory.text.strip()] == 1
    ]
    drawn = sorted(random.Random(seed).sample(able, len(able)), key=lambda place: memories[place].corpus)
    asked: set[str] = set()
    found: dict[int, Question] = {}
    for place in _in_turn(drawn, memories):
        if len(found) == count:
            break
        memory = memories[place]
        text = _title(memory, words[place]) or _rarest(words[place], held)
        if text and text.casefold() not in asked:
            asked.add(text.casefold())
            found[place] = _question(memory, text)
    if len(found) < LEAST_QUESTIONS:
        raise InputError(
            f"only {len(found)} of {len(memories)} memories have {LEAST} different words of their own; a starter set "
            f"needs {LEAST_QUESTIONS}: write questions by hand (recallbench datasets convert), or name a built-in set"
        )
    ordered = [found[place] for place in sorted(found)]
    width = len(str(len(ordered)))
    import msgspec

    return [msgspec.structs.replace(one, id=f"q-{number:0{width}d}") for number, one in enumerate(ordered, 1)]


def _in_turn(places: Sequence[int], memories: Sequence[Memory]) -> list[int]:
    """The drawn places, file by file in turn: a hundred questions of one long file are less than ten of ten files."""
    rank: Counter[str] = Counter()
    keyed = []
    for order, place in enumerate(places):
        source = memories[place].source
        file = source.file if source is not None else str(place)
        keyed.append((rank[file], order, place))
        rank[file] += 1
    return [place for _, _, place in sorted(keyed)]


def _words(text: str) -> list[str]:
    return [piece.text for piece in pieces(text) if piece.kind and piece.kind not in VALUES - {"identifier"}]


def _title(memory: Memory, words: Sequence[str]) -> str:
    """The title, where it says enough to be asked for and is not all that there is."""
    title = (memory.title or "").strip()
    own = set(_words(title))
    return " ".join(title.split()) if 2 <= len(own) <= 2 * WORDS and len(set(words) - own) >= LEAST // 2 else ""


def _rarest(words: Sequence[str], held: Counter[str]) -> str:
    """The rarest different words, in the order in which they stand."""
    first = {word: place for place, word in reversed(list(enumerate(words)))}
    weights = {word: math.log(held[word]) - 1e-6 * len(word) for word in first}
    chosen = sorted(first, key=lambda word: (weights[word], first[word]))[:WORDS]
    return " ".join(sorted(chosen, key=first.__getitem__))


def _question(memory: Memory, text: str) -> Question:
    source = memory.source
    return Question(
        id="q",
        text=text,
        corpus=memory.corpus,
        lang="zh" if any("\u4e00" <= char <= "\u9fff" for char in text) else "en",
        categories=("starter",),
        cluster=source.file if source is not None else None,
        relevant={memory.id: 2},
        judged_by=("recallbench init",),
    )
