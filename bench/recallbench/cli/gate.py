"""`recallbench gate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recallbench.cli.system_options import system_options

if TYPE_CHECKING:
    from recallbench.gate.judge import GateResult
    from recallbench.gate.policy import Config

_BISECT = "--bisect"


class _Bisectable(click.Command):
    """With --bisect nothing that keeps the gate from judging may look like a bad revision, a typing error included."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **more: Any) -> click.Context:
        bisect = _BISECT in args
        try:
            return super().make_context(info_name, args, *rest, **more)
        except click.UsageError as error:
            if not bisect:
                raise
            raise _skipped(error.format_message()) from None

    def invoke(self, ctx: click.Context) -> Any:
        from recallstack.errors import InputError

        if not ctx.params.get("bisect"):
            return super().invoke(ctx)
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort):
            raise
        except (InputError, click.ClickException) as error:
            raise _skipped(str(error)) from None
        except Exception as error:  # noqa: BLE001 (shown whole; the revision is skipped, not blamed)
            import traceback

            traceback.print_exc()
            raise _skipped(f"{type(error).__name__}: {error}") from None


def _skipped(message: str) -> click.exceptions.Exit:
    from recallbench.gate.judge import BISECT_SKIP

    print(f"recallbench: cannot judge this revision: {' '.join(message.split())}", file=sys.stderr)
    return click.exceptions.Exit(BISECT_SKIP)


