"""Systems by name, from `recallbench.toml` or `[tool.recallbench]` of `pyproject.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recallstack.errors import InputError
from recallstack.ranking.presets import presets

FILES = ("recallbench.toml", "pyproject.toml")
"""Where systems are looked for, the first that has any."""


@dataclass(frozen=True, slots=True)
class Configured:
    """A `[systems.NAME]` table. folder: what its relative paths start from."""

    spec: str
    values: Mapping[str, Any]
    where: str
    folder: Path


def configured_systems(file: Path | None = None) -> dict[str, Configured]:
    """The systems of a file, or of the working folder's. None there: no systems.

    Raises InputError for a file that cannot be read, a table without `spec`, or a name that a preset has.
    """
    if file is not None:
        return _systems(file, _tables(file))
    for name in FILES:
        path = Path(name)
        if path.is_file():
            tables = _tables(path)
            if "systems" in tables or name == FILES[0]:
                return _systems(path, tables)
    return {}


def _tables(path: Path) -> Mapping[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: is no TOML: {error}") from None
    if path.name == "pyproject.toml":
        tool = found.get("tool", {})
        return tool.get("recallbench", {}) if isinstance(tool, dict) else {}
    return found


def _systems(path: Path, tables: Mapping[str, Any]) -> dict[str, Configured]:
    out: dict[str, Configured] = {}
    given = tables.get("systems", {})
    if not isinstance(given, dict):
        raise InputError(f"{path}: systems must hold tables: [systems.NAME]")
    for name, table in given.items():
        where = f"{path}: [systems.{name}]"
        if not isinstance(table, dict) or not isinstance(table.get("spec"), str):
            raise InputError(f'{where}: needs spec, such as spec = "stdio:node plugin.mjs"')
        if name in presets():
            raise InputError(f"{where}: a preset has this name; choose another")
        values = {key: value for key, value in table.items() if key != "spec"}
        if values and table["spec"].partition(":")[0] not in ("stdio", "http", "https", "mcp", "mcp+http", "run"):
            raise InputError(f"{where}: a recipe takes no {next(iter(values))!r}; its settings are in its own file")
        out[name] = Configured(table["spec"], values, where, path.resolve().parent)
    return out
