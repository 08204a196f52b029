"""Recipes as data: TOML in and out, names, differences, and one clear line for a mistake."""

from __future__ import annotations

import dataclasses

import pytest

from recallstack.errors import InputError
from recallstack.ranking.fusion import Fusion, Weights
from recallstack.ranking.presets import preset, presets
from recallstack.ranking.recipes import (
    INJECTION_SWITCHES,
    InjectRecipe,
    SearchRecipe,
    describe_difference,
    from_file,
    from_toml,
    to_toml,
)

# Names from protocols.md, "Preset names".
SEARCH = [
    "keyword-only",
    "bm25-okapi",
    "bm25-lucene",
    "vector-lsa",
    "rrf-k1",
    "rrf-k10",
    "rrf-k60",
    "rrf-weighted",
    "rrf-k60-like-override",
    "minmax",
    "minmax-like-override",
    "blend-auto",
    "blend-hybrid",
    "notes-k10",
    "pgvector-ngram",
    "pgvector-vector-only",
]


def test_every_documented_search_preset_is_there() -> None:
    assert [one.name for one in presets().values() if one.kind == "search"] == SEARCH


def test_the_sixteen_injection_combinations_are_there_once_each() -> None:
    found = [one for one in presets().values() if isinstance(one, InjectRecipe)]
    assert len({tuple(getattr(one, name) for name in INJECTION_SWITCHES) for one in found}) == 16
    assert {"inject-legacy", "inject-fixed", "inject-dual", "inject-dual+overfetch"} <= {one.name for one in found}
    legacy, fixed = preset("inject-legacy"), preset("inject-fixed")
    assert not any(getattr(legacy, name) for name in INJECTION_SWITCHES)
    assert all(getattr(fixed, name) for name in INJECTION_SWITCHES)


def test_capacity_without_dual_is_shown_as_without_effect() -> None:
    for one in presets().values():
        if isinstance(one, InjectRecipe):
            idle = one.capacity and not one.dual
            assert one.without_effect == (("capacity",) if idle else ())
            assert ("no effect" in one.description) == idle


@pytest.mark.parametrize("name", sorted(presets()))
def test_toml_round_trip(name: str) -> None:
    assert from_toml(to_toml(preset(name)), "test") == preset(name)


def test_a_legacy_recipe_and_its_fix_differ_in_one_field() -> None:
    found = describe_difference(preset("rrf-k60-like-override"), preset("rrf-k60"))
    assert found == [("fusion.like_override", "True", "False")]


def test_recipes_hash_and_compare_by_value() -> None:
    assert hash(preset("minmax")) == hash(dataclasses.replace(preset("minmax")))
    assert preset("rrf-k1") != preset("rrf-k10")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('name = "x"\nchanels = ["bm25"]', "unknown recipe field 'chanels'; did you mean 'channels'?"),
        ('name = "x"\n[fusion]\nkk = 3', "unknown recipe field 'fusion.kk'"),
        ('name = "x"\n[fusion]\nk = 0', "k is 0"),
        ('name = "x"\n[fusion]\nk = inf', "k is inf"),
        ('name = "x"\n[fusion.weights]\nvector = -1.0', "weight of vector is -1.0; it must be a number of at least 0"),
        ('name = "x"\nchannels = []', "channels is empty"),
        ('name = "x"\nchannels = ["bm25", "bm25"]', "named twice"),
        ('name = "x"\nchannels = ["grep"]', "recipe field 'channels'"),
        ('name = "x"\npool = 0', "pool is 0"),
        ('name = "x"\nkind = "sort"', "unknown recipe kind 'sort'; use one of search, inject"),
        ('kind = "search"', "has no name"),
        ('name = "x"\nkind = "inject"\nmax_items = 0', "max_items is 0"),
        ('name = "x"\nkind = "inject"\nk = -1.0', "k is -1.0"),
        ('name = "x"\n[bm25]\nb = 2.0', "0 <= b <= 1"),
        ('name = "x"\nfusion = 3', "must be a table"),
        ('name = "x"\nsource_weights = "facts"', "recipe field 'source_weights'"),
        ('name = "x"\nsensitivity = "on"', "recipe field 'sensitivity'"),
        ('name = "x"\n[keyword]\nmatch = "grep"', "recipe field 'keyword.match'"),
        ("name = ", "not valid TOML"),
    ],
)
def test_a_bad_recipe_gets_one_line(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        from_toml(text, "my.toml")
    message = str(caught.value)
    assert says in message
    assert message.startswith("my.toml: ")
    assert "\n" not in message


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown recipe 'rrf-k6'; did you mean rrf-k60"):
        preset("rrf-k6")


def test_a_missing_recipe_file_is_named(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=r"none\.toml: cannot read the recipe"):
        from_file(tmp_path / "none.toml")


def test_single_takes_one_channel() -> None:
    with pytest.raises(InputError, match="takes one channel, not 2"):
        SearchRecipe("x", channels=("bm25", "vector"), fusion=Fusion("single"))


def test_weights_must_be_finite() -> None:
    with pytest.raises(InputError, match="weight of bm25 is nan"):
        Weights(bm25=float("nan"))
