"""Exclude globs: `**` over folders, `*` and `?` inside a name, `[…]` a set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from recallstack.errors import InputError

DEFAULT_EXCLUDE = ("**/.index/**", "**/node_modules/**")
"""What the documented system leaves out."""
_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[(?:![^/]|[^!/])[^]/]*\]|.", re.DOTALL)


def check_globs(globs: Sequence[str]) -> None:
    """Raises InputError for a glob that can match nothing: empty, or not relative to a root."""
    for glob in globs:
        if not glob or glob.startswith("/"):
            raise InputError(f"exclude glob {glob!r} must be relative to the root and not empty, like **/drafts/**")


def excluded(path: str, globs: Sequence[str]) -> bool:
    """Whether a file is left out. path: relative to its root, with `/`."""
    return any(_compiled(one).fullmatch(path) for one in globs)


def folder_excluded(path: str, globs: Sequence[str]) -> bool:
    """Whether everything below a folder is left out, so that nobody needs to look inside."""
    return any(one.endswith("/**") and _compiled(one.removesuffix("/**")).fullmatch(path) for one in globs)


@lru_cache(maxsize=256)
def _compiled(glob: str) -> re.Pattern[str]:
    out = []
    for token in _TOKEN.findall(glob):
        if token == "**/":
            out.append("(?:.*/)?")
        elif token == "**":
            out.append(".*")
        elif token == "*":
            out.append("[^/]*")
        elif token == "?":
            out.append("[^/]")
        elif len(token) > 1:
            out.append(_set(token[1:-1]))
        else:
            out.append(re.escape(token))
    return re.compile("".join(out), re.DOTALL)


def _set(inner: str) -> str:
    """One character of a set, or with `!` none of it; `a-z` is a range, empty if it runs backwards. Never `/`."""
    inverted = inner.startswith("!")
    inner, place, parts = inner.removeprefix("!"), 0, []
    while place < len(inner):
        if inner[place + 1 : place + 2] == "-" and place + 2 < len(inner):
            low, high = inner[place], inner[place + 2]
            parts += [f"{re.escape(low)}-{re.escape(high)}"] if low <= high else []
            place += 3
        else:
            parts.append(re.escape(inner[place]))
            place += 1
    if inverted:
        return f"[^/{''.join(parts)}]"
    return f"[{''.join(parts)}]" if parts else "(?!)"
