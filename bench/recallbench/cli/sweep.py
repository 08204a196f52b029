"""`recallbench sweep`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--dataset", required=True, metavar="NAME|FOLDER", help="A labelled set.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder or file of a public set.")
@click.option("--base", metavar="RECIPE", help="Channels and settings to keep: a search preset or FILE.toml.")
@click.option("--method", "methods", multiple=True, help="rrf, rrf-weighted, minmax, blend-auto, blend-hybrid.")
@click.option("--k", "ks", multiple=True, type=float, help="A k of the rrf methods. Repeatable.")
@click.option("--pool", "pools", multiple=True, type=int, help="Rows that each channel contributes. Repeatable.")
@click.option("--measure", "measures", multiple=True, metavar="NAME", help="The first one chooses. Repeatable.")
@click.option(
    "--how",
    type=click.Choice(["dev/test", "cross-validation", "descriptive"]),
    help="How choosing and reporting are kept apart. Default: the best that the set allows.",
)
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Rows of the table to print.")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Also write every row to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sweep(
    dataset: str,
    data: Path | None,
    base: str | None,
    methods: tuple[str, ...],
    ks: tuple[float, ...],
    pools: tuple[int, ...],
    measures: tuple[str, ...],
    how: str | None,
    top: int,
    csv_file: Path | None,
    as_json: bool,
) -> None:
    """Score a grid of fusion recipes, choose on dev questions and report the choice on test questions."""
    import dataclasses
    import json
    from typing import Any

    from recallbench.cache.candidates import CandidateCache, cache_folder
    from recallbench.cli.show import print_json
    from recallbench.datasets.registry import load
    from recallbench.evaluation.experiment import measures_for
    from recallbench.sweeps.choose import sweep_set
    from recallbench.sweeps.grid import Grid
    from recallbench.systems.recipe import recipe_of
    from recallbench.text.tables import table
    from recallstack.errors import InputError
    from recallstack.ranking.recipes import SearchRecipe, to_dict

    labelled = load(dataset, data=data)
    changes: dict[str, Any] = {"methods": methods, "k": ks, "pools": pools}
    grid = dataclasses.replace(Grid(), **{name: value for name, value in changes.items() if value})
    if base is not None:
        recipe = recipe_of(base)
        if not isinstance(recipe, SearchRecipe):
            raise InputError(f"--base {base}: a sweep needs a search recipe, not one of kind {recipe.kind}")
        grid = dataclasses.replace(grid, base=recipe)
    chosen = measures_for(labelled, measures or ("nDCG@5", "R@5", "R@20", "RR"))
    found = sweep_set(labelled, CandidateCache(cache_folder()), grid, chosen, how=how)  # type: ignore[arg-type]
    if csv_file is not None:
        try:
            found.table.to_csv(csv_file, index=False)
        except OSError as error:
            raise InputError(f"{csv_file}: cannot write: {error.strerror or error}") from None
    if as_json:
        print_json(
            {
                "dataset": labelled.info.name,
                "sentence": found.sentence,
                "how": found.how,
                "chosen": to_dict(found.chosen),
                "reported": found.reported,
                "rows": json.loads(found.table.to_json(orient="records")),
                "notes": list(found.notes),
            }
        )
        return
    names = [str(measure) for measure in chosen]
    best = found.table.sort_values(names[0], ascending=not chosen[0].higher_is_better, kind="stable").head(top)
    rows = [[str(row["recipe"]), *(f"{row[name]:.3f}" for name in names)] for row in best.to_dict("records")]
    click.echo(f"{len(found.table)} recipes; the first {len(rows)} by {names[0]}, on the questions chosen on:\n")
    click.echo(table(["recipe", *names], rows))
    reported = ", ".join(f"{name} {value:.3f}" for name, value in found.reported.items())
    click.echo(f"\n{found.sentence}\nreported: {reported}")
    for note in found.notes:
        click.echo(f"note: {note}")
