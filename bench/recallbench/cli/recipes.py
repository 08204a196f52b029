"""`recallbench recipes`."""

from __future__ import annotations

import click


@click.group()
def recipes() -> None:
    """List, show and compare recipes."""


@recipes.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_recipes(as_json: bool) -> None:
    """Every preset, one a line."""
    from recallbench.cli.show import print_json
    from recallbench.text.tables import table
    from recallstack.ranking.presets import presets
    from recallstack.ranking.recipes import to_dict

    if as_json:
        print_json([to_dict(one) for one in presets().values()])
        return
    rows = [[one.name, one.kind, one.description] for one in presets().values()]
    click.echo(table(["recipe", "kind", "what it does"], rows, "lll"))


@recipes.command()
@click.argument("name", metavar="NAME|FILE.toml")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(name: str, as_json: bool) -> None:
    """A recipe as TOML, every field written out; edit it and pass the file to --system."""
    from recallbench.cli.show import print_json
    from recallbench.systems.recipe import recipe_of
    from recallstack.ranking.recipes import to_dict, to_toml

    recipe = recipe_of(name)
    if as_json:
        print_json(to_dict(recipe))
    else:
        click.echo(to_toml(recipe), nl=False)


@recipes.command()
@click.argument("first", metavar="NAME|FILE.toml")
@click.argument("second", metavar="NAME|FILE.toml")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diff(first: str, second: str, as_json: bool) -> None:
    """The fields in which two recipes differ."""
    from recallbench.cli.show import print_json
    from recallbench.systems.recipe import recipe_of
    from recallbench.text.tables import table
    from recallstack.ranking.recipes import describe_difference

    a, b = recipe_of(first), recipe_of(second)
    found = describe_difference(a, b)
    if as_json:
        print_json([{"field": field, a.name: left, b.name: right} for field, left, right in found])
    elif found:
        click.echo(table(["field", a.name, b.name], [list(row) for row in found], "lll"))
    else:
        click.echo(f"{a.name} and {b.name} do the same")
