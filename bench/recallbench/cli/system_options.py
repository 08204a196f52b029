"""Options of commands that ask systems under test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from recallbench.systems.config import Configured

F = TypeVar("F", bound=Callable[..., Any])
_SECONDS = click.FloatRange(min=0, min_open=True)
_OPTIONS = (
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        help="Where [systems.NAME] tables are. Default: recallbench.toml or pyproject.toml of the working folder.",
    ),
    click.option("--timeout", "timeout_s", type=_SECONDS, help="Live systems: seconds for one question. Default: 30."),
    click.option("--start-timeout", "start_timeout_s", type=_SECONDS, help="Live systems: for hello. Default: 60."),
    click.option("--repeats", type=click.IntRange(min=1), help="Live systems: ask each question so often. Default: 1."),
    click.option("--warm-up", type=click.IntRange(min=0), help="Live systems: untimed questions first. Default: 1."),
    click.option("--concurrency", type=click.IntRange(1, 256), help="Live systems: questions at once. Default: 1."),
    click.option("--restarts", type=click.IntRange(min=0), help="Live systems: of a dead one, in all. Default: 3."),
    click.option("--op", type=click.Choice(["search", "inject"]), help="stdio: what is asked with. Default: search."),
    click.option("--stdio-fd", type=click.IntRange(1, 9), help="stdio: descriptor of the answers. Default: 1."),
    click.option("--id-map", help="File of the system's ids and ours: JSON object or CSV (theirs,ours)."),
    click.option(
        "--missing",
        type=click.Choice(["error", "empty"]),
        help="run: what a question without a line is. Default: error, and empty for a run of ours.",
    ),
)
KEYS = (
    "timeout_s",
    "start_timeout_s",
    "repeats",
    "warm_up",
    "concurrency",
    "restarts",
    "op",
    "stdio_fd",
    "id_map",
    "missing",
)
"""The options that are settings of a system (`recallbench.systems.settings`)."""


def system_options(command: F) -> F:
    """Adds the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def overrides_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that were given; each system takes those that it knows."""
    return {key: options[key] for key in KEYS if options[key] is not None}


def configured_of(options: Mapping[str, Any]) -> dict[str, Configured]:
    """The systems of the configuration file."""
    from recallbench.systems.config import configured_systems

    return configured_systems(options["config"])
