"""New texts from the words of old ones: a template keeps its frame, and its words are drawn anew.

A text is cut into pieces. Function words, Chinese function characters and punctuation are its frame and stay.
Every other piece is a slot of a class:

- `word` (by its ending: -ing, -ed, -ly, -s or other), `Name` (begins with a capital, and is never seen small),
  `code` (letters with `_`, `.`, `/` or `:` between them);
- `han1` … `han4`: Chinese between two function characters, by its length (4 and more together);
- values: dates, times, numbers, identifiers with digits.

Slots of words are filled with pieces of the same class, so that lengths and frequencies are those of the
originals; a share of them comes from a few donor memories, so that words that occur together keep doing so.
Values get new digits in the old shape, so that an identifier stays as rare as identifiers are.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from recallstack.ranking.rows import Memory

DONORS = 3
"""Memories, besides the template, whose words a new text is about."""
FROM_DONORS = 0.6
"""Share of the slots that are filled from the donors (where they have the class); the rest from all memories."""

_WORDS = (
    "a about after all also an and any are as at be because been before both but by can do does each for from had has "
    "have he her his if in into is it its more most must never no not of on once only or our out over per she so some "
    "than that the their them then there these they this those to under until up was we were what when where which "
    "while who whose why will with without you your"
)
_ENGLISH = frozenset(_WORDS.split())
"""Function words: frame, not content."""
_CHINESE = "的了是在和与及或把被将从到对为也都就才只不没要会能有每这那由让给用向再又还并但因所如则已请先按"
"""Function characters: a run of Chinese is cut at them."""
_HAN = "\u3400-\u4dbf\u4e00-\u9fff"
_LONG_HAN = 6
"""Longer stretches of Chinese without a function character are cut in two."""
_PIECE = re.compile(
    rf"""
    (?P<date>(?<![\w-])\d{{4}}-\d\d-\d\d(?![\w-]))
    |(?P<time>(?<![\w:])\d{{1,2}}:\d\d(?![\w:]))
    |(?P<number>(?<![A-Za-z_\d])\d+(?:[.,]\d+)?(?![A-Za-z_\d]|[-./:]\w))
    |(?P<code>[A-Za-z0-9_]+(?:[-./:@][A-Za-z0-9_]+)*)
    |(?P<frame>[{_CHINESE}]+)
    |(?P<han>(?:(?![{_CHINESE}])[{_HAN}])+)
    |(?P<word>(?:(?![{_HAN}])[^\W\d_])+)
    |(?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_LETTERS = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*")
_DIGIT = re.compile(r"\d")
_ENDINGS = ("ing", "ed", "ly", "s")
VALUES = frozenset({"date", "time", "number", "identifier"})
"""Classes whose pieces get new digits."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text. kind: its class; empty for the frame, which stays as it is."""

    kind: str
    text: str


def pieces(text: str, small: frozenset[str] = frozenset()) -> list[Piece]:
    """The text cut into pieces, nothing lost. small: words that occur in small letters (they are no names)."""
    out = []
    for found in _PIECE.finditer(text):
        kind, piece = found.lastgroup or "", found[0]
        if kind in ("code", "word"):
            out.append(Piece(_class(piece, small), piece))
        elif kind == "han":
            cut = [piece] if len(piece) <= _LONG_HAN else [piece[: len(piece) // 2], piece[len(piece) // 2 :]]
            out.extend(Piece(f"han{min(len(part), 4)}", part) for part in cut)
        else:
            out.append(Piece(kind if kind in VALUES else "", piece))
    return out


def _class(piece: str, small: frozenset[str]) -> str:
    lower = piece.lower()
    if lower in _ENGLISH:
        return ""
    if _DIGIT.search(piece):
        return "identifier"
    if piece.isascii() and not _LETTERS.fullmatch(piece):
        return "code"
    if piece != lower and lower not in small:
        return "Name"
    return "word" + next((f"-{end}" for end in _ENDINGS if lower.endswith(end) and len(lower) > len(end) + 2), "")


class Dice:
    """Draws from `random.Random.random` alone, whose sequence is the same in every version of Python."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def below(self, count: int) -> int:
        """A whole number from 0 to count - 1."""
        return int(self._random() * count)

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return self._random() < share

    def one(self, items: Sequence[str]) -> str:
        """One of the items."""
        return items[int(self._random() * len(items))]


class Material:
    """The pieces of some memories: templates, and what their slots can be filled with.

    Holds the memories cut into pieces; raises nothing: a class with one piece is filled with that piece.
    """

    def __init__(self, memories: Iterable[Memory]) -> None:
        self.memories = tuple(memories)
        texts = [(memory.title, memory.content) for memory in self.memories]
        small = frozenset(
            word for pair in texts for text in pair for word in re.findall(r"[^\W\d_]+", text) if word == word.lower()
        )
        self._titles = [pieces(title, small) for title, _ in texts]
        self._contents = [pieces(content, small) for _, content in texts]
        self._own = [_by_class([*a, *b]) for a, b in zip(self._titles, self._contents, strict=True)]
        every: dict[str, list[str]] = defaultdict(list)
        for one in self._own:
            for kind, found in one.items():
                every[kind].extend(found)
        self._every: Mapping[str, list[str]] = every
        self._identifiers = frozenset(every.get("identifier", ()))
        self._entities = [tuple(memory.entities.items()) for memory in self.memories]

    def draw(self, dice: Dice) -> tuple[Memory, str, str, dict[str, str]]:
        """(template, new title, new content, entity links of template and donors whose names are in the new text)."""
        count = len(self.memories)
        template = dice.below(count)
        donors = [dice.below(count) for _ in range(DONORS)]
        used: set[str] = set()
        title, content = (
            "".join(self._fill(piece, donors, used, dice) if piece.kind else piece.text for piece in frame[template])
            for frame in (self._titles, self._contents)
        )
        text = f"{title} {content}".casefold()
        links = {
            name: str(link)
            for row in (template, *donors)
            for name, link in self._entities[row]
            if name.strip() and name.strip().casefold() in text
        }
        return self.memories[template], title, content, links

    def _fill(self, piece: Piece, donors: Sequence[int], used: set[str], dice: Dice) -> str:
        if piece.kind in VALUES:
            return self._value(piece, dice)
        every = self._every[piece.kind]
        found = dice.one(every)
        if dice.chance(FROM_DONORS):
            held = self._own[donors[dice.below(DONORS)]].get(piece.kind)
            wanted = dice.one(held) if held else found
            found = found if wanted in used else wanted  # few words of a class must not be said again and again
            used.add(wanted)
        return _cased(found, piece.text) if piece.kind.startswith("word") else found

    def _value(self, piece: Piece, dice: Dice) -> str:
        if piece.kind == "date":
            return _date(dice.one(self._every["date"]), dice)
        if piece.kind == "time" or (piece.kind == "number" and len(piece.text) < 3):
            return dice.one(self._every[piece.kind])  # hours, days of a month, small counts: those that occur
        if piece.kind == "number":
            return _digits(piece.text, dice)
        new = _digits(dice.one(self._every["identifier"]), dice)
        for _ in range(9):  # short ones (v2) have few neighbours; longer ones never stay what they were
            if new not in self._identifiers:
                break
            new = _digits(new, dice)
        return new


def _cased(word: str, place: str) -> str:
    """A capital at the start belongs to the place, not to the word; `SELECT` and `iOS` are as they are."""
    if word[1:] != word[1:].lower():
        return word
    return (word[:1].upper() if place[:1] != place[:1].lower() else word[:1].lower()) + word[1:]


def _by_class(found: Iterable[Piece]) -> dict[str, list[str]]:
    out: dict[str, list[str]] = defaultdict(list)
    for piece in found:
        if piece.kind:
            out[piece.kind].append(piece.text)
    return dict(out)


def _digits(text: str, dice: Dice) -> str:
    """Other digits in the same shape: zeros at the end stay, and what began above 0 still does."""
    end = len(text.rstrip("0,."))
    out = []
    for place, char in enumerate(text):
        if not "0" <= char <= "9" or place >= end:
            out.append(char)
        elif char != "0" and (place == 0 or not text[place - 1].isdigit()):
            out.append(str(1 + dice.below(9)))
        else:
            out.append(str(dice.below(10)))
    return "".join(out)


def _date(text: str, dice: Dice) -> str:
    """Within half a year of the date; a date that there is not keeps its shape."""
    try:
        day = dt.date.fromisoformat(text)
        return (day + dt.timedelta(dice.below(366) - 183)).isoformat()
    except (ValueError, OverflowError):
        return _digits(text, dice)
