"""What a scenario of memory-v2 may say: settings, arguments of calls and probes, with their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from recallstack.ranking.rows import MemoryType
from recallstack.systems.memory import Modes
from recallstack.systems.memory.modes import InjectionMode, RolloutMode

Count = Annotated[int, Meta(ge=1)]


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments that must all be known."""


class Settings(Words, frozen=True, omit_defaults=True):
    """`given.config`, and what `start` changes. What is not set has the documented default.

    The first eight are the rollout (`recallstack.systems.memory.Modes`). embedder: empty: `given.vectors`, or, without
    them, hash3. inject: memories in a prompt at most. bound: candidates of a user that are kept without a table.
    """

    candidates: bool = False
    lifecycle: RolloutMode = "off"
    lifecycle_users: tuple[str, ...] = ()
    forget: bool = False
    expire: bool = False
    worker: bool = False
    injection: InjectionMode = "shadow"
    injection_users: tuple[str, ...] = ()
    embedder: str = ""
    orchestration: str = ""
    inject: Count = 5
    worker_interval_ms: Count = 3_600_000
    bound: Count = 50
    backfill_batch: Count = 100

    @property
    def modes(self) -> Modes:
        values: dict[str, Any] = {name: getattr(self, name) for name in MODES}
        values.update({name: frozenset(one) for name, one in values.items() if isinstance(one, tuple)})
        return Modes(**values)

    @property
    def of_memory(self) -> dict[str, Any]:
        """The settings that `recallstack.systems.memory.services.Settings` has under the same name."""
        names = ("orchestration", "inject", "worker_interval_ms", "bound", "backfill_batch")
        return {name: getattr(self, name) for name in names}


MODES = (
    "candidates",
    "lifecycle",
    "lifecycle_users",
    "forget",
    "expire",
    "worker",
    "injection",
    "injection_users",
)
"""The settings that `switch` changes in a running portal."""


class Row(Words, frozen=True):
    """A memory to save. id: by default its text. repeat: so many rows of this text, with ids `ID-1`, `ID-2`, …

    expires_in_ms: from now on.
    """

    user: str
    text: str
    session: str = "s"
    id: str = ""
    type: MemoryType = "project"
    importance: float = 3
    expires_in_ms: int | None = None
    repeat: Count | None = None


class Compact(Words, frozen=True):
    user: str
    session: str = "s"


class Save(Words, frozen=True):
    """texts: of the candidates."""

    user: str
    texts: tuple[str, ...]
    session: str = "s"


class Remember(Words, frozen=True):
    """reply: what the model answers to the extraction; none: it is not available."""

    user: str
    session: str = "s"
    reply: str | None = None


class Promote(Words, frozen=True):
    """text: of a candidate. caller: who promotes. side: where; a candidate of the process alone: in the portal."""

    text: str
    caller: str = "admin"
    side: Literal["portal", "admin"] = "portal"


class Reject(Words, frozen=True):
    text: str


class Forget(Words, frozen=True):
    user: str
    ids: tuple[str, ...]


class Expire(Words, frozen=True):
    """user: none: all users."""

    user: str | None = None


class Whose(Words, frozen=True):
    """user: none: all users."""

    user: str | None = None


class Turn(Words, frozen=True):
    """reply: none: the agent's run fails."""

    user: str
    text: str
    session: str = "s"
    reply: str | None = "done"


class User(Words, frozen=True):
    user: str


class Nothing(Words, frozen=True):
    """A call or probe without arguments."""


class Recall(Words, frozen=True):
    user: str
    query: str
    limit: int = 5


class Listing(Words, frozen=True):
    """user: none: all users. side: who lists them."""

    user: str | None = None
    status: Literal["pending", "promoted", "rejected"] | None = "pending"
    side: Literal["portal", "admin"] = "portal"


CALLS: Mapping[str, type[msgspec.Struct]] = {
    "start-admin": Nothing,
    "rollback": Nothing,
    "write": Row,
    "compact": Compact,
    "save-candidates": Save,
    "remember": Remember,
    "promote": Promote,
    "reject": Reject,
    "forget": Forget,
    "expire": Expire,
    "turn": Turn,
    "closed-loop": User,
    "repay": Nothing,
}
"""Calls, but for `start` and `switch`, which take settings, and their arguments."""
PROBES: Mapping[str, type[msgspec.Struct]] = {
    "recall": Recall,
    "candidates": Listing,
    "memories": Whose,
    "events": Nothing,
    "status": Nothing,
}
"""Probes and their arguments."""


def names(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The words of a struct."""
    return frozenset(kind.__struct_fields__)
