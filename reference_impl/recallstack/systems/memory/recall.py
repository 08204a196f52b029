"""Recall over a weak embedding: vector hits and the newest rows, by what they share with the query (section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recallstack.errors import InputError
from recallstack.ranking.coverage import coverage
from recallstack.ranking.embedders import Embedder
from recallstack.ranking.tokens import tokenize
from recallstack.systems.memory.database import Database
from recallstack.systems.memory.errors import StoreError
from recallstack.systems.memory.memories import Memories
from recallstack.systems.memory.model import Stored, checked_id
from recallstack.systems.memory.switches import NO_SWITCHES, Switches
from recallstack.systems.memory.sync import EmbedderError, embed
from recallstack.systems.memory.vectors import Near, VectorTable

VECTOR_HITS, NEWEST_ROWS = 50, 50
"""Candidates of each kind; together at most the documented 100 (the halves are a choice of section 7)."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """hits: best first. pool: how many candidates there were. lexical: whether words decided.

    remarks: why a list is missing, one line each; names no memory.
    """

    hits: tuple[Stored, ...] = ()
    pool: int = 0
    lexical: bool = False
    remarks: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(hit.id for hit in self.hits)


class Recall:
    """Answers a query from the active rows of one user."""

    def __init__(
        self, database: Database, vectors: VectorTable, embedder: Embedder, switches: Switches = NO_SWITCHES
    ) -> None:
        self._database = database
        self._vectors = vectors
        self._embedder = embedder
        self._switches = switches
        self._memories = Memories(database, switches)

    def recall(self, user: str, query: str, limit: int) -> Recalled:
        """The best `limit` memories of a user; never more than 100.

        A vector table or an embedder that fails leaves the newest rows, and a remark. Raises InputError for a limit
        below 1, StoreError if the rows cannot be read.
        """
        checked_id(user, "user")
        if limit < 1:
            raise InputError(f"recall: limit is {limit}; it must be at least 1")
        switches = self._switches
        whose = None if switches.other_users_recalled else user
        with self._database.read("recalling memories") as connection:
            hidden = self._memories.hidden_debts(connection, whose)
        depth = limit if switches.vector_only else VECTOR_HITS
        near = self._near(whose, query, depth + hidden)  # rows that are no longer active may still be in there
        with self._database.read("recalling memories") as connection:
            found = self._memories.by_id(connection, whose, [one for one, _ in near.hits])
            hits = [found[one] for one, _ in near.hits if one in found]
            newest: list[Stored] = []
            if not (switches.vector_only or switches.no_recent):
                most = None if switches.pool_unbounded else NEWEST_ROWS
                newest = self._memories.newest(connection, whose, most, not switches.inactive_recalled)
        if not switches.inactive_recalled:
            hits = [row for row in hits if row.active]
        pool, lexical = self._ordered(query, hits[:depth], newest)
        remarks = (near.remark,) if near.remark else ()
        return Recalled(tuple(pool if switches.limit_ignored else pool[:limit]), len(pool), lexical, remarks)

    def _near(self, user: str | None, query: str, depth: int) -> Near:
        try:
            [vector] = embed(self._embedder, [query], query=True)
            return self._vectors.top(user, self._embedder.name, vector, depth)
        except (StoreError, EmbedderError) as error:
            return Near(remark=f"{error}; recalled without vectors")

    def _ordered(self, query: str, hits: Sequence[Stored], newest: Sequence[Stored]) -> tuple[list[Stored], bool]:
        """The pool, best first, and whether words decided."""
        switches = self._switches
        lists = (newest, hits) if switches.ties_by_recency else (hits, newest)
        pool = list({(row.user, row.id): row for one in lists for row in one}.values())
        if switches.vector_only or switches.no_ngrams:
            return pool, False
        grams = list if switches.characters_not_ngrams else tokenize
        shares = coverage(query, [row.text for row in pool], grams)
        if not shares.any():
            if switches.recent_first_without_overlap:
                pool = list({(row.user, row.id): row for one in (newest, hits) for row in one}.values())
            return pool, False
        order = sorted(range(len(pool)), key=lambda place: -shares[place])  # stable: vector rank, then recency
        return [pool[place] for place in order], True
