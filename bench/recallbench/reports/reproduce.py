"""The command that makes a run again, from its manifest."""

from __future__ import annotations

import shlex
from typing import Any

from recallbench.datasets.registry import FORMATS
from recallbench.datasets.registry import names as built_in
from recallbench.evaluation.evaluate import DEFAULT_MEASURES
from recallbench.runs.load import StoredRun
from recallbench.scenarios.sessions import NONE
from recallstack.ranking.presets import presets
from recallstack.ranking.recipes import to_dict

_REPLAYED = ("turns", "steps", "latency_ms", "step_ms", "rewinds", "cancels", "seed")


def command(run: StoredRun) -> str:
    """`recallbench run …`, one option a line. What the manifest does not tell stands in capitals."""
    settings = run.manifest["settings"]
    lines = ["recallbench run", *_dataset(run.name), *_systems(run.manifest["systems"])]
    measures = list(run.manifest["measures"])
    if measures != list(dict.fromkeys((measures[0], *DEFAULT_MEASURES))):
        lines += [f"--measure {shlex.quote(one)}" for one in measures]
    for option, value in (("--baseline", settings.get("baseline")), ("--split", settings.get("split"))):
        if value is not None:
            lines.append(f"{option} {shlex.quote(value)}")
    for option, values in (
        ("--category", settings.get("categories")),
        ("--corpus", settings.get("corpora")),
        ("--allow-zero", settings.get("allow_zero")),
    ):
        lines += [f"{option} {shlex.quote(one)}" for one in values or ()]
    if settings.get("query") == "context":
        lines.append("--query context")
    lines.append(f"--depth {settings['depth']}")
    lines += [f"--{name.replace('_', '-')}" for name in ("publish", "include_text") if settings.get(name)]
    return " \\\n  ".join(lines)


def _dataset(name: str) -> list[str]:
    if name in {one.name for one in built_in()}:
        return [f"--dataset {name}"]
    if name in FORMATS:
        return [f"--dataset {name} --data FOLDER"]
    return ["--dataset FOLDER"]


def _systems(specs: dict[str, dict[str, Any]]) -> list[str]:
    known = {name: to_dict(recipe) for name, recipe in presets().items()}
    fixed = next((spec for spec in specs.values() if spec.get("replay", {}).get("bug") == NONE), None)
    if fixed is not None:
        name = next((name for name, spec in known.items() if _core(spec) == _core(fixed)), "recipe:RECIPE.toml")
        given = [f"--{key.replace('_', '-')} {fixed['replay'][key]}" for key in _REPLAYED]
        return [f"--replay sessions --system {name}", *given]
    for group in ("presets", "presets:search", "presets:inject"):
        kind = group.partition(":")[2]
        if specs == {name: spec for name, spec in known.items() if kind in ("", spec["kind"])}:
            return [f"--system {group}"]
    return [f"--system {shlex.quote(_system(name, spec, known))}" for name, spec in specs.items()]


def _core(spec: dict[str, Any]) -> dict[str, Any]:
    """A recipe without its name: a replay names its variants after their bugs."""
    return {key: value for key, value in spec.items() if key not in ("name", "description", "replay")}


def _system(name: str, spec: dict[str, Any], known: dict[str, dict[str, Any]]) -> str:
    if known.get(name) == spec:
        return name
    if "system" not in spec:
        return f"recipe:{name}.toml"
    where = spec.get("command") or spec.get("url") or spec.get("file") or "…"
    return f"{spec['system']}:{shlex.join(where) if isinstance(where, list) else where}"
