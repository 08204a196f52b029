"""Text that is cut and encoded without harm: whole characters only."""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"


def clean(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced, so that it can be encoded."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def cut(text: str, limit: int) -> str:
    """At most `limit` code points of a text, ending at a whole character.

    An accent, a variation selector, a skin tone, a joined emoji or a flag stays with what it belongs to.
    """
    text = clean(text)
    end = max(0, limit)
    if len(text) <= end:
        return text
    while end > 0 and _inside(text, end):
        end -= 1
    return text[:end]


def _inside(text: str, place: int) -> bool:
    """Whether a cut before `place` would split one visible character."""
    after, before = text[place], text[place - 1]
    if (
        after == _JOINER
        or before == _JOINER
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\U000e0020" <= after <= "\U000e007f"
    ):
        return True  # joined, a skin tone, a tag of a region's flag
    if _flag(after) and _flag(before):
        start = place
        while start > 0 and _flag(text[start - 1]):
            start -= 1
        return (place - start) % 2 == 1
    return unicodedata.category(after) in ("Mn", "Me", "Mc")


def _flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
