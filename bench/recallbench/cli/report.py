"""`recallbench report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class _Runs(click.Group):
    """`report RUN…` is `report make RUN…`; a run folder of a command's name is given as `./history`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["make", *args]
        return super().parse_args(ctx, args)


_LANG = click.option(
    "--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Shown first; HTML holds both."
)


@click.group(cls=_Runs)
def report() -> None:
    """Reports from runs on disk: `report RUN…` (see `report make --help`), `report history FOLDER`."""


@report.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", type=click.Path(path_type=Path))
@click.option("--html", type=click.Path(path_type=Path), help="Write one self-contained HTML file.")
@click.option(
    "--markdown",
    type=click.Path(path_type=Path),
    help="Write Markdown with SVG images, badge, CSV, Parquet and a summary into this folder.",
)
@click.option("--badge", type=click.Path(path_type=Path), help="Write a badge a run (JSON and SVG) into this folder.")
@click.option("--baseline", metavar="SYSTEM", help="What systems are set against. Default: the run's own.")
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Output of `sweep --json` for the map of k and pool. Repeatable.",
)
@click.option("--scenarios", type=click.Path(path_type=Path), help="Output of `scenarios run --json` for the matrix.")
@click.option(
    "--top", type=click.IntRange(min=1), default=20, show_default=True, help="Rows of each list in the HTML file."
)
@click.option("--include-text", is_flag=True, help="Show the texts that the run was made to hold.")
@click.option("--publish", is_flag=True, help="Hide ids and paths behind stable hashes; leave out time and machine.")
@_LANG
def make(runs: tuple[Path, ...], **options: Any) -> None:
    """Write reports of runs: folders of `recallbench run`, or folders that hold some.

    Runs of the same questions are shown as one, with the systems of all. Without an output option one run's report goes
    into its own folder, as report.html.
    """
    from recallbench.reports.html import report_html
    from recallbench.reports.inputs import read_scenarios, read_sweep
    from recallbench.reports.section import sections
    from recallbench.reports.write import folder_names, write_badge, write_markdown, write_text
    from recallbench.runs.load import run_folders
    from recallbench.runs.merge import load_runs
    from recallstack.errors import InputError

    if not any(options[name] for name in ("html", "markdown", "badge")):
        folders = run_folders(runs)
        if len(folders) > 1:
            raise InputError("several runs and no place for the report; give --html FILE or --markdown FOLDER")
        options["html"] = folders[0] / "report.html"
    scenarios = read_scenarios(options["scenarios"]) if options["scenarios"] else ()
    sweeps = [read_sweep(path) for path in options["sweeps"]]
    found = sections(
        load_runs(runs),
        baseline=options["baseline"],
        include_text=options["include_text"],
        publish=options["publish"],
        sweeps=sweeps,
    )
    command = _command(found, options)
    if options["html"]:
        text = report_html(found, scenarios=scenarios, lang=options["lang"], top=options["top"], command=command)
        write_text(options["html"], text)
        click.echo(f"report: {options['html']}")
    if options["markdown"]:
        written = write_markdown(options["markdown"], found, options["lang"], command, scenarios, html=options["html"])
        for path in written:
            click.echo(f"report: {path}")
    if options["badge"]:
        for section, name in zip(found, folder_names(found), strict=True):
            write_badge(options["badge"], name, section)
            click.echo(f"badge: {options['badge'] / name}.svg")


def _command(found: Any, options: dict[str, Any]) -> str:
    """The command as the report shows it: run folders under `out`, no path of this machine."""
    import shlex

    parts = ["recallbench report", *(f"out/{folder.name}" for section in found for folder in section.run.folders)]
    if options["baseline"]:
        parts.append(f"--baseline {shlex.quote(options['baseline'])}")
    parts += ["--sweep FILE"] * len(options["sweeps"]) + ["--scenarios FILE"] * bool(options["scenarios"])
    parts += [f"--{name.replace('_', '-')}" for name in ("include_text", "publish") if options[name]]
    if options["html"]:
        parts.append("--html report.html")
    if options["markdown"]:
        parts.append("--markdown FOLDER")
    return " ".join(parts)


@report.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--html", type=click.Path(path_type=Path), help="Default: history.html in the folder.")
@_LANG
def history(folder: Path, html: Path | None, lang: Any) -> None:
    """A page of trends from the runs or reports in a folder: each commit that changed them, or each of several."""
    from recallbench.reports import history as trends
    from recallbench.reports.write import write_text

    out = html or folder / "history.html"
    write_text(out, trends.history_html(trends.history(folder), lang=lang))
    click.echo(f"report: {out}")
