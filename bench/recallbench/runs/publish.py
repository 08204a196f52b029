"""A stored run without what is private: ids, paths and notes hidden, no text, no time and machine."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from recallbench.runs.load import StoredRun
from recallbench.runs.store import VARYING, hidden, manifest_spec, published

_PATH = re.compile(r"(/|\.{1,2}/|~|[A-Za-z]:[\\/])|.*\\")


def public(run: StoredRun) -> StoredRun:
    """The run as `run --publish` writes it, for a report that may be shown to anyone.

    Ids of a run that was made with `--publish` are hashes already and stay as they are. What varies between two runs of
    the same inputs is left out, so that a committed report changes only with the code and the data.
    """
    manifest = {key: value for key, value in run.manifest.items() if key not in VARYING}
    evaluation = run.evaluation
    if not manifest["published"]:
        evaluation = published(evaluation)
        manifest["systems"] = {name: manifest_spec(spec, True) for name, spec in manifest["systems"].items()}
    names = {name: safe_name(name) for name in manifest["systems"]}
    manifest["systems"] = {names[name]: _without_paths(spec) for name, spec in manifest["systems"].items()}
    manifest["settings"] = _settings(manifest["settings"], names)
    manifest["published"] = True
    evaluation = replace(
        evaluation,
        runs=tuple(
            replace(one, system=names[one.system], spec=manifest["systems"][names[one.system]])
            for one in evaluation.runs
        ),
        checks=tuple(
            replace(one, system=names.get(one.system, one.system), message=_renamed(one.message, names))
            for one in evaluation.checks
        ),
    )
    return replace(run, evaluation=evaluation, manifest=manifest, texts={}, latency={})


def _renamed(message: str, names: dict[str, str]) -> str:
    """A message of a check with the systems that it names under their new names."""
    for name in sorted(names, key=len, reverse=True):
        if names[name] != name:
            message = message.replace(name, names[name])
    return message


def _without_paths(value: Any) -> Any:
    """A part of a spec with every path of a machine hashed; `owner/model` is the name of a model and stays."""
    if isinstance(value, dict):
        return {key: _without_paths(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_paths(one) for one in value]
    return hidden(value) if isinstance(value, str) and _PATH.match(value) else value


def safe_name(name: str) -> str:
    """The name of a system, hashed where it tells a place on someone's machine."""
    return f"system-{hidden(name)}" if "/" in name or "\\" in name else name


def _settings(settings: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    out = dict(settings)
    if out.get("baseline") is not None:
        out["baseline"] = names.get(out["baseline"], out["baseline"])
    out["allow_zero"] = [names.get(one, one) for one in out.get("allow_zero", ())]
    if out.get("corpora"):
        out["corpora"] = [hidden(one) for one in out["corpora"]]
    return out
