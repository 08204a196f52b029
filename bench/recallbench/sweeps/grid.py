"""What a sweep tries: a grid over fusion method, k, weights and pool, as search recipes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from recallstack.errors import InputError
from recallstack.ranking.fusion import Fusion, Weights
from recallstack.ranking.recipes import SearchRecipe
from recallstack.ranking.specs import CHANNEL_ORDER, BM25Spec, ChannelName

GridMethod = Literal["rrf", "rrf-weighted", "minmax", "blend-auto", "blend-hybrid"]


def weight_grid(channels: Sequence[ChannelName], steps: int = 5) -> tuple[Weights, ...]:
    """All weights of these channels in whole multiples of 1/steps that sum to 1; other channels get 0.

    Raises InputError for fewer than one step.
    """
    if steps < 1:
        raise InputError(f"a grid of weights needs at least 1 step, not {steps}")
    names = [name for name in CHANNEL_ORDER if name in channels]
    nothing = dict.fromkeys(CHANNEL_ORDER, 0.0)
    return tuple(
        Weights(**{**nothing, **{name: part / steps for name, part in zip(names, parts, strict=True)}})
        for parts in _compositions(len(names), steps)
    )


def _compositions(parts: int, total: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(parts - 1, total - first):
            yield (first, *rest)


def _base() -> SearchRecipe:
    return SearchRecipe("sweep", bm25=BM25Spec(normalise=True))


@dataclass(frozen=True)
class Grid:
    """Every method over every k, weights and pool that it uses.

    base: channels and their settings, the same for all recipes; its fusion and pool are not used, and no step may come
    after the fusion. By default BM25 is
    divided by its best score, as `blend` needs a scale (the other methods are blind to it).
    k: for the rrf methods. weights: for rrf-weighted, minmax and blend-hybrid; empty is `weight_grid` over the base's
    channels. pools: rows each channel contributes. like_override: whether the legacy override acts.
    """

    base: SearchRecipe = field(default_factory=_base)
    methods: tuple[GridMethod, ...] = ("rrf", "rrf-weighted", "minmax")
    k: tuple[float, ...] = (1, 5, 10, 20, 40, 60, 100)
    weights: tuple[Weights, ...] = ()
    pools: tuple[int, ...] = (10, 20, 40, 100)
    like_override: tuple[bool, ...] = (False,)

    def recipes(self) -> tuple[SearchRecipe, ...]:
        """The recipes, each named by its settings, in the order of the fields.

        Raises InputError for an unknown method, a value out of range, a grid that holds no recipe, or a base with a
        step after the fusion, which counting ranks of fused lists does not see.
        """
        for name in ("rerank", "source_weights", "sensitivity"):
            if getattr(self.base, name) != "off":
                raise InputError(f'base {self.base.name!r} has {name} after its fusion; set {name} = "off" to sweep')
        out = [self._recipe(name, fusion, pool) for name, fusion in self._fusions() for pool in self.pools]
        if not out:
            raise InputError("the grid of the sweep holds no recipe; give at least one method, pool, and k or weights")
        return tuple({recipe.name: recipe for recipe in out}.values())

    def _recipe(self, name: str, fusion: Fusion, pool: int) -> SearchRecipe:
        return replace(self.base, name=f"{name}-pool{pool}", description="", fusion=fusion, pool=pool)

    def _fusions(self) -> Iterator[tuple[str, Fusion]]:
        weights = self.weights or weight_grid(self.base.channels)
        for method in self.methods:
            if method not in get_args(GridMethod):
                raise InputError(f"unknown method {method!r} in the grid; use one of {', '.join(get_args(GridMethod))}")
            for override in self.like_override:
                tail = "-like-override" if override else ""
                if method == "rrf":
                    for k in self.k:
                        yield f"rrf-k{k:g}{tail}", Fusion("rrf", k=k, like_override=override)
                elif method == "rrf-weighted":
                    for k in self.k:
                        for one in weights:
                            fusion = Fusion("rrf", k=k, weighted=True, weights=one, like_override=override)
                            yield f"rrf-weighted-k{k:g}-{self._named(one)}{tail}", fusion
                elif method == "minmax":
                    for one in weights:
                        yield f"minmax-{self._named(one)}{tail}", Fusion("minmax", weights=one, like_override=override)
                elif method == "blend-auto":
                    yield "blend-auto", Fusion("blend")
                else:
                    for one in weights:
                        yield f"blend-hybrid-{self._named(one)}", Fusion("blend", "hybrid", weights=one)

    def _named(self, weights: Weights) -> str:
        channels = [name for name in CHANNEL_ORDER if name in self.base.channels]
        return "-".join(f"{name}={getattr(weights, name):g}" for name in channels)
