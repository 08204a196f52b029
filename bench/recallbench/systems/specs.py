"""The systems that the specs of `--system` name."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

from recallbench.systems.base import System
from recallbench.systems.config import Configured, configured_systems
from recallbench.systems.recipe import RecipeSystem, recipe_of
from recallbench.systems.runfile import RunFile
from recallbench.systems.settings import Asking, Settings, keys_of, public_values, settings_of
from recallbench.systems.spec import Spec, command_of, digest, parse, public_url, shown
from recallstack.errors import InputError
from recallstack.ranking.pipeline import Retrieve
from recallstack.ranking.presets import presets
from recallstack.ranking.recipes import Recipe

HASHED_BYTES = 50_000_000
"""Largest file of a command whose content is hashed into a run's id."""


def systems_of(
    specs: Sequence[str],
    retrieve: Retrieve,
    *,
    configured: Mapping[str, Configured] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> list[System]:
    """The systems that the specs name, each once, in order.

    `presets` is every preset, `presets:search` and `presets:inject` those of one kind. configured: systems by name;
    None takes those of the working folder's configuration file. overrides: settings from the command line; each system
    takes those that it knows.
    Raises InputError for an unknown spec, or for two systems of one name that differ.
    """
    if configured is None:
        configured = configured_systems()
    found: dict[str, tuple[Any, Callable[[], System]]] = {}
    for spec in specs:
        for name, what, make in _named(spec, retrieve, configured, overrides or {}):
            if found.setdefault(name, (what, make))[0] != what:
                raise InputError(
                    f"--system {spec}: another system is named {name!r}; give one a name: --system NAME=KIND:…"
                )
    return [make() for _, make in found.values()]


def _named(
    spec: str, retrieve: Retrieve, configured: Mapping[str, Configured], overrides: Mapping[str, Any]
) -> list[tuple[str, Any, Callable[[], System]]]:
    """(name, what it is, how it is made) of each system that one spec names."""
    recipes: list[Recipe]
    kind, _, rest = spec.partition(":")
    if kind == "presets" and spec not in configured:
        if rest not in ("", "search", "inject") or spec.endswith(":"):
            raise InputError(f"--system {spec}: use presets, presets:search or presets:inject")
        recipes = [recipe for recipe in presets().values() if rest in ("", recipe.kind)]
    else:
        one = parse(spec, configured)
        if one.kind != "recipe":
            system = external(one, overrides)
            return [(system.name, system.spec, lambda: system)]
        recipe = recipe_of(one.rest)
        recipes = [dataclasses.replace(recipe, name=one.name) if one.name else recipe]
    return [(recipe.name, recipe, partial(RecipeSystem, recipe, retrieve)) for recipe in recipes]


def external(one: Spec, overrides: Mapping[str, Any] | None = None) -> System:
    """The system of a spec that is no recipe. Nothing is started yet.

    Raises InputError for bad settings, a program that is not there, a file that cannot be read, a missing extra.
    """
    given = {key: value for key, value in (overrides or {}).items() if key in keys_of(one.kind)}
    settings = settings_of(one.kind, {**one.values, **given}, one.where)
    settings = _resolved(settings, one)
    if one.kind == "run":
        return RunFile(one, settings)
    from recallbench.systems.external import ExternalSystem
    from recallbench.systems.matching import read_id_map

    assert isinstance(settings, Asking)
    connect, spec, name = _way(one, settings)
    id_map = read_id_map(Path(settings.id_map)) if settings.id_map else None
    values = {"system": one.kind, **spec, "settings": public_values(settings)}
    if id_map is not None:
        values["id_map"] = digest(repr(sorted(id_map.items())).encode())
    return ExternalSystem(one.name or name, values, settings, connect, id_map)


def _resolved(settings: Settings, one: Spec) -> Settings:
    """The same settings: paths from the configuration's folder, secrets from the environment."""
    import msgspec

    changed: dict[str, Any] = {}
    if one.folder is not None:
        if settings.id_map:
            changed["id_map"] = str(one.folder / settings.id_map)
        if hasattr(settings, "folder"):
            changed["folder"] = str(one.folder / settings.folder)
    for key in ("headers", "env"):
        if getattr(settings, key, None):
            changed[key] = {name: _secret(text, f"{one.where}: {key}") for name, text in getattr(settings, key).items()}
    return msgspec.structs.replace(settings, **changed) if changed else settings


def _secret(text: str, where: str) -> str:
    if not text.startswith("env:"):
        return text
    value = os.environ.get(text[4:])
    if value is None:
        raise InputError(f"{where}: the environment has no variable {text[4:]!r}; set it")
    return value


def _way(one: Spec, settings: Settings) -> tuple[Callable[[], Any], dict[str, Any], str]:
    """(how a connection is made, its part of the spec, a name)."""
    from recallbench.systems.settings import HttpSettings, McpHttpSettings, McpSettings, StdioSettings

    if isinstance(settings, (StdioSettings, McpSettings)):
        command = command_of(one)
        folder = Path(settings.folder) if settings.folder else None
        from recallbench.systems.process import program_of

        program_of(command, one.where, folder)
        spec = {"command": [shown(part) for part in command], "files": _files(command, folder)}
        if isinstance(settings, StdioSettings):
            from recallbench.systems.stdio import StdioConnection

            return (lambda: StdioConnection(command, settings)), spec, _command_name(command)
        from recallbench.systems.mcp import mcp_command

        return mcp_command(command, settings), spec, _command_name(command)
    address = _address(one)
    spec = {"url": public_url(address)}
    if isinstance(settings, HttpSettings):
        from recallbench.systems.http import http_connection

        return http_connection(address, settings), spec, urlsplit(address).netloc.rpartition("@")[2]
    from recallbench.systems.mcp import mcp_address

    assert isinstance(settings, McpHttpSettings)
    return mcp_address(address, settings), spec, urlsplit(address).netloc.rpartition("@")[2]


def _address(one: Spec) -> str:
    parts = urlsplit(one.rest)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"{one.where}: the address must begin with http:// or https:// and a host")
    return one.rest


def _command_name(command: Sequence[str]) -> str:
    """The file that a command runs, or else its program."""
    files = [word for word in command[1:] if not word.startswith("-") and PurePath(word).suffix]
    return PurePath((files or command)[0]).name


def _files(command: Sequence[str], folder: Path | None) -> dict[str, str]:
    """Name -> hash of the files that a command names: another version of a plugin is another system."""
    out = {}
    for word in command[1:]:
        path = (folder or Path()) / word
        try:
            if path.is_file() and path.stat().st_size <= HASHED_BYTES:
                out[path.name] = digest(path.read_bytes())
        except (OSError, ValueError):
            continue  # a word that is no path
    return out
