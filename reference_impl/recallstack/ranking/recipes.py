"""Recipes: what a system does, as data. They print, hash, and go to and from TOML."""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
import typing
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from recallstack.errors import InputError
from recallstack.ranking.fusion import Fusion
from recallstack.ranking.specs import (
    CHANNEL_ORDER,
    BM25Spec,
    ChannelName,
    ChannelSpec,
    EntitySpec,
    KeywordSpec,
    RecentSpec,
    VectorSpec,
)

INJECTION_SWITCHES = ("dual", "overfetch", "capacity", "rerank")
"""The four documented fixes of injection, in the order in which a combination is named."""


@dataclass(frozen=True, slots=True)
class SearchRecipe:
    """The search tool: channels, then fusion, rerank, source weights, sensitivity, then the first `top_k` rows.

    pool: rows a channel contributes; None is twice what is asked for (recall semantics, section 3).
    include_hidden: whether archived and forgotten rows may come back.
    rerank: `ngrams` orders the fused rows by the share of the question's n-grams that they cover (section 7).
    source_weights: `notes` multiplies fused scores by what the name of a row's file is worth (section 6).
    sensitivity: `channel` drops rows that the session's channel may not see (section 6).
    """

    name: str
    kind: Literal["search"] = "search"
    description: str = ""
    channels: tuple[ChannelName, ...] = ("keyword", "vector", "bm25")
    fusion: Fusion = field(default_factory=Fusion)
    pool: int | None = None
    include_hidden: bool = False
    rerank: Literal["off", "ngrams"] = "off"
    source_weights: Literal["off", "notes"] = "off"
    sensitivity: Literal["off", "channel"] = "off"
    keyword: KeywordSpec = field(default_factory=KeywordSpec)
    vector: VectorSpec = field(default_factory=VectorSpec)
    bm25: BM25Spec = field(default_factory=BM25Spec)
    entity: EntitySpec = field(default_factory=EntitySpec)
    recent: RecentSpec = field(default_factory=RecentSpec)

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not self.channels:
            raise InputError(f"recipe {self.name!r}: channels is empty; name at least one of {CHANNEL_ORDER}")
        if len(set(self.channels)) != len(self.channels):
            raise InputError(f"recipe {self.name!r}: a channel is named twice in {list(self.channels)}")
        if self.fusion.method == "single" and len(self.channels) != 1:
            raise InputError(
                f"recipe {self.name!r}: fusion method 'single' takes one channel, not {len(self.channels)}"
            )
        if self.pool is not None and self.pool < 1:
            raise InputError(f"recipe {self.name!r}: pool is {self.pool}; it must be at least 1")
        _check_bm25(self.name, self.bm25)

    def spec(self, channel: ChannelName) -> ChannelSpec:
        """The settings of one channel."""
        return typing.cast(ChannelSpec, getattr(self, channel))


