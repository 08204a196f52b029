"""`recallbench cache`."""

from __future__ import annotations

import click


@click.group()
def cache() -> None:
    """Where channel candidates are kept, and how to drop them."""


@cache.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(as_json: bool) -> None:
    """The folder, and how much it holds. `RECALLBENCH_CACHE` names another folder."""
    from recallbench.cache.candidates import cache_folder, cache_info
    from recallbench.cli.show import print_json

    folder = cache_folder()
    files, size = cache_info(folder)
    if as_json:
        print_json({"folder": str(folder), "files": files, "bytes": size})
    else:
        click.echo(f"{folder}: {files} files, {size / 1e6:.1f} MB")


@cache.command()
def clear() -> None:
    """Delete all candidates of the cache."""
    from recallbench.cache.candidates import cache_clear, cache_folder

    folder = cache_folder()
    click.echo(f"{folder}: {cache_clear(folder)} files deleted")
