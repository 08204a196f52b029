"""What can go wrong with a system under test: one line each, said of a question or of a connection."""

from __future__ import annotations

from recallstack.ranking.text import cut

LINE = 200
"""Characters of a system's own words in a message."""


class Fault(Exception):
    """The system answered a request with something that cannot be used; the next request may well work.

    The message is one line that begins with a verb, such as `answered 9 hits for top_k 5`.
    """


class Lost(Exception):
    """The system does not answer any more: it died, hung, or cannot be reached.

    hung: it still runs, and has to be ended. own: it is the loss of this request, not of those beside it.
    """

    def __init__(self, message: str, *, hung: bool = False, own: bool = False) -> None:
        super().__init__(message)
        self.hung, self.own = hung, own or hung


def one_line(text: object, limit: int = LINE) -> str:
    """A text of the system in one line that ends at a whole character."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return plain if len(plain) <= limit else cut(plain, limit).rstrip() + "…"
