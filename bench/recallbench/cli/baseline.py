"""`recallbench baseline`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from recallbench.cli.system_options import system_options

if TYPE_CHECKING:
    from recallbench.datasets.model import LabelledSet
    from recallbench.gate.policy import Config
    from recallbench.systems.base import SystemRun

F = TypeVar("F", bound=Callable[..., Any])
_SET = (
    click.option("--dataset", metavar="NAME|FOLDER", help="The labelled set. Default: dataset in [gate]."),
    click.option("--data", type=click.Path(path_type=Path), help="Folder or file of a public set."),
    click.option("--split", type=click.Choice(["dev", "test"]), help="Only the questions of this split."),
    click.option("--query", type=click.Choice(["task", "context"]), help="As of `recallbench run`."),
    click.option("--no-cache", is_flag=True, help="Compute channel candidates anew and keep none."),
    click.option("--quiet", is_flag=True, help="No progress bar."),
)


def _set_options(command: F) -> F:
    for option in reversed(_SET):
        command = option(command)
    return command


@click.group()
def baseline() -> None:
    """What systems returned at a good revision, committed: save, show, check."""


@baseline.command()
@click.option("--system", "systems", multiple=True, metavar="SPEC", help="Default: systems in [gate]. Repeatable.")
@click.option(
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME",
    help="Default: those of the policy, else those of a run. Others can be computed later from the lists. Repeatable.",
)
@click.option("--depth", type=click.IntRange(min=1), help="Rows asked for. Default: the set's, or the deepest cutoff.")
@click.option("--out", type=click.Path(path_type=Path), help="The folder. Default: baseline in [gate].")
@click.option("--allow-zero", multiple=True, metavar="SYSTEM", help="As of `recallbench run`. Repeatable.")
@_set_options
@system_options
def save(**options: Any) -> int:
    """Ask the systems and write what they returned, with the hashes of what they were asked.

    A folder that holds a baseline is replaced, whole or not at all; it stays as it is where the answers are the same.
    Exit code 2 if a trust check fails: such answers are no baseline.
    """
    from recallbench.evaluation.evaluate import depth_for, evaluate
    from recallbench.evaluation.experiment import measures_for
    from recallbench.gate.baselines.changes import counted
    from recallbench.gate.baselines.files import save as write
    from recallbench.gate.baselines.model import baseline_of
    from recallbench.gate.baselines.revision import current_commit
    from recallbench.runs.store import manifest_of
    from recallstack.errors import InputError

    config, labelled = _config(options)
    policy = config.policy
    out = options["out"] or (config.folder / policy.baseline if policy.baseline else None)
    if out is None:
        raise InputError("no folder is named; give --out DIR, or baseline = … in [gate]")
    measures = measures_for(labelled, options["measures"] or policy.measures())
    depth = options["depth"] or depth_for(labelled, measures)
    runs = _answers(config, labelled, depth, options)
    allowed = [*policy.allow_zero, *options["allow_zero"]]
    evaluation = evaluate(labelled, runs, measures, depth, split=policy.split or None, allow_zero=allowed)
    for check in evaluation.checks:
        if check.level != "info":
            click.echo(f"{check.level}: {check.system + ': ' if check.system else ''}{check.message}", err=True)
    if not evaluation.valid:
        click.echo("recallbench: INVALID run: no baseline was written", err=True)
        return 2
    manifest = manifest_of(evaluation, {}, seed=None)
    made = baseline_of(evaluation, policy.query, manifest["versions"], manifest["machine"], current_commit())
    fresh = write(made, out)
    told = "written" if fresh else "holds the same answers already, and stays as it is"
    size = f"{counted(len(runs), 'system')}, {counted(len(labelled.questions), 'question')}"
    click.echo(f"{out}: {told} ({size})")
    return 0


@baseline.command()
@click.argument("folder", type=click.Path(path_type=Path), required=False, metavar="[DIR]")
@click.option(
    "--config", type=click.Path(path_type=Path), help="Where [gate] is. Default: recallbench.toml of the folder."
)
@click.option("--question", metavar="ID", help="What was returned for this question.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(folder: Path | None, config: Path | None, question: str | None, as_json: bool) -> None:
    """What a baseline holds: the set, the systems, means; or one question's lists."""
    from recallbench.cli.show import print_json
    from recallbench.gate.baselines.files import load
    from recallbench.gate.baselines.show import baseline_markdown, baseline_values

    held = load(_folder(folder, config))
    if as_json:
        print_json(baseline_values(held, question))
    else:
        click.echo(baseline_markdown(held, question), nl=False)


@baseline.command()
@click.argument("folder", type=click.Path(path_type=Path), required=False, metavar="[DIR]")
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="SPEC",
    help="Also ask it again: does it still give the same lists? Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_set_options
@system_options
def check(folder: Path | None, as_json: bool, **options: Any) -> int:
    """Does a baseline still fit the set, the measures and (with --system) the system?

    Exit codes: 0 nothing has changed; 1 something has, and a gate still takes it; 2 a gate refuses it.
    """
    from recallbench.cli.show import print_json
    from recallbench.gate.baselines.changes import counted
    from recallbench.gate.baselines.check import check as compare
    from recallbench.gate.baselines.files import load

    held = load(_folder(folder, options["config"]))
    config, labelled = _config(options)
    runs = _answers(config, labelled, held.depth, options) if options["systems"] else []
    found = compare(held, labelled, runs)
    if as_json:
        print_json({"usable": found.usable, "same": found.same, "findings": found.lines()})
    else:
        for line in found.lines():
            click.echo(line)
        if found.same:
            size = f"{counted(len(held.systems), 'system')}, {counted(len(held.questions), 'question')}"
            click.echo(f"{size}: nothing has changed")
    return 0 if found.same else 1 if found.usable else 2


def _folder(folder: Path | None, config: Path | None) -> Path:
    from recallbench.gate.policy import read_config
    from recallstack.errors import InputError

    if folder is not None:
        return folder
    found = read_config(config)
    if not found.policy.baseline:
        raise InputError("no baseline is named; give its folder, or baseline = … in [gate]")
    return found.folder / found.policy.baseline


def _config(options: dict[str, Any]) -> tuple[Config, LabelledSet]:
    from recallbench.cli.gate import policy_config
    from recallbench.gate.sides import labelled_of

    config = policy_config(options)
    return config, labelled_of(config)


def _answers(config: Config, labelled: LabelledSet, depth: int, options: dict[str, Any]) -> list[SystemRun]:
    from recallbench.cache.candidates import CandidateCache, cache_folder
    from recallbench.cli.show import progress
    from recallbench.cli.system_options import configured_of, overrides_of
    from recallbench.evaluation.evaluate import run_system
    from recallbench.systems.specs import systems_of
    from recallstack.errors import InputError

    if not config.policy.systems:
        raise InputError("no system is named; give --system SPEC, or systems = […] in [gate]")
    retrieve = CandidateCache(None if options["no_cache"] else cache_folder())
    systems = systems_of(
        config.policy.systems, retrieve, configured=configured_of(options), overrides=overrides_of(options)
    )
    runs = []
    with progress(labelled.info.name, len(systems), options["quiet"]) as step:
        for system in systems:
            runs.append(run_system(system, labelled, depth))
            step(system.name)
    return runs
