"""What `--system` takes, as systems."""

from __future__ import annotations

from collections.abc import Sequence

from recallbench.systems.base import System
from recallbench.systems.recipe import RecipeSystem, recipe_of
from recallstack.errors import InputError
from recallstack.pipeline import Retrieve
from recallstack.presets import presets
from recallstack.recipes import Recipe


def systems_of(specs: Sequence[str], retrieve: Retrieve) -> list[System]:
    """The systems that the specs name, each once, in order.

    `presets` is every preset, `presets:search` and `presets:inject` those of one kind.
    Raises InputError for an unknown spec, or for two systems of one name that differ.
    """
    recipes: dict[str, Recipe] = {}
    for spec in specs:
        name, _, kind = spec.partition(":")
        if name == "presets":
            if kind not in ("", "search", "inject"):
                raise InputError(f"--system {spec}: use presets, presets:search or presets:inject")
            found = [recipe for recipe in presets().values() if kind in ("", recipe.kind)]
        else:
            found = [recipe_of(spec)]
        for recipe in found:
            if recipes.setdefault(recipe.name, recipe) != recipe:
                raise InputError(f"--system {spec}: another system is named {recipe.name!r}; rename one")
    return [RecipeSystem(recipe, retrieve) for recipe in recipes.values()]
