"""`recallbench datasets convert` and `recallbench datasets fetch`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    metavar="NAME",
    help="native, beir, trec, squad, cmrc2018, locomo, longmemeval (a memory is a session), longmemeval-turns"
    " (a memory is a turn) or csv. Without it the names of the files tell it.",
)
@click.option("--skip-bad", is_flag=True, help="Leave out bad rows and labels, count and list them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def convert(source: Path, out: Path, form: str | None, skip_bad: bool, as_json: bool, quiet: bool) -> None:
    """Write SOURCE, a folder or file of a public format, as a labelled set in the new folder OUT.

    OUT gets dataset.toml, memories.jsonl and questions.jsonl, whole or not at all; a folder that is there is
    never written over. Memories pass one by one, so that a corpus may be larger than memory. A bad row ends
    it with file, line and reason (exit code 2), unless --skip-bad is given.
    """
    from recallbench.cli.show import print_json, progress
    from recallbench.datasets.convert import convert as convert_stream
    from recallbench.datasets.detect import stream_of

    form, stream = stream_of(source, form)
    with progress("convert", None, quiet) as step:
        done = convert_stream(
            stream, out, form=form, skip_bad=skip_bad, progress=lambda what, count: step(f"{count:,} memories {what}")
        )
    if as_json:
        print_json(
            {
                "format": form,
                "memories": done.memories,
                "questions": done.questions,
                "skipped": done.skipped,
                "reasons": list(done.reasons),
                "notes": list(done.notes),
            }
        )
        return
    for note in done.notes:
        click.echo(f"note: {note}")
    for reason in done.reasons:
        click.echo(f"skipped: {reason}")
    left_out = f"; {done.skipped} bad rows or labels skipped" if skip_bad else ""
    click.echo(f"{out}: {done.memories} memories and {done.questions} questions from the {form} form{left_out}")


@click.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path),
    help="Folder for the file, made if need be. Without it the user's data folder, where `--dataset NAME` finds it.",
)
@click.option("--url", help="Another address of the same file, such as a mirror; the checksum stays the same.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def fetch(name: str, folder: Path | None, url: str | None, quiet: bool) -> None:
    """Download the public file of NAME (locomo), and say its licence.

    The file is checked against a pinned SHA-256 and kept whole or not at all. A file that is there already is
    checked and left as it is.
    """
    from recallbench.cli.show import progress
    from recallbench.datasets import fetch as fetching

    one = fetching.public(name)
    target = (folder or fetching.folder_of(name)) / one.file
    click.echo(f"{one.file}: licence {one.licence}: {one.terms}")
    with progress(one.file, -(-one.size // fetching.CHUNK), quiet) as step:
        new = fetching.fetch(one, target.parent, url, lambda size: step(f"{size:,} bytes"))
    click.echo(f"{target}: {'downloaded' if new else 'is there already'}, SHA-256 as pinned")
