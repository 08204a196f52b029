"""`recallbench datasets from-log`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("from-log")
@click.argument("log", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--memories", type=click.Path(path_type=Path), help="Memory rows (JSON Lines), or the folder of a set.")
@click.option("--field", "fields", multiple=True, metavar="FIELD=NAME", help="What the log calls a field. Repeatable.")
@click.option("--table", help="Of an SQLite log. Default: its only table.")
@click.option("--questions", "sample", type=click.IntRange(min=1), help="At most so many questions, drawn by chance.")
@click.option("--seed", default=0, show_default=True, help="Of the draw, and of the order of the pairs.")
@click.option("--region", "regions", multiple=True, metavar="CC", help="Of telephone numbers. Default: CN and US.")
@click.option("--also", multiple=True, metavar="REGEX", help="Mask this too. Repeatable.")
@click.option("--skip-bad", is_flag=True, help="Leave out bad rows, and returned ids without a text; count them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def from_log(
    log: Path,
    out: Path,
    memories: Path | None,
    fields: tuple[str, ...],
    table: str | None,
    sample: int | None,
    seed: int,
    regions: tuple[str, ...],
    also: tuple[str, ...],
    skip_bad: bool,
    as_json: bool,
) -> None:
    """Turn LOG, past recalls in JSON Lines or SQLite, into the new folder OUT: a set to be judged.

    A row has query, returned (ids, or objects with id and text) and, if known, used (ids), time and session. OUT gets
    the set without labels, and pool.csv with the pairs that were returned, for `datasets judge`. E-mail addresses,
    telephone numbers, keys and paths become marks such as <email-1>; names of people stay, so read before you share.
    """
    import dataclasses

    from recallbench.cli.show import print_json
    from recallbench.labelling.from_log import POOL, field_names
    from recallbench.labelling.from_log import from_log as make
    from recallbench.labelling.masking import REGIONS, Masker

    done = make(
        log,
        out,
        Masker(regions or REGIONS, also),
        memories=memories,
        names=field_names(fields),
        table=table,
        sample=sample,
        seed=seed,
        skip_bad=skip_bad,
    )
    if as_json:
        print_json(dataclasses.asdict(done))
        return
    for reason in done.reasons:
        click.echo(f"skipped: {reason}")
    masked = ", ".join(f"{count} {kind}" for kind, count in done.masked.items()) or "nothing"
    click.echo(f"{out}: {done.questions} questions from {done.recalls} recalls, {done.memories} memories")
    click.echo(f"masked: {masked}")
    click.echo(f"next: recallbench datasets judge {out} {out / POOL}   ({done.pairs} pairs)")
