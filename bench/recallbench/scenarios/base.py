"""What an implementation of a documented system offers to the scenario engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from recallbench.scenarios.model import Given, Scenario, Switch


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The words that a scenario of one system may use.

    events: event types. calls, probes: name -> its arguments. faults: name -> the values it takes (None: any
    number). config: settings in `given.config`. capabilities: what a scenario of it can need.
    """

    events: frozenset[str] = frozenset()
    calls: Mapping[str, frozenset[str]] = field(default_factory=dict)
    probes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    faults: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    config: frozenset[str] = frozenset()
    capabilities: frozenset[str] = frozenset()


class Running(Protocol):
    """One scenario in progress, on virtual time. Every method may await."""

    async def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Something happened in the host."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """The host calls the system."""

    async def fault(self, name: str, value: Any) -> None:
        """From now on this part fails (or works again)."""

    async def probe(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the system answers now: plain values for the expectations."""

    async def close(self) -> None:
        """The scenario is over; nothing may be left behind."""


@runtime_checkable
class Clocked(Protocol):
    """A scenario in progress that has to be told when time passes; others see the loop's clock."""

    async def advance(self, ms: float) -> None:
        """So much virtual time has passed."""


@runtime_checkable
class Named(Protocol):
    """An implementation that wants to know which scenario comes next."""

    def begins(self, scenario: str) -> None:
        """The id of the scenario that `start` is about to begin."""


@runtime_checkable
class Choosing(Protocol):
    """An implementation that cannot play every scenario whose needs it declares."""

    def plays(self, scenario: Scenario) -> bool:
        """Whether it can take every step of the scenario; others are not applicable."""


class Implementation(Protocol):
    """An implementation of one system or of several."""

    @property
    def name(self) -> str:
        """Its name in the matrix."""

    def vocabulary(self, system: str) -> Vocabulary | None:
        """The words it understands for a system; None if it has no such system."""

    def switches(self, system: str) -> frozenset[str]:
        """Faults that can be put in; empty for an implementation that is only tested."""

    def start(self, system: str, given: Given, switches: Mapping[str, Switch]) -> Running:
        """Begin a scenario. Raises InputError where `given` cannot be used."""
