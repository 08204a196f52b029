"""`recallbench scenarios`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from recallbench.cli.system_options import system_options

if TYPE_CHECKING:
    from recallbench.scenarios.base import Implementation
    from recallbench.scenarios.model import Scenario

_FOLDER = click.option(
    "--folder",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Your own scenario files or folders instead of the catalogue. Repeatable.",
)
_SYSTEM = click.option("--system", "systems", multiple=True, metavar="NAME", help="Only this system. Repeatable.")
_LANG = click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Of the titles.")


@click.group()
def scenarios() -> None:
    """Replay documented bug sequences: on the reference stack, fixed and with the bug put back."""


def _chosen(folders: tuple[Path, ...], systems: tuple[str, ...], ids: tuple[str, ...] = ()) -> list[Scenario]:
    """The scenarios asked for, in the order of the catalogue."""
    import difflib

    from recallbench.scenarios.catalogue import catalogue_folder
    from recallbench.scenarios.load import load
    from recallbench.scenarios.reference import Reference
    from recallstack.errors import InputError

    found = load(list(folders) or [catalogue_folder()], Reference())
    known = list(dict.fromkeys(one.system for one in found))
    for name in systems:
        if name not in known:
            raise InputError(f"--system {name}: no scenario of it; systems: {', '.join(known)}")
    names = [one.id for one in found]
    for name in ids:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]}?" if near else "see `recallbench scenarios list`"
            raise InputError(f"unknown scenario {name!r}; {hint}")
    return [one for one in found if (not systems or one.system in systems) and (not ids or one.id in ids)]


@scenarios.command("list")
@_FOLDER
@_SYSTEM
@_LANG
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(folders: tuple[Path, ...], systems: tuple[str, ...], lang: str, as_json: bool) -> None:
    """All scenarios: system, kind, title."""
    from recallbench.cli.show import print_json
    from recallbench.text.tables import table

    found = _chosen(folders, systems)
    if as_json:
        print_json(
            [
                {
                    "id": one.id,
                    "system": one.system,
                    "kind": one.kind,
                    "title": {"en": one.title.en, "zh": one.title.zh},
                    "needs": list(one.needs),
                    "source": one.source,
                    "switches": dict(one.switches),
                }
                for one in found
            ]
        )
        return
    rows = [[one.id, one.system, one.kind, getattr(one.title, lang)] for one in found]
    click.echo(table(["scenario", "system", "kind", "title"], rows, "llll"))


@scenarios.command()
@click.argument("name")
@_FOLDER
def show(name: str, folders: tuple[Path, ...]) -> None:
    """One scenario: its file, as it is."""
    click.echo(_chosen(folders, (), (name,))[0].path.read_text(encoding="utf-8-sig"), nl=False)


@scenarios.command()
@click.argument("names", nargs=-1, metavar="[SCENARIO…]")
@_FOLDER
@_SYSTEM
@_LANG
@click.option(
    "--implementation",
    default="reference",
    show_default=True,
    metavar="SPEC",
    help="`reference`; `stdio:COMMAND` or the name of a configured system; `python:MODULE:NAME`, an object of yours "
    "with the methods of an implementation.",
)
@system_options
@click.option(
    "--variant",
    type=click.Choice(["fixed", "legacy", "both"]),
    default="both",
    show_default=True,
    help="legacy puts the named bug (of a guard: its mutant) into the fixed stack.",
)
@click.option("--junit", type=click.Path(path_type=Path), help="Also write JUnit XML to this file.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Also write Markdown to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def run(names: tuple[str, ...], **options: Any) -> int:
    """Run scenarios and print the matrix. Exit code 1 if any fails."""
    from recallbench.cli.show import print_json, progress
    from recallbench.scenarios import engine, render
    from recallbench.systems.loops import ended_by_signals

    chosen = _chosen(options["folders"], options["systems"], names)
    variants: tuple[Literal["fixed", "legacy"], ...] = ("fixed", "legacy")
    if options["variant"] != "both":
        variants = (options["variant"],)
    with (
        progress("scenarios", len(chosen) * len(variants)) as step,
        ended_by_signals(),
        closing(_implementation(options)) as implementation,
    ):
        results = engine.run(chosen, implementation, variants, lambda one: step(one.scenario.id))
    if options["as_json"]:
        print_json(render.values(results))
    else:
        click.echo(render.matrix(results, options["lang"]))
        if render.failed(results):
            click.echo("\n" + render.failures_text(results))
        click.echo("\n" + render.counts_line(results))
    for path, text in ((options["junit"], render.junit), (options["markdown"], render.summary)):
        if path is not None:
            _write(path, text(results))
    return 1 if render.failed(results) else 0


@scenarios.command()
@_FOLDER
@_SYSTEM
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def mutants(folders: tuple[Path, ...], systems: tuple[str, ...], as_json: bool) -> int:
    """Put every known fault into the reference stack, one at a time: which scenarios notice?

    Exit code 1 if one is noticed by none.
    """
    from recallbench.cli.show import print_json, progress
    from recallbench.scenarios import mutation
    from recallbench.scenarios.reference import Reference

    chosen = _chosen(folders, systems)
    with progress("mutants", 0) as step:
        found = mutation.check(chosen, Reference(), lambda one: step(one.name))
    left = mutation.survivors(found)
    if as_json:
        print_json(
            [{"system": one.system, "switches": dict(one.switches), "caught_by": list(one.caught)} for one in found]
        )
    else:
        click.echo(mutation.matrix(found), nl=False)
        for one in left:
            click.echo(f"survived: {one.system}: {one.name}: no scenario notices it")
    return 1 if left else 0


def _implementation(options: Mapping[str, Any]) -> Implementation:
    from recallbench.cli.system_options import configured_of, overrides_of
    from recallbench.scenarios.implementations import implementation_of

    return implementation_of(options["implementation"], configured_of(options), overrides_of(options))


@contextlib.contextmanager
def closing(implementation: Implementation) -> Iterator[Implementation]:
    """The implementation; what it has started is ended."""
    try:
        yield implementation
    finally:
        close = getattr(implementation, "close", None)
        if close is not None:
            close()


def _write(path: Path, text: str) -> None:
    from recallstack.errors import InputError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
