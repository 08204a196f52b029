"""Entity channel: memories linked to an entity that the query names (recall semantics, section 3)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from recallstack.ranking.candidates import Candidates
from recallstack.ranking.channels.indexes import per_corpus
from recallstack.ranking.channels.retrieved import Retrieved
from recallstack.ranking.rows import Corpus, EntityLink
from recallstack.ranking.specs import EntitySpec

UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Kana, CJK ideographs and Hangul: next to these a word may begin or end anywhere."""
_WORD = rf"[^\W{UNSPACED}]"

Links = list[tuple[int, EntityLink]]


def _pattern(name: str) -> re.Pattern[str]:
    """Matches the (folded) name as a whole word; an edge that is no letter of a spaced script needs no border."""
    before = rf"(?<!{_WORD})" if re.match(_WORD, name[0]) else ""
    after = rf"(?!{_WORD})" if re.match(_WORD, name[-1]) else ""
    return re.compile(before + re.escape(name) + after)


def _index(corpus: Corpus) -> dict[str, tuple[re.Pattern[str], Links]]:
    out: dict[str, tuple[re.Pattern[str], Links]] = {}
    for position, memory in enumerate(corpus.memories):
        for entity, link in memory.entities.items():
            name = entity.strip().casefold()
            if name:
                out.setdefault(name, (_pattern(name), []))[1].append((position, link))
    return out


def retrieve(corpus: Corpus, queries: Sequence[str], spec: EntitySpec, depth: int) -> Retrieved:
    """The channel. A row that is linked to several named entities has the best of their scores.

    A query names an entity if it holds the name as a whole word, whatever the case; between CJK characters, as a
    substring.
    """
    index = per_corpus(corpus, "entity", lambda: _index(corpus))
    score = {"attribute": spec.attribute_score, "relation": spec.relation_score}
    lists = []
    for query in queries:
        text = query.casefold()
        best: dict[int, float] = {}
        for name, (pattern, links) in index.items():
            if name in text and pattern.search(text):
                for position, link in links:
                    best[position] = max(best.get(position, score[link]), score[link])
        lists.append(sorted(best.items(), key=lambda one: (-one[1], one[0]))[:depth])
    return Retrieved(Candidates.from_lists(lists))
