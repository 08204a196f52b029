"""`recallbench compare`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("others", nargs=-1, metavar="SYSTEM_A SYSTEM_B | RUN_B")
@click.option(
    "--flips", default=10, show_default=True, type=click.IntRange(min=0), help="Questions shown of each kind."
)
@click.option("--seed", default=0, show_default=True, help="Of bootstrap and randomization test.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: all questions that flipped.")
def compare(run: Path, others: tuple[str, ...], flips: int, seed: int, as_json: bool) -> None:
    """B against A on the same questions: RUN SYSTEM_A SYSTEM_B, or RUN_A RUN_B.

    Two runs are compared system by system: each system that both have; where each has one, those two. They must be
    of the same memories and questions; labels that changed between them are told.
    """
    from recallbench.cli.show import print_json
    from recallbench.runs.comparing import across, pair, pairing_markdown, pairing_values
    from recallbench.runs.load import load_run
    from recallstack.errors import InputError

    if len(others) == 2:
        found = [pair(load_run(run).evaluation, *others, seed=seed)]
    elif len(others) == 1:
        found = across(load_run(run), load_run(Path(others[0])), seed=seed)
    else:
        raise InputError("give RUN SYSTEM_A SYSTEM_B, or RUN_A RUN_B; see recallbench compare --help")
    if as_json:
        print_json([pairing_values(one) for one in found])
    else:
        click.echo("\n".join(pairing_markdown(one, flips) for one in found), nl=False)
