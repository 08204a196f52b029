"""The chat side: starts whatever happens, saves, extracts, promotes, recalls, injects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from recallstack.errors import InputError
from recallstack.ranking.embedders import Embedder, Fittable
from recallstack.systems.memory.candidates import BoundedCandidates, CandidateStore, DatabaseCandidates, Status
from recallstack.systems.memory.database import Database
from recallstack.systems.memory.errors import StoreError
from recallstack.systems.memory.extraction import extract
from recallstack.systems.memory.lifecycle import Lifecycle
from recallstack.systems.memory.memories import Memories
from recallstack.systems.memory.model import Candidate, NewMemory, Receipt, checked_id
from recallstack.systems.memory.modes import Modes
from recallstack.systems.memory.promotion import Promotion
from recallstack.systems.memory.recall import Recalled
from recallstack.systems.memory.schema import CANDIDATES, ensure_candidate_schema, ensure_schema, table_exists
from recallstack.systems.memory.services import Services, Settings
from recallstack.systems.memory.state import drop_candidates, loop_passed, record_loop
from recallstack.systems.memory.sync import Synced
from recallstack.systems.memory.turns import Prepared, Turns
from recallstack.systems.memory.vectors import VectorTable
from recallstack.systems.memory.worker import Worker
from recallstack.systems.session.clock import Clock

Health = Literal["ok", "bounded", "degraded"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PortalStatus:
    """health: `bounded`: candidates live in the process alone; `degraded`: their table is set and does not answer.

    debt: rows that wait for their vector; None: the database does not answer. warnings: what went wrong at the start.
    """

    health: Health
    modes: Modes
    worker: bool
    debt: int | None
    warnings: tuple[str, ...]


class Portal:
    """The memory system of a chat host. `start` first; for use in one thread."""

    def __init__(
        self,
        database: Database,
        vectors: VectorTable,
        embedder: Embedder | Fittable | str = "hash3",
        settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> None:
        """clock: of the lifecycle worker's timer; without one there is no worker."""
        self.settings = settings or Settings()
        self._switches = self.settings.switches
        self._services = Services(database, vectors, embedder, self.settings)
        self._database = database
        self._modes = self.settings.modes
        self._candidates: CandidateStore = BoundedCandidates(self.settings.bound, self._switches)
        self._degraded = False
        self._warnings: list[str] = []
        self._turns = Turns(self._services, self.settings, self._mode_of, lambda: self.health)
        self._lifecycle = Lifecycle(
            database, self._services.sync, lambda: self._modes, self.settings.now, self._switches
        )
        self._worker = (
            None
            if clock is None
            else Worker(self._lifecycle, lambda: self._modes, clock, self.settings.worker_interval_ms, self._switches)
        )

    # Start and modes

    def start(self) -> PortalStatus:
        """Make what is missing, and run with what there is: nothing that fails here stops the chat.

        May be called again, to try again. Modes that need the closed loop are lowered to canary until it has passed.
        """
        self._warnings = []
        for ensure in (lambda: ensure_schema(self._database), self._services.vectors.ensure):
            self._try(ensure)
        self._set_candidates()
        if self._modes.fully_active and not self._switches.active_without_loop and not self._try(self._passed):
            self._warnings.append(
                f"{' and '.join(self._modes.fully_active)} lowered to canary: the closed loop has not passed"
            )
            self._modes = self._modes.lowered
        if self._worker is not None:
            self._worker.start()
        return self.status()

    def _passed(self) -> bool:
        return loop_passed(self._database)

    def _try(self, step: Callable[[], T]) -> T | None:
        try:
            return step()
        except InputError as error:
            self._warnings.append(str(error))
            return None

    def _set_candidates(self) -> None:
        """The store of candidates: its table first, or, if that fails, the process."""
        self._degraded = False
        durable = self._modes.candidates
        if durable and not self._switches.schema_not_ensured:
            try:
                ensure_candidate_schema(self._database)
            except InputError as error:
                if self._switches.ddl_failure_stops_chat:
                    raise
                self._warnings.append(f"{error}; candidates are kept in this process only")
                durable = False
        if durable:
            self._candidates = DatabaseCandidates(self._database, self.settings.now)
            self._degraded = not self._try(lambda: table_exists(self._database, CANDIDATES))
        elif self._candidates.durable:
            self._candidates = BoundedCandidates(self.settings.bound, self._switches)

    def switch(self, modes: Modes) -> PortalStatus:
        """Run with other modes from now on. Raises InputError for `active` while the closed loop has not passed."""
        if modes.fully_active and not self._switches.active_without_loop and not loop_passed(self._database):
            raise InputError(
                f"{' and '.join(modes.fully_active)} cannot be switched to active: the closed loop has not passed; "
                "run `closed_loop` for a test user in canary first"
            )
        again = modes.candidates != self._modes.candidates
        self._modes = modes
        if self._worker is not None:
            self._worker.stop()
            self._worker.start()
        if again:
            self._set_candidates()
        return self.status()

    def rollback(self) -> PortalStatus:
        """Back to shadow and off, first of all, whatever else fails. Tables and rows stay."""
        modes = self._modes
        if not self._switches.rollback_keeps_modes:
            self.switch(modes.rolled_back)
        if self._switches.rollback_drops_table:
            drop_candidates(self._database)
        return self.status()

    @property
    def health(self) -> Health:
        if self._degraded:
            return "degraded"
        return "ok" if self._candidates.durable else "bounded"

    @property
    def modes(self) -> Modes:
        return self._modes

    def status(self) -> PortalStatus:
        try:
            with self._database.read("counting debts") as connection:
                debt: int | None = Memories(self._database).debt(connection)
        except StoreError:
            debt = None
        running = self._worker is not None and self._worker.running
        return PortalStatus(self.health, self._modes, running, debt, tuple(self._warnings))

    def _mode_of(self, user: str) -> str:
        """The injection mode for a user now. A degraded memory recalls and tells, and injects nothing."""
        if self._modes.injection == "off":
            return "off"
        return self._modes.injection if self._modes.injects_for(user) and not self._degraded else "shadow"

    # Saving

    def write(self, user: str, session: str, memories: Sequence[NewMemory]) -> Receipt:
        """See `Writer.write`."""
        self._mutant_gate(user)
        return self._services.writer.write(user, session, memories)

    def compact(self, user: str, session: str) -> Receipt:
        """See `Writer.compact`."""
        self._mutant_gate(user)
        return self._services.writer.compact(user, session)

    def save_candidates(self, user: str, session: str, memories: Sequence[NewMemory]) -> Receipt:
        """Keep candidates. Raises InputError for what cannot be stored, StoreError if nothing is known to be saved.

        Without a table they are kept in the process, and the receipt says so.
        """
        checked_id(user, "user")
        checked_id(session, "session")
        ids = self._asked(lambda: self._candidates.add(user, session, memories))
        if self._candidates.durable or not ids:
            return Receipt(ids=ids, durable=self._candidates.durable)
        return Receipt(ids=ids, durable=False, remarks=("kept in this process only, until it ends",))

    def remember_recent(self, user: str, session: str) -> Receipt:
        """Extract what the user said in this session, and keep it as candidates; errors as in `save_candidates`."""
        checked_id(user, "user")
        checked_id(session, "session")
        said = self._services.sessions.said(user, session)
        found = extract(said.texts, self.settings.extractor, self._switches)
        receipt = self.save_candidates(user, session, found.memories)
        remarks = tuple(one for one in (said.remark, found.remark, *receipt.remarks) if one)
        return Receipt(ids=receipt.ids, durable=receipt.durable, remarks=remarks)

    def candidates(self, user: str | None = None, status: Status | None = "pending") -> tuple[Candidate, ...]:
        """The candidates of a user (None: of all). Raises StoreError."""
        return self._asked(lambda: self._candidates.of_user(user, status))

    def promote(self, candidate: str, caller: str) -> Receipt:
        """See `Promotion.promote`."""
        self._mutant_gate(caller)
        return self._asked(lambda: self._promotion.promote(candidate, caller))

    def reject(self, candidate: str) -> None:
        """See `Promotion.reject`."""
        self._asked(lambda: self._promotion.reject(candidate))

    @property
    def _promotion(self) -> Promotion:
        return Promotion(self._database, self._candidates, self._services.sync, self.settings.now, self._switches)

    def _asked(self, step: Callable[[], T]) -> T:
        """What the store of candidates answers; whether it does is the health of the memory."""
        try:
            answer = step()
        except StoreError:
            self._degraded = self._candidates.durable
            raise
        self._degraded = False
        return answer

    def _mutant_gate(self, user: str) -> None:
        modes = self._modes
        allowed = modes.lifecycle == "active" or (modes.lifecycle == "canary" and user in modes.lifecycle_users)
        if self._switches.writes_need_rollout and not allowed:
            raise InputError("the lifecycle rollout does not allow it")

    # Recall, turns, lifecycle, upkeep

    def recall(self, user: str, query: str, limit: int = 5) -> Recalled:
        """See `Recall.recall`."""
        return self._services.recall.recall(user, query, limit)

    def prepare(self, user: str, session: str, message: str) -> Prepared:
        """See `Turns.prepare`."""
        return self._turns.prepare(user, session, message)

    def finish(self, prepared: Prepared, reply: str | None) -> str:
        """See `Turns.finish`."""
        return self._turns.finish(prepared, reply)

    @property
    def lifecycle(self) -> Lifecycle:
        """Forget and expire."""
        return self._lifecycle

    @property
    def worker(self) -> Worker | None:
        """The lifecycle worker, if there is a clock for it."""
        return self._worker

    def repay(self) -> Synced:
        """See `Sync.repay`."""
        return self._services.sync.repay()

    def reconcile(self) -> Synced:
        """See `Sync.reconcile`."""
        return self._services.sync.reconcile()

    def record_loop(self, user: str) -> None:
        """The closed loop has passed for this user (`closed_loop` says so): `active` is allowed from now on."""
        record_loop(self._database, user, self.settings.now())

    def close(self) -> None:
        """Stop the worker and let go of the connections."""
        if self._worker is not None:
            self._worker.stop()
        self._services.close()