@dataclass(frozen=True, slots=True)
class InjectRecipe:
    """Injection before a model request; the four switches are the documented fixes (section 5).

    sensitivity: `channel` makes rows ineligible that the session's channel may not see (section 6).
    """

    name: str
    kind: Literal["inject"] = "inject"
    description: str = ""
    max_items: int = 5
    importance_threshold: float = 3
    k: float = 60
    overfetch: bool = True
    dual: bool = True
    capacity: bool = True
    rerank: bool = True
    selective_rerank: bool = True
    scope: Literal["off", "soft", "strict"] = "soft"
    drop_superseded: bool = False
    sensitivity: Literal["off", "channel"] = "off"
    floor: float | None = None
    vector: VectorSpec = field(default_factory=VectorSpec)
    bm25: BM25Spec = field(default_factory=BM25Spec)

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.max_items < 1:
            raise InputError(f"recipe {self.name!r}: max_items is {self.max_items}; it must be at least 1")
        if not (math.isfinite(self.k) and self.k > 0):
            raise InputError(f"recipe {self.name!r}: k is {self.k}; it must be a number above 0")
        _check_bm25(self.name, self.bm25)

    @property
    def pool(self) -> int:
        """Rows that each channel contributes."""
        return 2 * self.max_items

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Switches that are on and cannot change anything in this combination."""
        return ("capacity",) if self.capacity and not self.dual else ()


def with_switches(recipe: InjectRecipe, on: Collection[str]) -> InjectRecipe:
    """The recipe with these of INJECTION_SWITCHES on and the others off."""
    return dataclasses.replace(
        recipe,
        dual="dual" in on,
        overfetch="overfetch" in on,
        capacity="capacity" in on,
        rerank="rerank" in on,
    )


Recipe = SearchRecipe | InjectRecipe
_KINDS: dict[str, type[Any]] = {"search": SearchRecipe, "inject": InjectRecipe}


def _check_name(name: str) -> None:
    if not name.strip() or any(unicodedata.category(char) in ("Cc", "Zl", "Zp", "Cs") for char in name):
        raise InputError(f"recipe {name!r}: a name is one line of text without control characters")


def _check_bm25(name: str, spec: BM25Spec) -> None:
    if not (math.isfinite(spec.k1) and spec.k1 >= 0 and 0 <= spec.b <= 1):
        raise InputError(f"recipe {name!r}: bm25 needs k1 >= 0 and 0 <= b <= 1, got k1={spec.k1}, b={spec.b}")


def to_dict(value: Any) -> dict[str, Any]:
    """A recipe (or a part) as plain values; fields that are None are left out."""
    out: dict[str, Any] = {}
    for one in dataclasses.fields(value):
        inner = getattr(value, one.name)
        if dataclasses.is_dataclass(inner):
            inner = to_dict(inner)
        elif isinstance(inner, tuple):
            inner = list(inner)
        if inner is not None:
            out[one.name] = inner
    return out


def to_toml(recipe: Recipe) -> str:
    """The recipe as TOML, every field written out."""
    import tomli_w

    return tomli_w.dumps(to_dict(recipe))


def from_dict(values: dict[str, Any], where: str) -> Recipe:
    """A recipe from plain values. `where` names the source in messages.

    Raises InputError for an unknown kind or field, a wrong type, or a value out of range.
    """
    kind = values.get("kind", "search")
    if kind not in _KINDS:
        raise InputError(f"{where}: unknown recipe kind {kind!r}; use one of {', '.join(_KINDS)}")
    if not isinstance(values.get("name"), str) or not values["name"]:
        raise InputError(f'{where}: the recipe has no name; add a line name = "my-recipe"')
    try:
        return typing.cast(Recipe, _build(_KINDS[kind], values, where, ""))
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(where) else f"{where}: {text}") from None


def from_toml(text: str, where: str) -> Recipe:
    """A recipe from TOML text; errors as in `from_dict`."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: not valid TOML: {error}") from None
    return from_dict(values, where)


def from_file(path: Path) -> Recipe:
    """A recipe from a TOML file; errors as in `from_dict`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read the recipe: {error}") from None
    return from_toml(text, str(path))


def _build(kind: type[Any], values: Any, where: str, path: str) -> Any:
    if not isinstance(values, dict):
        raise InputError(f"{where}: {path or 'the recipe'} must be a table, not {values!r}")
    hints = typing.get_type_hints(kind)
    known = [one.name for one in dataclasses.fields(kind)]
    arguments: dict[str, Any] = {}
    for key, value in values.items():
        full = f"{path}.{key}" if path else key
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known fields: {', '.join(known)}"
            raise InputError(f"{where}: unknown recipe field {full!r}; {hint}")
        hint_type = hints[key]
        if dataclasses.is_dataclass(hint_type):
            arguments[key] = _build(typing.cast(type[Any], hint_type), value, where, full)
            continue
        try:
            arguments[key] = msgspec.convert(value, hint_type)
        except msgspec.ValidationError as error:
            choices = ", ".join(map(str, typing.get_args(hint_type))) if typing.get_origin(hint_type) is Literal else ""
            raise InputError(
                f"{where}: recipe field {full!r}: {error}" + (f"; known: {choices}" if choices else "")
            ) from None
    return kind(**arguments)


def describe_difference(a: Recipe, b: Recipe) -> list[tuple[str, str, str]]:
    """(field, value in a, value in b) of every field that differs; name and description aside."""
    left, right = _flat(to_dict(a)), _flat(to_dict(b))
    keys = [*left, *(key for key in right if key not in left)]
    return [
        (key, str(left.get(key, "unset")), str(right.get(key, "unset")))
        for key in keys
        if key not in ("name", "description") and left.get(key) != right.get(key)
    ]


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            out.update(_flat(value, f"{prefix}{key}."))
        else:
            out[f"{prefix}{key}"] = value
    return out
