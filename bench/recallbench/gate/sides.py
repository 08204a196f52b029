"""Both sides of a gate: what the baseline returned, and what the systems under test return."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from recallbench.datasets.model import LabelledSet
from recallbench.evaluation.evaluate import depth_for, run_system
from recallbench.gate.baselines.changes import places_of
from recallbench.gate.baselines.files import load
from recallbench.gate.baselines.model import run_of
from recallbench.gate.baselines.revision import checked_out, moved, refuse_foreign, set_up
from recallbench.gate.judge import GateResult, judge, measures_of
from recallbench.gate.policy import Config, Policy
from recallbench.systems.base import System, SystemRun
from recallbench.systems.config import Configured
from recallbench.systems.specs import systems_of
from recallstack.errors import InputError
from recallstack.ranking.pipeline import Retrieve

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """How systems are asked. configured: `[systems.NAME]` tables; overrides: settings from the command line."""

    retrieve: Retrieve
    configured: Mapping[str, Configured] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress | None = None


def labelled_of(config: Config) -> LabelledSet:
    """The labelled set of a policy: its split, asked as it says. Paths start from the policy's file."""
    from recallbench.datasets.conversation import asked_with_context
    from recallbench.datasets.registry import load as load_set
    from recallbench.datasets.select import select

    policy = config.policy
    if not policy.dataset:
        raise InputError("no labelled set is named; give --dataset NAME|FOLDER, or dataset = … in [gate]")
    data = config.folder / policy.data if policy.data else None
    labelled = load_set(_located(policy.dataset, config.folder), data=data)
    if policy.split:
        labelled = select(labelled, split=policy.split)
    return asked_with_context(labelled) if policy.query == "context" else labelled


def _located(dataset: str, folder: Path) -> str:
    """A set's name as it is; a folder as seen from the working folder."""
    from recallbench.datasets.registry import formats, names

    known = {one.name for one in (*names(), *formats())}
    path = folder / dataset
    if dataset in known or not path.is_dir():
        return dataset
    return f"./{path.as_posix()}" if not path.is_absolute() else str(path)


def shown(path: Path) -> str:
    """A path without the machine's part: from the working folder, else its own name."""
    whole = path.resolve()
    here = Path.cwd().resolve()
    return whole.relative_to(here).as_posix() if whole.is_relative_to(here) else path.name


def run_gate(
    config: Config, asked: Asked, *, ref: str | None = None, labelled: LabelledSet | None = None
) -> GateResult:
    """Ask the systems of a policy, set them against its baseline (or a revision's), and judge.

    Raises InputError for anything that keeps the gate from judging; a system that answers badly does not.
    """
    config = _from_file(config)
    policy = config.policy
    if not policy.systems:
        raise InputError("no system is named; give --system SPEC, or systems = […] in [gate]")
    labelled = labelled if labelled is not None else labelled_of(config)
    if ref is not None:
        return _against_revision(config, asked, ref, labelled)
    if not policy.baseline:
        raise InputError("no baseline is named; give --baseline DIR or --baseline-ref REF, or baseline = … in [gate]")
    folder = config.folder / policy.baseline
    baseline = load(folder)
    measures = measures_of(policy, labelled)
    deepest = max((measure.cutoff or 0 for measure in measures), default=0)
    if deepest > baseline.depth:
        raise InputError(f"{folder}: was asked for {baseline.depth} rows, and a measure needs {deepest}: save it anew")
    places, notes = places_of(baseline, labelled, str(folder))
    systems = _systems(policy.systems, asked, asked.configured)
    wanted = [one.name for one in systems]
    single = len(systems) == len(baseline.systems) == 1
    held = {name: one for name, one in baseline.systems.items() if single or name in wanted}
    before = [run_of(name, one, places) for name, one in held.items()]
    after = _answers(systems, labelled, baseline.depth, asked.progress)
    against = shown(folder) + (f" ({baseline.revision})" if baseline.revision else "")
    return judge(
        labelled,
        before,
        after,
        policy,
        depth=baseline.depth,
        against=against,
        notes=notes,
        configured=asked.configured,
        overrides=asked.overrides,
    )


def _from_file(config: Config) -> Config:
    """The policy with the folders of its scenarios as seen from the working folder."""
    rule = config.policy.scenarios
    folders = tuple(str(config.folder / one) for one in rule.folders)
    scenarios = msgspec.structs.replace(rule, folders=folders)
    return dataclasses.replace(config, policy=msgspec.structs.replace(config.policy, scenarios=scenarios))


def _against_revision(config: Config, asked: Asked, ref: str, labelled: LabelledSet) -> GateResult:
    policy = config.policy
    refuse_foreign(policy.systems, asked.configured)
    depth = depth_for(labelled, measures_of(policy, labelled))
    with checked_out(ref) as revision:
        set_up(policy.setup, revision)
        configured = moved(asked.configured, revision)
        # Relative commands and files of a spec start from the working folder.
        with contextlib.chdir(revision.folder):
            systems = _systems(policy.systems, asked, configured)
            before = _answers(systems, labelled, depth, asked.progress)
    after = _answers(_systems(policy.systems, asked, asked.configured), labelled, depth, asked.progress)
    return judge(
        labelled,
        before,
        after,
        policy,
        depth=depth,
        against=revision.title,
        same_machine=True,
        configured=asked.configured,
        overrides=asked.overrides,
    )


def _systems(specs: Sequence[str], asked: Asked, configured: Mapping[str, Configured]) -> list[System]:
    return systems_of(specs, asked.retrieve, configured=configured, overrides=asked.overrides)


def _answers(
    systems: Sequence[System], labelled: LabelledSet, depth: int, progress: Progress | None
) -> list[SystemRun]:
    out = []
    for system in systems:
        out.append(run_system(system, labelled, depth))
        if progress:
            progress(system.name)
    return out


def with_options(policy: Policy, **given: Any) -> Policy:
    """The policy with what the command line gave; None keeps what the policy says."""
    return msgspec.structs.replace(policy, **{key: value for key, value in given.items() if value is not None})
