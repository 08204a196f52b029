"""The admin side: it lists, promotes and rejects candidates, and does not start without their table."""

from __future__ import annotations

from recallstack.errors import InputError
from recallstack.ranking.embedders import Embedder, Fittable
from recallstack.systems.memory.candidates import DatabaseCandidates, Status
from recallstack.systems.memory.database import Database
from recallstack.systems.memory.model import Candidate, Receipt
from recallstack.systems.memory.promotion import Promotion
from recallstack.systems.memory.schema import ensure_candidate_schema, ensure_schema
from recallstack.systems.memory.services import Services, Settings
from recallstack.systems.memory.vectors import VectorTable


class Admin:
    """A started admin side."""

    def __init__(
        self,
        database: Database,
        vectors: VectorTable,
        embedder: Embedder | Fittable | str = "hash3",
        settings: Settings | None = None,
    ) -> None:
        """Makes the schema before the store. Raises StoreError or InputError if that fails: there is no half start."""
        settings = settings or Settings()
        if not settings.switches.schema_not_ensured:
            try:
                ensure_schema(database)
                ensure_candidate_schema(database)
            except InputError:
                if not settings.switches.ddl_failure_starts_admin:
                    raise
        services = Services(database, vectors, embedder, settings)
        self._candidates = DatabaseCandidates(database, settings.now)
        self._promotion = Promotion(database, self._candidates, services.sync, settings.now, settings.switches)

    def candidates(self, user: str | None = None, status: Status | None = "pending") -> tuple[Candidate, ...]:
        """The candidates of a user (None: of all), oldest first. Raises StoreError."""
        return self._candidates.of_user(user, status)

    def promote(self, candidate: str, caller: str) -> Receipt:
        """See `Promotion.promote`."""
        return self._promotion.promote(candidate, caller)

    def reject(self, candidate: str) -> None:
        """See `Promotion.reject`."""
        self._promotion.reject(candidate)
