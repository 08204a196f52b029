"""The injected text: a head line, then title, path and snippet of each hit, within a budget of characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from recallstack.ranking.text import clean, cut
from recallstack.systems.preretrieval.contract import Hit

ELLIPSIS = "…"
"""What a cut text ends with; it counts against the budget."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """ids: the hits of which at least the head and the start of the snippet are in `text`."""

    text: str
    truncated: bool
    ids: tuple[str, ...]


def render(hits: Sequence[Hit], max_chars: int | None) -> Rendered:
    """The hits as text of at most `max_chars` code points (None: no bound), cut at a whole character."""
    counts = Counter(hit.source for hit in hits)
    text = "Knowledge base, looked up before this request · " + " ".join(f"{s}:{n}" for s, n in counts.items())
    starts: list[int] = []
    for place, hit in enumerate(hits, 1):
        head = " · ".join(part for part in (" ".join(hit.title.split()), hit.path, hit.source) if part)
        text += f"\n[{place}] {head}\n"
        starts.append(len(clean(text)))
        text += hit.snippet
    text = clean(text)
    if max_chars is None or len(text) <= max_chars:
        return Rendered(text, False, tuple(hit.doc_id for hit in hits))
    kept = cut(text, max_chars - len(ELLIPSIS))
    ids = tuple(hit.doc_id for hit, start in zip(hits, starts, strict=True) if start < len(kept))
    return Rendered(kept + ELLIPSIS, True, ids)
