"""The reference stack as an implementation of every documented system."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from recallbench.scenarios.base import Running, Vocabulary
from recallbench.scenarios.model import Given, Switch

_MODULES = {
    "mneme": "mneme",
    "pre-retrieval": "preretrieval",
    "notes": "notes",
    "memory-v2": "memory",
    "context-lane": "lane",
    "field": "field",
}
"""system -> the module below `systems` that plays it."""


class Reference:
    """The reference stack. Each system's module has VOCABULARY, SWITCHES and Session."""

    name = "reference"

    def vocabulary(self, system: str) -> Vocabulary | None:
        module = _module(system)
        return None if module is None else module.VOCABULARY

    def switches(self, system: str) -> frozenset[str]:
        module = _module(system)
        return frozenset() if module is None else module.SWITCHES

    def start(self, system: str, given: Given, switches: Mapping[str, Switch]) -> Running:
        running: Running = _module(system).Session(given, switches)
        return running

    def systems(self) -> tuple[str, ...]:
        """The systems that it plays, in the order of the catalogue."""
        return tuple(_MODULES)


def _module(system: str) -> Any:
    name = _MODULES.get(system)
    return None if name is None else importlib.import_module(f"recallbench.scenarios.systems.{name}")
