"""`recallbench run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recallbench.cli.system_options import system_options

if TYPE_CHECKING:
    from recallbench.datasets.model import LabelledSet
    from recallbench.evaluation.evaluate import Evaluation
    from recallbench.systems.base import System
    from recallstack.ranking.pipeline import Retrieve


REPLAY_OPTIONS = ("turns", "steps", "latency_ms", "step_ms", "rewinds", "cancels", "seed")
"""Options that only a replay has a use for."""


@click.command()
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    required=True,
    metavar="NAME|FOLDER",
    help="A labelled set; `built-in` is every set that ships. Repeatable.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder or file of a public set (for example of locomo10.json).",
)
@click.option(
    "--system",
    "systems",
    multiple=True,
    required=True,
    metavar="SPEC",
    help="`rrf-k60`, `recipe:FILE.toml`, `stdio:COMMAND`, `http:URL`, `mcp:COMMAND`, `mcp+http:URL`, `run:FILE`, a "
    "name of the configuration, or `NAME=` one of these; `presets`, `presets:search`, `presets:inject`. Repeatable.",
)
@click.option(
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME",
    help="For example nDCG@5 or Success(rel=2)@5; the first is the primary one. Default: the set's own. Repeatable.",
)
@click.option("--baseline", metavar="SYSTEM", help="Also print paired differences to this system.")
@click.option(
    "--replay",
    type=click.Choice(["sessions"]),
    help="Ask the questions as turns of sessions, through one injection recipe, with each documented bug put back.",
)
@click.option("--turns", default=8, show_default=True, help="Replay: questions a session.")
@click.option("--steps", default=2, show_default=True, help="Replay: model requests a turn.")
@click.option("--latency-ms", default=300.0, show_default=True, help="Replay: of the embedding service, virtual.")
@click.option("--step-ms", default=1000.0, show_default=True, help="Replay: how long the model takes, virtual.")
@click.option("--rewinds", default=0.1, show_default=True, help="Replay: share of turns after a rewound one.")
@click.option("--cancels", default=0.1, show_default=True, help="Replay: share of turns with a cancelled message.")
@click.option("--seed", default=0, show_default=True, help="Replay: of the order of questions, rewinds and cancels.")
@click.option(
    "--query",
    type=click.Choice(["task", "context"]),
    default="task",
    show_default=True,
    help="Ask with the question alone, or with the conversation that it comes with (bounded, as pre-retrieval does).",
)
@click.option("--split", type=click.Choice(["dev", "test"]), help="Only the questions of this split.")
@click.option("--corpus", "corpora", multiple=True, help="Only questions of this corpus. Repeatable.")
@click.option("--category", "categories", multiple=True, help="Only questions of this category. Repeatable.")
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    help="Rows asked for. Default: the set's own or the deepest cutoff.",
)
@click.option(
    "--by",
    "by",
    multiple=True,
    metavar="GROUPING",
    help="Tables by category, lang, corpus or split. Default: category and lang. Repeatable.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Folder for the run.",
)
@click.option("--resume", is_flag=True, help="Go on with an interrupted run of the same inputs.")
@click.option(
    "--allow-zero",
    multiple=True,
    metavar="SYSTEM",
    help="A system that may score 0 on every question. Repeatable.",
)
@system_options
@click.option("--publish", is_flag=True, help="Replace ids and paths by stable hashes in what is written.")
@click.option("--include-text", is_flag=True, help="Also write the texts of questions and memories.")
@click.option("--no-cache", is_flag=True, help="Compute channel candidates anew and keep none.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of Markdown.")
@click.option("--quiet", is_flag=True, help="Print the path of each run alone.")
def run(datasets: tuple[str, ...], systems: tuple[str, ...], **options: Any) -> int:
    """Run systems on labelled sets, measure and check them, and write each run to a folder.

    Exit code 2 if a trust check fails (the run is INVALID, and is written all the same).
    """
    from recallbench.cli.show import print_json
    from recallbench.datasets import registry
    from recallbench.evaluation.latency import latencies, latency_line
    from recallstack.errors import InputError

    context = click.get_current_context()
    for name in REPLAY_OPTIONS if not options["replay"] else ():
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise InputError(f"--{name.replace('_', '-')} is for --replay sessions; give that too, or leave it out")
    if options["publish"] and options["include_text"]:
        raise InputError("--publish hides ids and --include-text writes texts; give one of them")
    names = [
        name for one in datasets for name in ([each.name for each in registry.names()] if one == "built-in" else [one])
    ]
    done = [_one(registry.load(name, data=options["data"]), systems, options) for name in names]
    if options["as_json"]:
        from recallbench.evaluation.summary import summary_values

        print_json(
            [
                {
                    **summary_values(one, options["baseline"]),
                    "latency": {name: timed.values() for name, timed in latencies(one.runs).items()},
                    "path": str(path),
                }
                for one, path in done
            ]
        )
    else:
        for one, path in done:
            if not options["quiet"]:
                click.echo(_markdown(one, options))
                timed = latency_line(one.runs)
                if timed:
                    click.echo(f"{timed}\n")
            click.echo(f"report: {path / 'summary.md'}")
    for one, path in done:
        if not one.valid:
            click.echo(f"recallbench: INVALID run: {path}: see its checks", err=True)
    return 0 if all(one.valid for one, _ in done) else 2


def _markdown(evaluation: Evaluation, options: dict[str, Any]) -> str:
    from recallbench.evaluation.summary import summary_markdown

    by = None
    if options["by"]:
        measures = [str(measure) for measure in evaluation.measures]
        shown = [name for name in dict.fromkeys((measures[0], *measures)) if not name.startswith("Judged")]
        by = dict.fromkeys(options["by"], shown if options["measures"] else shown[:1])
    text = summary_markdown(evaluation, options["baseline"], by)
    if options["replay"]:
        from recallbench.scenarios.sessions import cost_table

        return f"{cost_table(evaluation)}\n{text}"
    return text


def _replayed(systems: list[System], options: dict[str, Any], retrieve: Retrieve) -> list[System]:
    """The variants of the one injection recipe that was named."""
    from recallbench.scenarios.sessions import Settings, replay_systems
    from recallstack.errors import InputError
    from recallstack.ranking.recipes import InjectRecipe

    recipes = [getattr(system, "recipe", None) for system in systems]
    if len(recipes) != 1 or not isinstance(recipes[0], InjectRecipe):
        raise InputError("--replay sessions takes one injection recipe, for example --system inject-fixed")
    settings = Settings(**{name: options[name] for name in REPLAY_OPTIONS})
    return list(replay_systems(recipes[0], settings, retrieve))


def _one(whole: LabelledSet, specs: tuple[str, ...], options: dict[str, Any]) -> tuple[Evaluation, Path]:
    from recallbench.cache.candidates import CandidateCache, cache_folder
    from recallbench.cli.show import progress
    from recallbench.cli.system_options import configured_of, overrides_of
    from recallbench.datasets.conversation import asked_with_context
    from recallbench.datasets.select import select
    from recallbench.evaluation.aggregate import GROUPINGS
    from recallbench.evaluation.evaluate import depth_for, evaluate, run_system
    from recallbench.evaluation.experiment import measures_for
    from recallbench.runs.store import RunFolder, manifest_of, run_id
    from recallbench.scenarios.sessions import cost_table
    from recallbench.systems.external import ExternalSystem
    from recallbench.systems.specs import systems_of
    from recallstack.errors import InputError

    for name in options["by"]:
        if name not in GROUPINGS:
            raise InputError(f"--by {name}: unknown grouping; use one of {', '.join(GROUPINGS)}")
    labelled = whole
    if options["split"] or options["categories"] or options["corpora"]:
        labelled = select(
            whole,
            split=options["split"],
            categories=options["categories"] or None,
            corpora=options["corpora"] or None,
        )
    if options["query"] == "context":
        labelled = asked_with_context(labelled)
    measures = measures_for(labelled, options["measures"])
    depth = options["depth"] or depth_for(labelled, measures)
    retrieve = CandidateCache(None if options["no_cache"] else cache_folder())
    systems: list[System] = systems_of(
        specs, retrieve, configured=configured_of(options), overrides=overrides_of(options)
    )
    if options["replay"]:
        systems = _replayed(systems, options, retrieve)
    names = [system.name for system in systems]
    first = f"{options['baseline']}.step1"
    if options["replay"] and first in names:  # a variant is measured at every step; the first is what most look at
        options["baseline"] = first
    for name in options["allow_zero"]:
        if name not in names:
            raise InputError(f"--allow-zero {name}: not among the systems: {', '.join(names)}")
    if options["baseline"] is not None and options["baseline"] not in names:
        raise InputError(f"--baseline {options['baseline']}: not among the systems: {', '.join(names)}")
    settings = {
        "depth": depth,
        "split": options["split"],
        "categories": list(options["categories"]),
        "corpora": list(options["corpora"]),
        "query": options["query"],
        "baseline": options["baseline"],
        "replay": options["replay"],
        "allow_zero": list(options["allow_zero"]),
        "publish": options["publish"],
        "include_text": options["include_text"],
    }
    described = [system.spec for system in systems]
    folder = RunFolder(options["out"], run_id(labelled, described, measures, settings), options["resume"])
    runs = []
    asked = [one for one in systems if isinstance(one, ExternalSystem)]
    steps = len(systems) + sum(len(labelled.questions) * one.settings.repeats for one in asked)
    with progress(labelled.info.name, steps, options["quiet"]) as step:
        for one in asked:
            one.progress = step
        for system in systems:
            got = folder.held(system.name, len(labelled.questions))
            if got is None:
                got = run_system(system, labelled, depth)
                folder.keep(got)
            runs.append(got)
            step(system.name)
    evaluation = evaluate(labelled, runs, measures, depth, split=options["split"], allow_zero=options["allow_zero"])
    path = folder.finish(
        evaluation,
        manifest_of(
            evaluation, settings, seed=options["seed"] if options["replay"] else None, publish=options["publish"]
        ),
        baseline=options["baseline"],
        publish=options["publish"],
        include_text=options["include_text"],
        lead=cost_table if options["replay"] else None,
    )
    return evaluation, path
