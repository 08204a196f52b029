"""From a returned row to memories of the set: by id, by source ids, by a map of ids, or by text."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from recallbench.datasets.model import LabelledSet
from recallbench.systems.base import Match
from recallbench.systems.faults import Fault, one_line
from recallbench.systems.wire import Hit
from recallstack.errors import InputError

SHORTEST = 8
"""Characters of the shortest memory that is looked for inside a longer text (choice): `yes` is in every other one. The
words of a label are looked for however short: they stand in one memory alone."""

IdMap = Mapping[str, Sequence[str]]
"""The system's id -> ours; a row that was merged stands for several."""


def plain(text: str) -> str:
    """A text as it is compared: runs of white space are one space, no case."""
    return " ".join(text.split()).casefold()


class Matcher:
    """Matches the rows of one corpus.

    id_map: the system's ids, as it gave them or as a file says. given: whether the system was given this corpus and
    nothing else; a row of another corpus is then a fault, and otherwise a row that counts for nothing.
    """

    def __init__(self, labelled: LabelledSet, corpus: str, id_map: IdMap | None = None, given: bool = True) -> None:
        self._corpus, self._given = corpus, given
        own = labelled.corpora[corpus]
        self._ours = set(own.index)
        self._elsewhere = {
            name: other for other, rows in labelled.corpora.items() if other != corpus for name in rows.index
        }
        self._map = {theirs: tuple(one for one in ours if one in self._ours) for theirs, ours in (id_map or {}).items()}
        self._equal: dict[str, list[str]] = {}
        for memory in own.memories:
            # A system is given title and content, and may keep either alone.
            for text in dict.fromkeys((plain(memory.text), plain(memory.content))):
                if text:
                    self._equal.setdefault(text, []).append(memory.id)
        self._parts: list[tuple[str, str]] = []
        for memory in own.memories:
            words = [plain(one) for one in labelled.snippets.get((corpus, memory.id), ())]
            whole = plain(memory.content)
            self._parts += [(memory.id, one) for one in (*words, *([whole] if len(whole) >= SHORTEST else []))]
        self._foreign = {
            plain(memory.content): other
            for other, rows in labelled.corpora.items()
            if other != corpus
            for memory in rows.memories
        }
        self._found: dict[str, tuple[str, ...]] = {}

    def ids(self, hit: Hit) -> tuple[tuple[str, ...], Match]:
        """(memories that a row stands for, how they were found); none where it is a row of nobody's.

        Raises Fault for an id that says nothing and comes without a text, and for a row of another corpus.
        """
        if self._given:
            self._not_elsewhere(hit)
        if hit.source_ids:
            return self._sources(hit)
        if hit.id is not None:
            if hit.id in self._map:
                return self._map[hit.id], "id_map" if self._map[hit.id] else "none"
            if hit.id in self._ours:
                return (hit.id,), "id"
        if hit.text is not None and hit.text.strip():
            found = self._by_text(plain(hit.text))
            return found, "text" if found else "none"
        raise Fault(
            f"answered an unknown id, {one_line(hit.id, 60)!r}: no memory of corpus {self._corpus!r}; ids of its own "
            "need a map (ids in the reply to index, or id_map), source_ids or text"
        )

    def known(self, ids: Iterable[str]) -> list[str]:
        """Our ids among those of a trace."""
        out: dict[str, None] = {}
        for one in ids:
            out.update(dict.fromkeys(self._map.get(one, (one,) if one in self._ours else ())))
        return list(out)

    def _sources(self, hit: Hit) -> tuple[tuple[str, ...], Match]:
        found: dict[str, None] = {hit.id: None} if hit.id is not None and hit.id in self._ours else {}
        for one in hit.source_ids:
            mine = self._map.get(one, (one,) if one in self._ours else ())
            if not mine:
                raise Fault(f"answered an unknown source id, {one_line(one, 60)!r}; corpus {self._corpus!r} has none")
            found.update(dict.fromkeys(mine))
        return tuple(found), "id" if tuple(found) == (hit.id,) else "source_ids"

    def _not_elsewhere(self, hit: Hit) -> None:
        other = ""
        for one in (*hit.source_ids, *([hit.id] if hit.id is not None else [])):
            if one not in self._ours and one not in self._map:
                other = other or self._elsewhere.get(one, "")
        if hit.text is not None and not other:
            text = plain(hit.text)
            if text in self._foreign and text not in self._equal:
                other = self._foreign[text]
        if other:
            raise Fault(
                f"answered a row of corpus {other!r} to a question of corpus {self._corpus!r}: "
                "reset must forget every memory"
            )

    def _by_text(self, text: str) -> tuple[str, ...]:
        """Memories whose whole text this is, else those whose text or label's words it holds, as they stand in it."""
        if text in self._equal:
            return tuple(self._equal[text])
        if text not in self._found:
            places = sorted(
                ((text.find(part), name) for name, part in self._parts if part in text), key=lambda one: one[0]
            )
            self._found[text] = tuple(dict.fromkeys(name for _, name in places))
        return self._found[text]


def read_id_map(path: Path) -> dict[str, tuple[str, ...]]:
    """An id map from a file: JSON `{"their id": "our id" or a list}`, or CSV lines `their id,our id`.

    Raises InputError for a file that cannot be read or holds something else.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
    out: dict[str, list[str]] = {}
    if path.suffix.lower() == ".json":
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: is no JSON: {error}") from None
        if not isinstance(given, dict):
            raise InputError(f'{path}: must be an object {{"their id": "our id", …}}')
        for theirs, ours in given.items():
            mine = ours if isinstance(ours, list) else [ours]
            if not mine or not all(isinstance(one, str) for one in mine):
                raise InputError(f"{path}: {one_line(theirs, 60)!r} must be mapped to an id or a list of ids")
            out.setdefault(theirs, []).extend(mine)
    else:
        for number, row in enumerate(csv.reader(text.splitlines()), 1):
            if len(row) != 2 or not all(one.strip() for one in row):
                raise InputError(f"{path}:{number}: {len(row)} cells; a line is: their id,our id (no header)")
            out.setdefault(row[0].strip(), []).append(row[1].strip())
    return {theirs: tuple(dict.fromkeys(ours)) for theirs, ours in out.items()}
