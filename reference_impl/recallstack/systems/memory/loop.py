"""The closed loop: save, candidate, promote, recall in a new session, injected. No `active` before it passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from recallstack.errors import InputError
from recallstack.systems.memory.admin import Admin
from recallstack.systems.memory.model import NewMemory, digest_id
from recallstack.systems.memory.portal import Portal

STAGES = ("saved", "listed", "promoted", "recalled", "injected", "answered")


@dataclass(frozen=True, slots=True)
class LoopReport:
    """passed: the stages that went well, in order. failed: the first that did not, or empty. why: one line."""

    passed: tuple[str, ...]
    failed: str = ""
    why: str = ""

    @property
    def ok(self) -> bool:
        return not self.failed


def closed_loop(portal: Portal, admin: Admin, user: str, agent: Callable[[str], str] | None = None) -> LoopReport:
    """Run the loop for a test user, who must be in canary, and record it if it passes.

    agent: a prompt in, a reply out; the reply must hold the check word. None: the prompt alone is looked at, and
    the last stage is left out. What the loop saves stays with the test user.
    """
    now = portal.settings.now()
    word = digest_id("w", user, str(now))
    passed: list[str] = []

    def report(why: str) -> LoopReport:
        return LoopReport(tuple(passed), STAGES[len(passed)], why)

    try:
        saved = portal.save_candidates(
            user, f"closed-loop-{now}", [NewMemory(content=f"The check word of closed loop {now} is {word}.")]
        )
        if not saved.durable:
            return report("the candidate is kept in the process only; look at the warnings of the portal's start")
        [candidate] = saved.ids
        passed.append("saved")
        if candidate not in [one.id for one in admin.candidates(user)]:
            return report("the admin side does not list the candidate")
        passed.append("listed")
        promoted = admin.promote(candidate, caller="closed-loop")
        passed.append("promoted")
        turn = portal.prepare(user, f"closed-loop-{now}-new", f"What is the check word of closed loop {now}?")
        if promoted.ids[0] not in turn.recalled:
            return report(f"a new session does not recall it{_because(turn.remarks)}")
        passed.append("recalled")
        if promoted.ids[0] not in turn.injected or word not in turn.prompt:
            return report(f"it is recalled and not injected: injection is {turn.mode} for this user")
        passed.append("injected")
        if agent is not None:
            reply = agent(turn.prompt)
            portal.finish(turn, reply)
            if word not in reply:
                return report("the agent's reply does not use it")
            passed.append("answered")
        else:
            portal.finish(turn, None)
        portal.record_loop(user)
    except InputError as error:
        return report(str(error))
    return LoopReport(tuple(passed))


def _because(remarks: tuple[str, ...]) -> str:
    return f": {remarks[0]}" if remarks else ""
