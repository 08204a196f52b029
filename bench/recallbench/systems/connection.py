"""What every way to a system under test offers: the protocol as calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from recallbench.datasets.model import Question
from recallbench.systems.wire import Hello, Reply
from recallstack.ranking.rows import Memory


class Connection(Protocol):
    """One connection to a system: a process, an address, a file. Everything may raise Fault or Lost.

    takes_memories: whether `reset` and `index` do anything; otherwise the system has its memories already.
    notes: what was odd but did no harm, with how often.
    in_a_row: whether only losses in a row count against the bound of restarts (nothing has to be restarted).
    """

    takes_memories: bool
    in_a_row: bool
    notes: Counter[str]

    async def open(self) -> Hello:
        """Connect and say hello."""

    async def reset(self, corpus: str) -> None:
        """Forget all memories; what follows is of this corpus."""

    async def index(self, memories: Sequence[Memory]) -> Mapping[str, Sequence[str]]:
        """Take these memories. Returns their id -> our ids, where the system has ids of its own."""

    async def ask(self, question: Question, top_k: int) -> Reply:
        """Answer a question with at most `top_k` hits."""

    async def close(self, gently: bool = True) -> None:
        """End it. gently: False for a system that hangs. Nothing is left behind; can be called again."""
