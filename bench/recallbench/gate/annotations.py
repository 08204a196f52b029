"""A gate's result as workflow commands of GitHub Actions, which shows them on the checks page of a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from recallbench.gate import lines
from recallbench.gate.judge import GateResult
from recallbench.gate.outcome import Outcome, Verdict
from recallbench.text.escape import one_line

MOST = 10
"""GitHub shows ten annotations of a kind a step; more would hide which came first."""


def workflow_commands(result: GateResult, file: str = "") -> str:
    """One command a line: the verdict, then each rule that did not pass, those that fail first.

    file: the policy, from the top of the repository; an annotation names it, so that its reader knows where to look.
    """
    where = f"file={_property(file)}," if file else ""
    level = _level(result.verdict, result.policy.strict)
    out = [_command(level, where, "recallbench", lines.headline(result))]
    found = [(_level(one.verdict, result.policy.strict), one, said) for one, said in _told(result)]
    for kind in ("error", "warning"):
        mine = [(one, said) for level_, one, said in found if level_ == kind]
        out += [_command(kind, where, f"recallbench: {one.title}", said) for one, said in mine[: MOST - 1]]
    return "\n".join(out) + "\n"


def _told(result: GateResult) -> Iterator[tuple[Outcome, str]]:
    """The outcomes that did not pass, each with its reason."""
    several = len(result.pairs) > 1
    for one in result.outcomes:
        if one.verdict is not Verdict.PASS:
            yield one, lines.reason(one, result, several)


def _level(verdict: Verdict, strict: bool) -> str:
    if verdict is Verdict.PASS:
        return "notice"
    return "warning" if verdict is Verdict.INCONCLUSIVE and not strict else "error"


def _command(level: str, where: str, title: str, message: str) -> str:
    return f"::{level} {where}title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    """As GitHub's own toolkit escapes a message."""
    return one_line(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