@click.command(cls=_Bisectable)
@click.option("--dataset", metavar="NAME|FOLDER", help="The labelled set. Default: dataset in [gate].")
@click.option("--data", type=click.Path(path_type=Path), help="Folder or file of a public set.")
@click.option("--split", type=click.Choice(["dev", "test"]), help="Only the questions of this split.")
@click.option("--query", type=click.Choice(["task", "context"]), help="As of `recallbench run`.")
@click.option(
    "--system", "systems", multiple=True, metavar="SPEC", help="What is gated. Default: systems in [gate]. Repeatable."
)
@click.option("--baseline", type=click.Path(path_type=Path), help="A folder that `baseline save` made.")
@click.option(
    "--baseline-ref",
    metavar="GIT_REF",
    help="Build the baseline from this revision of the repository, in a work tree, in the same job.",
)
@click.option("--setup", metavar="COMMAND", help="--baseline-ref: run in the work tree first, such as `npm ci`.")
@click.option(
    "--margin",
    "margins",
    multiple=True,
    metavar="MEASURE=DROP",
    help="A drop that is no reason not to merge, such as nDCG@5=0.02. Replaces [gate.margins]. Repeatable.",
)
@click.option("--strict", is_flag=True, default=None, help="INCONCLUSIVE is exit code 3 instead of 0.")
@click.option(_BISECT, is_flag=True, help="For `git bisect run`: 125 for whatever cannot be judged.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Also write Markdown for a pull-request comment.")
@click.option("--junit", type=click.Path(path_type=Path), help="Also write JUnit XML.")
@click.option("--json-file", type=click.Path(path_type=Path), help="Also write JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
@click.option("--annotations", is_flag=True, help="Also print GitHub's workflow commands, on standard error.")
@click.option("--pool", type=click.Path(path_type=Path), help="Write the hits to judge, for `datasets judge`.")
@click.option("--out", type=click.Path(path_type=Path), help="Also keep the run of both sides in this folder.")
@click.option("--publish", is_flag=True, help="--out: replace ids by stable hashes in the run.")
@click.option("--no-cache", is_flag=True, help="Compute channel candidates anew and keep none.")
@click.option("--quiet", is_flag=True, help="Print the verdict's line alone.")
@system_options
def gate(**options: Any) -> int:
    """Is this change of a ranking fit to merge? PASS, FAIL, INCONCLUSIVE or INVALID, and why.

    The policy is [gate] in recallbench.toml (`recallbench init` writes one). Exit codes: 0 PASS; 1 FAIL; 2 INVALID or
    bad input; 3 INCONCLUSIVE with --strict, which is 0 without.
    """
    from recallbench.cache.candidates import CandidateCache, cache_folder
    from recallbench.cli.show import print_json, progress
    from recallbench.cli.system_options import configured_of, overrides_of
    from recallbench.gate.lines import headline
    from recallbench.gate.sides import Asked, labelled_of, run_gate
    from recallbench.gate.terminal import terminal
    from recallbench.gate.values import gate_values

    config = policy_config(options)
    labelled = labelled_of(config)
    retrieve = CandidateCache(None if options["no_cache"] else cache_folder())
    with progress(labelled.info.name, None, options["quiet"]) as step:
        asked = Asked(retrieve, configured_of(options), overrides_of(options), step)
        result = run_gate(config, asked, ref=options["baseline_ref"], labelled=labelled)
    _write_files(result, options)
    if options["annotations"]:
        _annotate(result, config.path)
    if options["as_json"]:
        print_json(gate_values(result))
    else:
        click.echo(headline(result) if options["quiet"] else terminal(result), nl=options["quiet"])
    return result.exit_code(options["bisect"])


def policy_config(options: dict[str, Any]) -> Config:
    """The policy of the file, with what the command line gave in its place.

    Raises InputError for --baseline beside --baseline-ref.
    """
    import dataclasses

    from recallbench.gate.policy import read_config
    from recallbench.gate.sides import with_options
    from recallstack.errors import InputError

    if options.get("baseline") and options.get("baseline_ref"):
        raise InputError("--baseline is a saved one and --baseline-ref makes one; give one of them")
    config = read_config(options["config"])
    here = Path.cwd()

    def from_here(path: Path | None) -> str | None:
        return None if path is None else str(here / path)

    dataset = options["dataset"]
    if dataset is not None and any(mark in dataset for mark in ("/", "\\")):
        dataset = str(here / dataset)
    policy = with_options(
        config.policy,
        dataset=dataset,
        data=from_here(options["data"]),
        split=options["split"],
        query=options["query"],
        systems=options["systems"] or None,
        baseline=from_here(options.get("baseline")),
        setup=options.get("setup"),
        margins=_margins(options.get("margins") or ()),
        strict=options.get("strict"),
    )
    return dataclasses.replace(config, policy=policy)


def _margins(given: tuple[str, ...]) -> dict[str, float] | None:
    from recallbench.gate.policy import policy_of
    from recallstack.errors import InputError

    values = {}
    for one in given:
        name, equals, number = one.rpartition("=")
        try:
            values[name] = float(number)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise InputError(f"--margin {one}: write MEASURE=DROP, such as nDCG@5=0.02")
    return dict(policy_of({"margins": values}, "--margin").margins) if values else None


def _write_files(result: GateResult, options: dict[str, Any]) -> None:
    import json

    from recallbench.gate.comment import comment
    from recallbench.gate.values import gate_values, junit

    def as_json(one: GateResult) -> str:
        return json.dumps(gate_values(one), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    for path, text in ((options["markdown"], comment), (options["junit"], junit), (options["json_file"], as_json)):
        if path is not None:
            write_text(path, text(result))
    if options["pool"] is not None:
        _write_pool(result, options["pool"])
    if options["out"] is not None:
        _keep_run(result, options)


def _annotate(result: GateResult, policy: Path | None) -> None:
    from recallbench.gate.annotations import workflow_commands
    from recallbench.gate.sides import shown

    click.echo(workflow_commands(result, shown(policy) if policy is not None else ""), nl=False, err=True)


def write_text(path: Path, text: str) -> None:
    """Write a file. Raises InputError if it cannot be written."""
    from recallstack.errors import InputError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def _write_pool(result: GateResult, path: Path) -> None:
    from recallbench.labelling.judging import Judgement, write

    labelled = result.evaluation.labelled
    corpus = {question.id: labelled.corpora[question.corpus].index for question in labelled.questions}
    pairs = dict.fromkeys((one.question, one.memory) for one in result.unjudged if one.memory in corpus[one.question])
    write(path, labelled, [Judgement(question, memory) for question, memory in pairs])
    click.echo(f"{path}: {len(pairs)} pairs to judge", err=True)


def _keep_run(result: GateResult, options: dict[str, Any]) -> None:
    from recallbench.runs.store import RunFolder, manifest_of, run_id

    evaluation, policy = result.evaluation, result.policy
    settings = {"depth": evaluation.depth, "split": evaluation.split, "query": policy.query, "against": result.against}
    specs = [{"name": run.system, **run.spec} for run in evaluation.runs]
    name = run_id(evaluation.labelled, specs, evaluation.measures, settings)
    folder = RunFolder(options["out"], name)
    baseline = evaluation.systems[result.pairs[0].before] if len(result.pairs) == 1 else None
    manifest = manifest_of(evaluation, settings, seed=policy.seed, publish=options["publish"])
    path = folder.finish(evaluation, manifest, baseline=baseline, publish=options["publish"])
    click.echo(f"run: {path}", err=True)
