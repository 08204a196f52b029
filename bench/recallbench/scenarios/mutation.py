"""The mutation check: every fault that can be put into the reference stack must fail at least one scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from recallbench.scenarios.base import Implementation
from recallbench.scenarios.engine import unmet
from recallbench.scenarios.model import Scenario, Switch
from recallbench.text.tables import table


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault of one system. caught: ids of the scenarios that fail with it in."""

    system: str
    switches: Mapping[str, Switch]
    caught: tuple[str, ...]

    @property
    def name(self) -> str:
        """The switch, with its value where it is not simply on."""
        return ", ".join(
            key if value is True else f"{key}: {str(value).lower()}" for key, value in self.switches.items()
        )


def check(
    scenarios: Sequence[Scenario], implementation: Implementation, done: Callable[[Mutant], None] | None = None
) -> list[Mutant]:
    """Every switch of every system of `scenarios`, and every combination that a scenario names, against all of them.

    done: called after each.
    """
    out = []
    for system, switches in faults(scenarios, implementation):
        own = [one for one in scenarios if one.system == system]
        mutant = Mutant(system, switches, tuple(one.id for one in own if unmet(one, implementation, switches)))
        out.append(mutant)
        if done:
            done(mutant)
    return out


def faults(scenarios: Sequence[Scenario], implementation: Implementation) -> list[tuple[str, Mapping[str, Switch]]]:
    """(system, switches) of each fault that `check` puts in."""
    out: list[tuple[str, Mapping[str, Switch]]] = []
    for system in dict.fromkeys(one.system for one in scenarios):
        named = [dict(one.switches) for one in scenarios if one.system == system]
        single: list[dict[str, Switch]] = [
            {name: True}
            for name in sorted(implementation.switches(system))
            if not any(name in one and len(one) == 1 for one in named)
        ]
        out += [(system, one) for one in {repr(sorted(one.items())): one for one in [*named, *single]}.values()]
    return out


def survivors(mutants: Sequence[Mutant]) -> list[Mutant]:
    """Faults that no scenario notices."""
    return [one for one in mutants if not one.caught]


def matrix(mutants: Sequence[Mutant]) -> str:
    """Mutant × scenario, as a Markdown table a system: the scenarios that catch each."""
    parts = []
    for system in dict.fromkeys(one.system for one in mutants):
        own = [one for one in mutants if one.system == system]
        scenarios = list(dict.fromkeys(name for one in own for name in one.caught))
        key = {name: str(number) for number, name in enumerate(scenarios, 1)}
        rows = [[one.name, *("x" if name in one.caught else "" for name in scenarios)] for one in own]
        legend = "\n".join(f"{number}. {name}" for name, number in key.items())
        parts += [f"## {system}", table(["mutant", *key.values()], rows, "l" * (len(key) + 1)), legend]
    caught = sum(bool(one.caught) for one in mutants)
    return "\n\n".join(["# Mutants", f"{caught} of {len(mutants)} mutants are caught.", *parts]) + "\n"
