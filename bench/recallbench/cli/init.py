"""`recallbench init`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command()
@click.option("--notes", type=click.Path(path_type=Path), help="A folder of your Markdown notes: makes a starter set.")
@click.option(
    "--memories", type=click.Path(path_type=Path), help="Your memories as JSON Lines, or a set's folder: the same."
)
@click.option("--dataset", metavar="NAME|FOLDER", help="A labelled set that is there already.")
@click.option("--system", default="", metavar="SPEC", help='What will be gated, such as "stdio:node plugin.mjs".')
@click.option(
    "--ci", type=click.Choice(["github", "gitlab", "none"]), default="github", show_default=True, help="The CI file."
)
@click.option("--out", type=click.Path(path_type=Path), default=Path(), show_default=True, help="The repository.")
@click.option("--set", "set_name", default="recall-set", show_default=True, help="Folder of the starter set.")
@click.option(
    "--questions", type=click.IntRange(10, 10_000), default=100, show_default=True, help="Of the starter set, at most."
)
@click.option("--seed", default=0, show_default=True, help="Of the memories that are asked for.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def init(**options: Any) -> None:
    """Start in a repository of your own: recallbench.toml, a starter set, the CI file. Nothing is written over.

    The starter set asks for single memories by their rarest words or their title. It notices that recall broke; replace
    its questions by ones that people ask. It holds the texts of your memories: look before you commit it.
    """
    from recallbench.cli.show import progress
    from recallbench.datasets.registry import load
    from recallbench.starter import write
    from recallbench.starter.margins import proposed
    from recallbench.starter.memories import memories_of, write_starter
    from recallstack.errors import InputError

    notes, memories, dataset, out = (options[key] for key in ("notes", "memories", "dataset", "out"))
    if sum(one is not None for one in (notes, memories, dataset)) != 1:
        raise InputError(
            "say what to ask about: --notes FOLDER, --memories FILE or --dataset NAME|FOLDER (one of them)"
        )
    ci_file = write.CI_FILES.get(options["ci"])
    files = [write.POLICY, *([ci_file] if ci_file else [])]
    write.absent(out, [*files, *([] if dataset else [options["set_name"]])])
    made = 0
    if dataset is None:
        folder = out / options["set_name"]
        unit = "one entry of a note" if notes is not None else "one memory row"
        made = write_starter(folder, memories_of(notes, memories), options["questions"], options["seed"], unit)
        labelled = load(f"./{folder}" if not folder.is_absolute() else str(folder))
    else:
        labelled = load(dataset)
    measures = tuple(dict.fromkeys((labelled.info.primary_measure, "R@20")))
    with progress("margins", None, options["quiet"]) as step:
        margins = proposed(labelled, measures, step)
    named = options["set_name"] if dataset is None else _from(out, dataset)
    contents = {write.POLICY: write.policy_text(named, options["system"], margins, complete=dataset is None)}
    if ci_file:
        contents[ci_file] = write.template(f"{options['ci']}.yml")
    write.write_all(out, contents)
    if made:
        click.echo(f"{out / options['set_name']}: {made} questions; they hold texts of yours: look before you commit")
    for name in contents:
        click.echo(f"{out / name}")
    click.echo(_next(options["system"]))


def _from(out: Path, dataset: str) -> str:
    """A set's name as it is, a folder as seen from the policy's."""
    import os

    path = Path(dataset)
    if not any(mark in dataset for mark in ("/", os.sep)):
        return dataset
    try:
        return Path(os.path.relpath(path, out)).as_posix()
    except ValueError:  # Windows: another drive
        return path.resolve().as_posix()


def _next(system: str) -> str:
    from recallbench.systems.spec import kind_of

    first = "" if system else "Name your system in recallbench.toml: spec = … in [systems.plugin].\n"
    check = "  recallbench systems check plugin     what is wrong with the adapter, line by line\n"
    return (
        f"{first}Next:\n{check if not system or kind_of(system) not in (None, 'recipe') else ''}"
        "  recallbench baseline save            what it returns now; commit the folder\n"
        "  recallbench gate                     after a change: is it fit to merge?"
    )
