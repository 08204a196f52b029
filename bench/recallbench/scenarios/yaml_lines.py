"""Safe YAML with the line of every value, so that an error can name it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from recallstack.errors import InputError

Place = tuple[str | int, ...]
LARGEST = 1_000_000
"""Characters of one file (choice): far above any scenario, far below what harms."""


class Lines:
    """Line numbers (1-based) of the values of one document, by path."""

    def __init__(self, path: Path, lines: dict[Place, int]) -> None:
        self.path, self._lines = path, lines

    def at(self, place: Place) -> str:
        """`FILE:LINE` of a value, or of the nearest value around it."""
        while place and place not in self._lines:
            place = place[:-1]
        return f"{self.path}:{self._lines.get(place, 1)}"


def read(path: Path) -> tuple[Any, Lines]:
    """The document of a file as plain values, and where each stands.

    Raises InputError with file and line: unreadable, no YAML, a tag that would build an object, a key twice,
    an alias (`*name`): a few of them can stand for more values than a machine holds.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if len(text) > LARGEST:
        raise InputError(f"{path}: has {len(text)} characters; a scenario has at most {LARGEST}")
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                line = event.start_mark.line + 1 if event.start_mark else 1
                raise InputError(
                    f"{path}:{line}: alias *{event.anchor}; write the value out, scenarios have no aliases"
                )
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        lines: dict[Place, int] = {}
        if node is not None:
            _walk(node, (), lines, path)
        return yaml.safe_load(text), Lines(path, lines)
    except yaml.constructor.ConstructorError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        what = " ".join(str(error.problem).split())
        raise InputError(f"{path}:{line}: {what}; scenarios hold plain values only") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = " ".join(str(getattr(error, "problem", None) or error).split())
        raise InputError(f"{path}:{mark.line + 1 if mark else 1}: not valid YAML: {what}") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None


def _walk(node: yaml.Node, place: Place, lines: dict[Place, int], path: Path) -> None:
    lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for number, one in enumerate(node.value):
            _walk(one, (*place, number), lines, path)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, one in node.value:
            name = str(key.value)
            if name in seen:
                raise InputError(f"{path}:{key.start_mark.line + 1}: key {name!r} stands here twice")
            seen.add(name)
            _walk(one, (*place, name), lines, path)
