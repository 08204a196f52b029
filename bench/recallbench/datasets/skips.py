"""What becomes of a bad row: an error, or with `--skip-bad` one more that was left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from recallstack.errors import InputError

SHOWN = 100
"""Skipped rows that are kept with their reason; all are counted."""


@dataclass(eq=False)
class Skips:
    """A bad row is raised as InputError, or with `allowed` counted and left out.

    reasons: the first SHOWN reasons, one line each; count: all of them.
    """

    allowed: bool = False
    count: int = 0
    reasons: list[str] = field(default_factory=list)

    def bad(self, reason: str | Callable[[], str]) -> None:
        """`reason` is called only where it will be shown: finding the line may take a pass over a file."""
        shown = not self.allowed or len(self.reasons) < SHOWN
        line = reason() if shown and callable(reason) else str(reason)
        if not self.allowed:
            raise InputError(line)
        self.count += 1
        if shown:
            self.reasons.append(line)

    def quiet(self) -> Skips:
        """The same rule without the telling, for a second pass over rows whose faults are told in another."""
        return Skips(self.allowed)

    def listed(self) -> list[str]:
        """The reasons, and a last line for those that are only counted."""
        more = self.count - len(self.reasons)
        return [*self.reasons, *([f"and {more} more were skipped"] if more else [])]
