"""Scenarios over protocol 1: a system on stdio plays them, one after another, in one process.

The steps are on virtual time, the process is not: while it answers, the virtual clock stands still. A system that
declares `clock` is told how far the clock moved (`advance`); one that does not plays no scenario that needs it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

from recallbench.scenarios.base import Running, Vocabulary
from recallbench.scenarios.model import Given, Scenario, Switch
from recallbench.scenarios.reference import Reference
from recallbench.systems.external import ExternalSystem
from recallbench.systems.faults import Fault, Lost
from recallbench.systems.settings import StdioSettings
from recallbench.systems.spec import Spec
from recallbench.systems.specs import external
from recallbench.systems.stdio import StdioConnection
from recallstack.errors import InputError

T = TypeVar("T")
SEARCHING = frozenset({"search", "inject", "vectors"})
"""What a system can be asked without events: all that one can do that does not declare `scenario`."""
SEARCHED = ("mneme", "field")
"""The documented systems whose search answers ids and scores, as protocol 1 does."""


class Remote:
    """A system on stdio as an implementation. It must be closed; it can be used as a context manager.

    Raises InputError where the system cannot be started, or says no hello.
    """

    def __init__(self, one: Spec, overrides: Mapping[str, Any] | None = None) -> None:
        if one.kind != "stdio":
            raise InputError(f"{one.where}: scenarios are played over stdio: or in process, not over {one.kind}:")
        system = external(one, overrides)
        assert isinstance(system, ExternalSystem)
        self._system = system
        settings = system.settings
        assert isinstance(settings, StdioSettings)
        self.settings = settings
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._connection: StdioConnection | None = None
        self._losses, self._scenario = 0, ""
        try:
            self.connection()
        except (Fault, Lost) as error:
            self.close()
            raise InputError(f"{one.where}: it {error}; `recallbench systems check` says more") from None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """What the system calls itself."""
        return self._hello.name

    def vocabulary(self, system: str) -> Vocabulary | None:
        """The words of the documented system, and what this one declared of what a scenario can need."""
        words = Reference().vocabulary(system)
        able = self._hello.capabilities
        mine = able if "scenario" in able else able & SEARCHING
        return None if words is None else dataclasses.replace(words, capabilities=mine)

    def plays(self, scenario: Scenario) -> bool:
        """Whether it gets every step itself, or there are none but searches, which an adapter can turn into its own."""
        if "scenario" in self._hello.capabilities:
            return True
        return scenario.system in SEARCHED and all(
            step.kind == "probe" and step.name in SEARCHING & self._hello.capabilities for step in scenario.steps
        )

    def switches(self, system: str) -> frozenset[str]:
        """No fault can be put into it."""
        return frozenset()

    def begins(self, scenario: str) -> None:
        """The next scenario's id, which the system is told."""
        self._scenario = scenario

    def start(self, system: str, given: Given, switches: Mapping[str, Switch]) -> Running:
        """Begin a scenario. Nothing is sent before its first step, so that a failure is the failure of that step."""
        return _Played(self, self._scenario, system, given)

    def idle(self) -> bool:
        """Whether there is no process now."""
        return self._connection is None

    def connection(self) -> StdioConnection:
        """The open connection; a system that was lost is started again, as often as `restarts` says."""
        if self._connection is None:
            if self._losses > self.settings.restarts:
                raise Lost(f"was not asked any more: it was lost {self._losses} times")
            made = self._system.make()
            assert isinstance(made, StdioConnection)
            made.quote = True  # the texts of scenarios are no secret
            self._connection = made
            self._hello = self.wait(made.open())
        return self._connection

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on real time, while the caller's loop stands still."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def lost(self, error: Lost) -> None:
        """The system is gone, or has to go."""
        self._losses += 1
        connection, self._connection = self._connection, None
        if connection is not None:
            self.wait(connection.close(gently=not error.hung))

    def close(self) -> None:
        """End the system and the thread that spoke with it. Can be called again."""
        if self._loop.is_closed():
            return
        try:
            if self._connection is not None:
                self.wait(self._connection.close())
                self._connection = None
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


class _Played:
    """One scenario in progress."""

    def __init__(self, remote: Remote, scenario: str, system: str, given: Given) -> None:
        self._remote, self._scenario, self._system, self._given = remote, scenario, system, given
        self._begun, self._asking = False, False

    def _send(self, op: str, **fields: Any) -> Any:
        """The value of the reply. Raises RuntimeError with what went wrong; the engine names the step."""
        try:
            if not self._begun:
                self._begun = True
                given = msgspec.to_builtins(self._given)
                self._request("scenario", scenario=self._scenario, system=self._system, given=given)
            return self._request(op, **fields)
        except Fault as error:
            raise RuntimeError(f"it {error}") from None
        except Lost as error:
            self._remote.lost(error)
            raise RuntimeError(f"it {error}") from None

    def _request(self, op: str, **fields: Any) -> Any:
        self._asking = True  # until an answer comes; an interruption leaves it so
        try:
            return self._answered(op, fields)
        except (Fault, Lost):
            self._asking = False
            raise

    def _answered(self, op: str, fields: Mapping[str, Any]) -> Any:
        connection = self._remote.connection()
        connection.vectors = {text.strip(): tuple(one) for text, one in self._given.vectors.items()}
        reply = self._remote.wait(connection.request(op, self._remote.settings.timeout_s, **fields))
        self._asking = False
        return reply.get("value")

    async def event(self, kind: str, data: Mapping[str, Any]) -> None:
        self._send("event", event=kind, data=dict(data))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return self._send("call", call=name, **_free(arguments))

    async def fault(self, name: str, value: Any) -> None:
        self._send("fault", fault={name: value})

    async def advance(self, ms: float) -> None:
        """Time passes."""
        self._send("advance", ms=ms)

    async def probe(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        value = self._send("probe", probe=name, **_free(arguments))
        if not isinstance(value, dict):
            raise RuntimeError(f'it answered probe {name} without a value (an object, such as {{"ids": […]}})')
        return value

    async def close(self) -> None:
        if not self._begun or self._asking or self._remote.idle():
            return
        try:
            self._request("scenario_end")
        except Fault as error:
            raise RuntimeError(f"it {error} at the end of the scenario") from None
        except Lost as error:
            self._remote.lost(error)
            raise RuntimeError(f"it {error} at the end of the scenario") from None


def _free(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments beside `id` and `op`, which are the protocol's own."""
    return {key: value for key, value in arguments.items() if key not in ("id", "op")}
