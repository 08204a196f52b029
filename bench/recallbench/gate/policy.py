"""The policy of a gate: `[gate]` of `recallbench.toml`, or `[tool.recallbench.gate]` of `pyproject.toml`."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from recallbench.datasets.jsonl import nearest, text
from recallbench.measures import parse_measure
from recallstack.errors import InputError

CONFIG = "recallbench.toml"
TABLES = ("gate", "systems")
"""What stands at the top of `recallbench.toml`."""
NO_NEW = "no-new"

Margin = Annotated[float, Meta(gt=0)]
Hard = float | Literal["no-new"]


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[gate.categories.NAME]`. margins, floors: as of the whole set, over the questions of this category."""

    margins: Mapping[str, Margin] = msgspec.field(default_factory=dict)
    floors: Mapping[str, float] = msgspec.field(default_factory=dict)


class Latency(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[gate.latency]`. ratio: the most that the percentile may be of the baseline's; 1.25 is a quarter slower."""

    ratio: Annotated[float, Meta(gt=0)]
    percentile: Annotated[float, Meta(gt=0, lt=100)] = 95.0


class Scenarios(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[gate.scenarios]`. run: ids of scenarios, or names of systems of the catalogue (all of theirs).

    folders: scenario files or folders of one's own, instead of the catalogue. implementation: as of `scenarios run`.
    """

    run: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    implementation: str = "reference"


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[gate]`. Every key but the margins has a default, and most can be given on the command line.

    dataset: a labelled set, by name or folder. data: where a public format lies. split, query: as of `run`.
    systems: specs, or names of `[systems.NAME]`. baseline: a folder that `baseline save` made. setup: a command run in
    the worktree of `--baseline-ref` before its system is asked. margins: measure -> the largest drop of its mean that
    is no reason not to merge; the first is the primary measure. floors: measure -> the mean that must be reached (for
    lower-is-better measures: that may not be exceeded). hard: as floors, or "no-new": no question may be worse than in
    the baseline. allow_zero: systems that may score 0 on every question. level: of the intervals. strict: whether
    INCONCLUSIVE is exit code 3. worse_within_margin: whether a significant drop within the margin fails. unjudged: what
    a returned memory is that nobody judged: "bounds" asks whether the best and the worst label for it change the
    verdict, "not-relevant" is for sets whose labels are complete. seed: of the resampling shown beside the verdict.
    """

    dataset: str = ""
    data: str = ""
    split: Literal["dev", "test", ""] = ""
    query: Literal["task", "context"] = "task"
    systems: tuple[str, ...] = ()
    baseline: str = ""
    setup: str = ""
    margins: Mapping[str, Margin] = msgspec.field(default_factory=dict)
    floors: Mapping[str, float] = msgspec.field(default_factory=dict)
    hard: Mapping[str, Hard] = msgspec.field(default_factory=dict)
    categories: Mapping[str, Category] = msgspec.field(default_factory=dict)
    latency: Latency | None = None
    scenarios: Scenarios = Scenarios()
    allow_zero: tuple[str, ...] = ()
    level: Annotated[float, Meta(ge=0.5, lt=1)] = 0.95
    strict: bool = False
    worse_within_margin: Literal["show", "fail"] = "show"
    unjudged: Literal["bounds", "not-relevant"] = "bounds"
    seed: Annotated[int, Meta(ge=0)] = 0

    def measures(self) -> tuple[str, ...]:
        """Every measure that a rule names, the primary one first."""
        named = [*self.margins, *self.floors, *self.hard]
        for one in self.categories.values():
            named += [*one.margins, *one.floors]
        return tuple(dict.fromkeys(named))


@dataclasses.dataclass(frozen=True, slots=True)
class Config:
    """A policy and where it was read. path: None where there is no file; folder: what its relative paths start from."""

    policy: Policy
    path: Path | None
    folder: Path


def read_config(path: Path | None = None) -> Config:
    """The policy of a file, or of the working folder's. No file there: a policy without rules.

    Raises InputError, naming file and key, for a file that cannot be read, an unknown key, a value of the wrong kind
    or range, or a measure that is none.
    """
    found = _found() if path is None else path
    if found is None:
        return Config(Policy(), None, Path())
    tables = tables_of(found)
    for key in tables:
        if key not in TABLES:
            raise InputError(f"{found}: unknown table [{key}]; {nearest(key, TABLES)}")
    values = tables.get("gate", {})
    if not isinstance(values, dict):
        raise InputError(f"{found}: gate must be a table: [gate]")
    return Config(policy_of(values, str(found)), found, found.parent)


def _found() -> Path | None:
    if Path(CONFIG).is_file():
        return Path(CONFIG)
    other = Path("pyproject.toml")
    return other if other.is_file() and "gate" in tables_of(other) else None


def tables_of(path: Path) -> dict[str, Any]:
    """The tables of recallbench in a TOML file; of `pyproject.toml` those under `tool.recallbench`."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; `recallbench init` writes one")
    try:
        found = tomllib.loads(text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: broken TOML: {' '.join(str(error).split())}") from None
    if path.name != "pyproject.toml":
        return found
    tool = found.get("tool", {})
    mine = tool.get("recallbench", {}) if isinstance(tool, dict) else {}
    return mine if isinstance(mine, dict) else {}


def policy_of(values: Mapping[str, Any], where: str) -> Policy:
    """A policy from plain values; measures get their canonical names. where: begins messages (the file)."""
    _known_keys(values, Policy, where, "gate")
    _check_numbers(values, where, "gate")
    for name, table in _tables(values, "categories", where):
        _known_keys(table, Category, where, f"gate.categories.{name}")
        _check_numbers(table, where, f"gate.categories.{name}")
    for key, kind in (("latency", Latency), ("scenarios", Scenarios)):
        if isinstance(values.get(key), dict):
            _known_keys(values[key], kind, where, f"gate.{key}")
    try:
        policy = msgspec.convert(dict(values), Policy)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {_said(str(error))}") from None
    return _named(policy, where)


def _known_keys(values: Mapping[str, Any], kind: type[msgspec.Struct], where: str, table: str) -> None:
    for key in values:
        if key not in kind.__struct_fields__:
            raise InputError(f"{where}: [{table}]: unknown key {key!r}; {nearest(key, kind.__struct_fields__)}")


def _tables(values: Mapping[str, Any], key: str, where: str) -> list[tuple[str, Mapping[str, Any]]]:
    given = values.get(key, {})
    if not isinstance(given, dict) or not all(isinstance(one, dict) for one in given.values()):
        raise InputError(f"{where}: gate.{key} holds tables: [gate.{key}.NAME]")
    return list(given.items())


def _check_numbers(values: Mapping[str, Any], where: str, table: str) -> None:
    """The tables measure -> number; msgspec does not say which key of a mapping is the bad one."""
    for key in ("margins", "floors", "hard"):
        given = values.get(key, {})
        if not isinstance(given, dict):
            raise InputError(f'{where}: [{table}.{key}] is a table of measures and numbers, such as "nDCG@5" = 0.02')
        for name, value in given.items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if key == "hard" and value == NO_NEW:
                continue
            if not number or (key == "margins" and value <= 0):
                wanted = {"margins": "a number above 0", "floors": "a number", "hard": f'a number or "{NO_NEW}"'}[key]
                raise InputError(f'{where}: [{table}.{key}] "{name}": must be {wanted}, not {value!r}')


_TOML = {
    "`array`": "a list",
    "`object`": "a table",
    "`str`": "a text",
    "`int`": "a whole number",
    "`bool`": "true/false",
}


def _said(message: str) -> str:
    """msgspec's message in the words of TOML, with the key in front."""
    what, _, path = message.partition(" - at `$")
    for theirs, ours in _TOML.items():
        what = what.replace(theirs, ours)
    return f"gate{path.rstrip('`')}: {what[:1].lower()}{what[1:]}"


def _named(policy: Policy, where: str) -> Policy:
    def canonical(table: str, given: Mapping[str, Any]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, value in given.items():
            try:
                measure = str(parse_measure(name))
            except InputError as error:
                raise InputError(f"{where}: [{table}]: {error}") from None
            if measure in out:
                raise InputError(f"{where}: [{table}]: {name!r} is another name of {measure!r}, which is there already")
            out[measure] = value
        return out

    return msgspec.structs.replace(
        policy,
        margins=canonical("gate.margins", policy.margins),
        floors=canonical("gate.floors", policy.floors),
        hard=canonical("gate.hard", policy.hard),
        categories={
            name: Category(
                margins=canonical(f"gate.categories.{name}.margins", one.margins),
                floors=canonical(f"gate.categories.{name}.floors", one.floors),
            )
            for name, one in policy.categories.items()
        },
    )
