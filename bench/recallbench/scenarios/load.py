"""Scenario files: read, validated, every error with file and line."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from recallbench.datasets.jsonl import invalid
from recallbench.scenarios import yaml_lines
from recallbench.scenarios.base import Implementation, Vocabulary
from recallbench.scenarios.expectations import OPERATORS
from recallbench.scenarios.model import ARGUMENTS, CAPABILITIES, Expectation, Given, Raw, Scenario, Step, Title
from recallbench.scenarios.yaml_lines import Lines, Place
from recallstack.errors import InputError

_KINDS = ("event", "call", "advance_ms", "fault", "probe")
_AT = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)
_WHERE = re.compile(r" - at `\$[^`]*`")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_PART = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


def load(paths: Sequence[Path], reference: Implementation) -> list[Scenario]:
    """The scenarios of files, or of all `.yaml` and `.yml` files below folders, ordered by system and file.

    Raises InputError: what `load_file` raises, no file at all, an id twice.
    """
    files = [file for path in paths for file in (_files(path) if path.is_dir() else [path])]
    if not files:
        raise InputError(f"{', '.join(map(str, paths)) or 'no folder'}: no scenario file (*.yaml, *.yml)")
    found: dict[str, Scenario] = {}
    for file in files:
        one = load_file(file, reference)
        if one.id in found:
            raise InputError(f"{file}: scenario id {one.id!r} is also in {found[one.id].path}; ids are unique")
        found[one.id] = one
    return list(found.values())


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in (".yaml", ".yml") and path.is_file())


def load_file(path: Path, reference: Implementation) -> Scenario:
    """One scenario. Raises InputError, one line with file and line, for whatever is wrong with it."""
    values, lines = yaml_lines.read(path)
    if not isinstance(values, dict):
        raise InputError(f"{path}:1: a scenario is a mapping with id, system, kind, …; see docs/scenarios.md")
    try:
        raw = msgspec.convert(values, Raw)
    except msgspec.ValidationError as error:
        raise InputError(_located(error, lines)) from None
    vocabulary = reference.vocabulary(raw.system)
    if vocabulary is None:
        raise InputError(f"{lines.at(('system',))}: the reference stack has no system {raw.system!r}")
    for number, need in enumerate(raw.needs):
        _known(need, CAPABILITIES, lines, ("needs", number), "capability")
        _known(need, vocabulary.capabilities, lines, ("needs", number), f"capability of {raw.system}")
    for text, vector in raw.given.vectors.items():
        if not vector or not all(map(math.isfinite, vector)):
            raise InputError(f"{lines.at(('given', 'vectors', text))}: a vector is a list of finite numbers, not empty")
    for key in raw.given.config:
        _known(key, vocabulary.config, lines, ("given", "config", key), f"setting of {raw.system}")
    _kind(raw, reference.switches(raw.system), lines)
    steps = tuple(_step(one, vocabulary, lines, ("steps", n)) for n, one in enumerate(raw.steps))
    saved = {step.save for step in steps if step.save}
    return Scenario(
        id=raw.id,
        system=raw.system,
        kind=raw.kind,
        title=raw.title,
        source=raw.source,
        needs=raw.needs,
        symptom=raw.symptom,
        cause=raw.cause,
        given=raw.given,
        switches=raw.legacy if raw.kind == "bug" else raw.mutant,
        steps=steps,
        expect=_expectations(raw.expect, "expect", lines, saved),
        exact=_expectations(raw.exact, "exact", lines, saved),
        symptoms=_expectations(raw.symptoms, "symptoms", lines, saved),
        path=path,
        given_at=lines.at(("given",)),
    )


def _located(error: msgspec.ValidationError, lines: Lines) -> str:
    found = _AT.fullmatch(str(error))
    where = found[2] if found else ""
    place: Place = tuple(int(n) if n else key for key, n in _PART.findall(where))
    kinds: dict[Place, type[msgspec.Struct]] = {("given",): Given, ("title",): Title}
    fields = kinds.get(place, Raw).__struct_fields__
    what = _WHERE.sub("", invalid(error, fields, Raw))
    if place == ("id",) and "regex" in what:
        what = "an id is small letters, digits and single hyphens, such as query-one-turn-late"
    unknown = _UNKNOWN.search(what)
    line = lines.at((*place, unknown[1]) if unknown else place)  # an unknown key stands on a line of its own
    return f"{line}: {where.lstrip('.') + ': ' if where else ''}{what}"


def _known(word: str, known: Collection[str], lines: Lines, place: Place, what: str) -> None:
    if word not in known:
        near = difflib.get_close_matches(str(word), sorted(known), 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known)) or 'none'}"
        raise InputError(f"{lines.at(place)}: unknown {what} {word!r}; {hint}")


def _kind(raw: Raw, switches: Collection[str], lines: Lines) -> None:
    """A bug names its switches and its symptoms, a guard its mutant; each has expectations."""
    if raw.kind == "bug":
        if not raw.legacy:
            raise InputError(f"{lines.at(('kind',))}: a bug needs `legacy`: the switches that put the bug back")
        if not raw.symptoms:
            raise InputError(f"{lines.at(('kind',))}: a bug needs `symptoms`: what a user sees with the bug in")
        if raw.mutant:
            raise InputError(f"{lines.at(('mutant',))}: a bug has `legacy`, not `mutant`")
    else:
        if not raw.mutant:
            raise InputError(f"{lines.at(('kind',))}: a guard needs `mutant`: the fault that must fail it")
        if raw.legacy or raw.symptoms:
            raise InputError(f"{lines.at(('kind',))}: a guard has `mutant`, not `legacy` or `symptoms`")
    for key in raw.legacy or raw.mutant:
        _known(key, switches, lines, ("legacy" if raw.kind == "bug" else "mutant", key), f"switch of {raw.system}")
    if not raw.expect and not raw.exact:
        raise InputError(f"{lines.at(())}: nothing is expected; give `expect` (any implementation) or `exact`")
    if not raw.steps:
        raise InputError(f"{lines.at(('steps',))}: no steps; a scenario needs at least one probe")


def _step(values: dict[str, Any], vocabulary: Vocabulary, lines: Lines, place: Place) -> Step:
    kinds = [kind for kind in _KINDS if kind in values]
    if len(kinds) != 1:
        raise InputError(
            f"{lines.at(place)}: unknown step {{{', '.join(map(str, values))}}}; a step has one of {', '.join(_KINDS)}"
        )
    kind = kinds[0]
    rest = {key: value for key, value in values.items() if key != kind}
    where = lines.at(place)
    if kind == "advance_ms":
        _no_more(rest, (), lines, place, kind)
        if isinstance(values[kind], bool) or not isinstance(values[kind], int) or values[kind] < 0:
            raise InputError(f"{where}: advance_ms is {values[kind]!r}; it takes whole milliseconds, at least 0")
        return Step("advance", "advance_ms", {"ms": values[kind]}, where=where)
    if kind == "fault":
        _no_more(rest, (), lines, place, kind)
        fault = values[kind]
        if not isinstance(fault, dict) or len(fault) != 1:
            raise InputError(f"{where}: a fault is one part and what is wrong with it, such as {{embed: error}}")
        [(name, value)] = fault.items()
        _known(name, vocabulary.faults, lines, (*place, kind), "fault")
        allowed = vocabulary.faults[name]
        if allowed is not None:
            _known(value, allowed, lines, (*place, kind, name), f"fault of {name}")
        return Step("fault", name, {"value": value}, where=where)
    name = values[kind]
    if not isinstance(name, str):
        raise InputError(f"{where}: {kind} takes a name, not {name!r}")
    save = rest.pop("save", "")
    if not isinstance(save, str) or "." in save:
        raise InputError(f"{where}: save takes a name without a dot, not {save!r}")
    if kind == "event":
        _known(name, vocabulary.events, lines, (*place, kind), "event")
        _no_more(rest, ("data",), lines, place, name)
        data = rest.get("data") or {}
        if save or not isinstance(data, dict):
            raise InputError(f"{where}: an event has `data`, a mapping, and nothing to save")
        return Step("event", name, data, where=where)
    known = vocabulary.calls if kind == "call" else vocabulary.probes
    _known(name, known, lines, (*place, kind), kind)
    _no_more(rest, known[name], lines, place, name)
    for key, value in rest.items():
        _fits(key, value, lines, (*place, key))
    if kind == "probe" and not save:
        raise InputError(f"{where}: probe {name} saves nothing; add save: NAME")
    return Step("call" if kind == "call" else "probe", name, rest, save, where)


def _fits(key: str, value: Any, lines: Lines, place: Place) -> None:
    """An argument that means the same everywhere has its type checked before anything runs."""
    kind = ARGUMENTS.get(key)
    if kind is None:
        return
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{lines.at(place)}: {key} is {value!r}: {error}") from None


def _no_more(rest: Mapping[str, Any], allowed: Collection[str], lines: Lines, place: Place, what: str) -> None:
    for key in rest:
        _known(key, allowed, lines, (*place, key), f"argument of {what}")


def _expectations(
    entries: Sequence[dict[str, Any]], section: str, lines: Lines, saved: Collection[str]
) -> tuple[Expectation, ...]:
    out = []
    for number, entry in enumerate(entries):
        place: Place = (section, number)
        where = lines.at(place)
        if len(entry) != 1:
            raise InputError(f"{where}: an expectation is one operator, such as {{before: [hits.ids, a, b]}}")
        [(operator, arguments)] = entry.items()
        _known(operator, OPERATORS, lines, place, "operator")
        parts = arguments if isinstance(arguments, list) else [arguments]
        takes = OPERATORS[operator].arguments
        if len(parts) != takes + 1 or not isinstance(parts[0], str):
            raise InputError(f"{where}: {operator} takes a path and {takes} more, got {arguments!r}")
        name = parts[0].partition(".")[0]
        if name not in saved:
            raise InputError(f"{where}: nothing is saved as {name!r}; saved: {', '.join(sorted(saved)) or 'nothing'}")
        text = f"{operator}: {arguments if not isinstance(arguments, list) else ', '.join(map(str, arguments))}"
        out.append(Expectation(operator, parts[0], tuple(parts[1:]), where, text))
    return tuple(out)
