"""`recallbench datasets power` and `recallbench datasets grow`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("name", metavar="NAME|FOLDER")
@click.option("--data", type=click.Path(path_type=Path), help="Folder or file of a public set.")
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="SPEC",
    default=("presets",),
    show_default="presets, all of search and injection",
    help="Systems whose differences are looked at, as in `recallbench run`. Repeatable.",
)
@click.option(
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME",
    help="The first is the primary one. Default: those of a run. Repeatable.",
)
@click.option("--difference", type=float, metavar="D", help="Also say how many questions would find a difference of D.")
@click.option("--split", type=click.Choice(["dev", "test"]), help="Only the questions of this split.")
@click.option("--query", type=click.Choice(["task", "context"]), default="task", show_default=True, help="As in `run`.")
@click.option("--seed", default=0, show_default=True, help="Of the randomization test.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of Markdown.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def power(
    name: str,
    data: Path | None,
    systems: tuple[str, ...],
    measures: tuple[str, ...],
    difference: float | None,
    split: str | None,
    query: str,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> int:
    """The smallest difference that a set can detect, which systems it tells apart, and whether it is saturated.

    Runs the systems, and takes the spread of their per-question differences: the smallest true difference that
    would be found at 80 % power (two-sided 5 %) for each measure; the share of significant pairs among the better
    half of the systems (randomization test, Holm's correction). Exit code 2 if a trust check fails.
    """
    from recallbench.cache.candidates import CandidateCache, cache_folder
    from recallbench.cli.show import print_json, progress
    from recallbench.datasets.conversation import asked_with_context
    from recallbench.datasets.registry import load
    from recallbench.evaluation.experiment import Experiment
    from recallbench.labelling.power import power_report
    from recallbench.labelling.power_table import power_markdown, power_values
    from recallbench.systems.specs import systems_of

    labelled = load(name, data=data)
    if query == "context":
        labelled = asked_with_context(labelled)
    retrieve = CandidateCache(cache_folder())
    chosen = systems_of(systems, retrieve)
    with progress(labelled.info.name, len(chosen), quiet) as step:
        result = Experiment(labelled, chosen, measures, split=split, cache=retrieve, progress=step)
    report = power_report(result.evaluations[0], difference, seed=seed)
    if as_json:
        print_json(power_values(report))
    else:
        click.echo(power_markdown(report), nl=False)
    return 0 if report.evaluation.valid else 2


@click.command()
@click.argument("name", metavar="NAME|FOLDER")
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--rows", required=True, type=click.IntRange(min=1), help="Memories that the grown set shall have in all."
)
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same bytes.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder or file of a public set.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def grow(name: str, out: Path, rows: int, seed: int, data: Path | None, as_json: bool, quiet: bool) -> None:
    """Write a set, grown to a number of memories by generated ones, as the new folder OUT.

    A generated memory keeps the frame of one memory of the set (function words, punctuation) and draws its words
    from others, numbers and identifiers anew. Its id begins with gen-, its tags hold `generated`; no label names it,
    and it is never half alike (trigrams) to a labelled relevant memory. Questions and labels stay as they are.
    """
    import dataclasses

    from recallbench.cli.show import print_json, progress
    from recallbench.datasets.registry import load
    from recallbench.labelling.grow import grow as grow_set

    labelled = load(name, data=data)
    with progress("grow", None, quiet) as step:
        done = grow_set(labelled, out, rows, seed=seed, progress=lambda count: step(f"{count:,} rows"))
    if as_json:
        print_json(dataclasses.asdict(done))
        return
    click.echo(
        f"{out}: {done.memories} memories, {done.generated} of them generated ({done.thrown_away} draws thrown away:"
        f" too alike to a relevant memory), {len(labelled.questions)} questions as they were"
    )
