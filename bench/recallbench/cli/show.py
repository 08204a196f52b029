"""What commands share: progress on long work, JSON and Markdown on standard output."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


@contextlib.contextmanager
def progress(label: str, total: int | None, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A progress bar on standard error; nothing where that is no terminal. Yields a call for each step done.

    total: how many steps there will be, None where nobody knows.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)

        def step(name: str) -> None:
            bar.update(task, advance=1, description=f"{label}: {name}")

        yield step
