"""Who may see which file: levels by file name, channels by session key, and nothing where in doubt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from recallstack.errors import InputError
from recallstack.ranking.rows import Sensitivity
from recallstack.ranking.source_weights import LEVELS
from recallstack.systems.notes.switches import NO_SWITCHES, Switches

Channel = Literal["owner", "group", "guest"]
GROUP_PREFIXES = ("group:", "grp:")
_STRICTEST: tuple[Channel, ...] = ("group", "guest", "owner")


def level_of(file: str, switches: Switches = NO_SWITCHES) -> Sensitivity:
    """The level of a file by its name (the part behind the last `/`), whatever its folder."""
    other: Sensitivity = "public" if switches.other_file_is_public else "personal"
    return LEVELS.get(file.rsplit("/", 1)[-1], other)


def visible(channel: Channel | None, switches: Switches = NO_SWITCHES) -> frozenset[Sensitivity]:
    """The levels that a channel may see; None, the unknown channel, sees nothing."""
    every: frozenset[Sensitivity] = frozenset(("public", "personal", "secret"))
    if channel == "owner" or (channel is None and switches.unknown_is_owner):
        return every
    if channel is None:
        return frozenset()
    loose = switches.group_sees_personal if channel == "group" else switches.guest_sees_personal
    return every - {"secret"} if loose else frozenset(("public",))


@dataclass(frozen=True, slots=True)
class SessionMap:
    """Which session talks over which key. sessions: session key -> session id. owners: keys of the owner."""

    sessions: Mapping[str, str]
    owners: frozenset[str] = frozenset()

    def channel(self, session: str | None, switches: Switches = NO_SWITCHES) -> Channel | None:
        """The channel of a session id: the strictest over its keys; None if no key has it."""
        found = {self._of_key(key) for key, one in self.sessions.items() if one == session}
        order = reversed(_STRICTEST) if switches.looser_of_two_keys else _STRICTEST
        return next((channel for channel in order if channel in found), None)

    def _of_key(self, key: str) -> Channel:
        if key.lower().startswith(GROUP_PREFIXES):
            return "group"
        return "owner" if key in self.owners else "guest"


def read_session_map(path: Path) -> dict[str, str]:
    """Session key -> session id, from JSON as `{"c2c:1A2B": {"sessionId": "8f0c"}, …}`.

    Raises InputError for a file that cannot be read or has another form; its content is not in the message.
    """
    try:
        values = json.loads(path.read_bytes(), object_pairs_hook=_unique)
    except OSError as error:
        raise InputError(f"{path}: the session map cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: the session map is not JSON with each key once; mend it") from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: the session map must be a JSON object, key -> {{sessionId: …}}")
    for key, value in values.items():
        if not (isinstance(value, dict) and isinstance(value.get("sessionId"), str) and value["sessionId"]):
            raise InputError(f'{path}: key {key!r} of the session map needs an object with a text "sessionId"')
    return {key: value["sessionId"] for key, value in values.items()}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key that stands twice could name two sessions, and only one would be kept: refused."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError
    return values
