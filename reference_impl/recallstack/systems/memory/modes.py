"""Feature switches and rollout modes (seed 003, behaviours 1, 4 and 5)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from recallstack.errors import InputError
from recallstack.systems.memory.switches import NO_SWITCHES, Switches

RolloutMode = Literal["off", "canary", "active"]
InjectionMode = Literal["off", "shadow", "canary", "active"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """How far each part is switched on. The documented names of the settings are in brackets.

    candidates: candidates are kept in the database [MEMORY_CANDIDATE_PERSISTENCE_ENABLED].
    lifecycle: rollout of forget, expire and the worker, and of nothing else [MEMORY_LIFECYCLE_ROLLOUT_MODE].
    lifecycle_users: who canary is for [MEMORY_LIFECYCLE_ROLLOUT_USER_IDS].
    forget, expire, worker: the features' own switches.
    injection: `off` recalls nothing; `shadow` recalls, tells and injects nothing; `canary` injects for
    `injection_users` and is shadow for others; `active` injects for everyone.
    """

    candidates: bool = False
    lifecycle: RolloutMode = "off"
    lifecycle_users: frozenset[str] = field(default_factory=frozenset)
    forget: bool = False
    expire: bool = False
    worker: bool = False
    injection: InjectionMode = "shadow"
    injection_users: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        for name, known in (("lifecycle", get_args(RolloutMode)), ("injection", get_args(InjectionMode))):
            if getattr(self, name) not in known:
                raise InputError(f"memory: {name} is {getattr(self, name)!r}; use one of {', '.join(known)}")

    @property
    def rolled_back(self) -> Modes:
        """Everything back to shadow and off."""
        return replace(
            self, candidates=False, lifecycle="off", forget=False, expire=False, worker=False, injection="shadow"
        )

    @property
    def fully_active(self) -> tuple[str, ...]:
        """The parts that are on for everyone: these need the closed loop."""
        return tuple(name for name in ("lifecycle", "injection") if getattr(self, name) == "active")

    @property
    def lowered(self) -> Modes:
        """The same with `canary` in place of `active`."""
        return replace(
            self,
            lifecycle="canary" if self.lifecycle == "active" else self.lifecycle,
            injection="canary" if self.injection == "active" else self.injection,
        )

    def injects_for(self, user: str) -> bool:
        """Whether what is recalled for this user reaches the agent."""
        return self.injection == "active" or (self.injection == "canary" and user in self.injection_users)


def lifecycle_refusal(
    modes: Modes, feature: Literal["forget", "expire"], user: str | None, switches: Switches = NO_SWITCHES
) -> str:
    """Why this feature may not write for a user (None: for all users); empty if it may.

    Both must allow it: the feature's own switch and the rollout.
    """
    if switches.worker_switch_only:
        return "" if modes.worker else "the worker is switched off"
    if not getattr(modes, feature) and not switches.feature_switch_ignored:
        return f"{feature} is switched off"
    if modes.lifecycle == "off":
        return "the lifecycle rollout is off"
    if modes.lifecycle == "canary":
        if user is None:
            return "" if switches.canary_runs_global else "the lifecycle rollout is canary: a call needs a user"
        listed = user in modes.lifecycle_users or switches.canary_allows_everyone
        return "" if listed else "the lifecycle rollout is canary, and this user is not listed"
    return "a user is needed" if user is None and switches.active_needs_a_user else ""
