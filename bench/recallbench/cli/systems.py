"""`recallbench systems`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recallbench.cli.system_options import system_options

if TYPE_CHECKING:
    from recallbench.systems.check_talk import Finding


@click.group()
def systems() -> None:
    """Systems under test: check an adapter, get the adapter for your language, list what is configured."""


@systems.command()
@click.argument("spec")
@system_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(spec: str, as_json: bool, **options: Any) -> int:
    """Ask a system a few things, and say line by line what is wrong with its answers.

    SPEC is what --system takes. Exit code 1 if anything fails.
    """
    from recallbench.cli.show import print_json
    from recallbench.cli.system_options import configured_of, overrides_of
    from recallbench.systems.check import check_system
    from recallbench.systems.spec import parse

    def show(finding: Finding) -> None:
        if not as_json:
            click.echo(f"{finding.level:<8}{finding.name:<18}{finding.message}")

    found = check_system(parse(spec, configured_of(options)), overrides_of(options), show)
    failed = sum(one.level == "FAIL" for one in found)
    if as_json:
        print_json([{"level": one.level, "name": one.name, "message": one.message} for one in found])
    else:
        warned = sum(one.level == "warning" for one in found)
        click.echo(f"{failed} failed, {warned} warnings, {sum(one.level == 'ok' for one in found)} ok")
    return 1 if failed else 0


@systems.command("list")
@click.option("--config", type=click.Path(path_type=Path), help="Default: as for `run`.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(config: Path | None, as_json: bool) -> None:
    """The systems of the configuration file."""
    from recallbench.cli.show import print_json
    from recallbench.systems.config import configured_systems
    from recallbench.text.tables import table

    found = configured_systems(config)
    if as_json:
        print_json([{"name": name, "spec": one.spec} for name, one in found.items()])
    elif found:
        click.echo(table(["system", "spec"], [[name, one.spec] for name, one in found.items()], "ll"))
    else:
        click.echo("no [systems.NAME] table in recallbench.toml or pyproject.toml")


@systems.command()
@click.argument("language", type=click.Choice(["javascript", "python"]))
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@click.option("--force", is_flag=True, help="Write over files that are there and differ.")
def adapter(language: str, folder: Path, force: bool) -> None:
    """Put the adapter for a language into FOLDER (default: the working folder): one file, no packages."""
    from recallbench.systems.adapters import write_adapter

    for path in write_adapter(language, folder, force):
        click.echo(path)
