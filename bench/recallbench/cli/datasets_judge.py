"""`recallbench datasets pool` and `datasets judge`."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from recallbench.datasets.model import LabelledSet
    from recallbench.labelling.judging import Agreement, Judgement
    from recallbench.labelling.pool import LeftOut, Pair
    from recallbench.systems.base import SystemRun

POOL = ("keyword-only", "bm25-okapi", "vector-lsa", "rrf-k10")
"""The systems of a pool unless told otherwise."""


@click.command()
@click.argument("name", metavar="NAME|FOLDER")
@click.option("--data", type=click.Path(path_type=Path), help="Folder or file of a public set.")
@click.option("--system", "systems", multiple=True, metavar="SPEC", help=f"Default: {', '.join(POOL)}. Repeatable.")
@click.option(
    "--depth", default=5, show_default=True, type=click.IntRange(1, 10_000), help="Hits of each system that are read."
)
@click.option("--query", type=click.Choice(["task", "context"]), default="task", show_default=True, help="As in `run`.")
@click.option("--again", type=float, metavar="SHARE", help="A share of the judged pairs, for a blind second pass.")
@click.option("--seed", default=0, show_default=True, help="Of the order of the memories.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the pairs to this CSV file, texts included.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (ids alone).")
def pool(name: str, systems: tuple[str, ...], **options: Any) -> None:
    """What of a pool nobody has read, and how much each of its systems owes to its own part in it.

    With --out the pairs are ready to be judged: in a spreadsheet (the column grade), or with `datasets judge`.
    """
    from recallbench.cli.show import print_json
    from recallbench.datasets import registry
    from recallbench.labelling import judging
    from recallbench.labelling.pool import leave_one_out, second_pass, unjudged
    from recallbench.measures import parse_measure
    from recallbench.text.tables import table

    labelled = registry.load(name, data=options["data"])
    left: tuple[LeftOut, ...] = ()
    if options["again"] is not None:
        pairs = second_pass(labelled, options["again"], options["seed"])
    else:
        runs = _runs(labelled, systems or POOL, options["depth"], options["query"])
        pairs = unjudged(labelled, runs, options["depth"], options["seed"])
        left = leave_one_out(labelled, runs, options["depth"], parse_measure(labelled.info.primary_measure))
    if options["out"] is not None:
        judging.write(options["out"], labelled, _kept(options["out"], labelled, pairs))
    if options["as_json"]:
        print_json(
            {
                "pairs": [dataclasses.asdict(pair) for pair in pairs],
                "leave_one_out": [
                    {name: None if value != value else value for name, value in dataclasses.asdict(one).items()}
                    for one in left
                ],
            }
        )
        return
    questions = len({pair.question for pair in pairs})
    click.echo(f"{len(pairs)} pairs of {questions} questions to judge")
    if left:
        primary = labelled.info.primary_measure
        rows = [
            [one.system, *map(_shown, (one.value, one.without)), _shown(one.without - one.value, "+"), str(one.lost)]
            for one in left
        ]
        click.echo(
            "\n"
            + table(["system", primary, "left out of the pool", "difference", "labels that it alone returned"], rows)
        )
    if options["out"] is not None:
        click.echo(f"\nwritten: {options['out']}")


def _kept(out: Path, labelled: LabelledSet, pairs: list[Pair]) -> list[Judgement]:
    """The pairs, and the grades that a file of that name holds already: judging is work, and is not written over."""
    from recallbench.labelling import judging

    held = {(row.question, row.memory): row for row in judging.read(out, labelled)} if out.is_file() else {}
    rows = [held.pop((row.question, row.memory), row) for row in judging.rows_of(labelled, pairs)]
    return [*(row for row in held.values() if row.grade), *rows]


def _shown(value: float, sign: str = "") -> str:
    return f"{value:{sign}.3f}" if value == value else "–"


def _runs(labelled: LabelledSet, systems: tuple[str, ...], depth: int, query: str) -> list[SystemRun]:
    from recallbench.cache.candidates import CandidateCache, cache_folder
    from recallbench.datasets.conversation import asked_with_context
    from recallbench.evaluation.evaluate import depth_for, run_system
    from recallbench.measures import parse_measure
    from recallbench.systems.specs import systems_of

    asked = asked_with_context(labelled) if query == "context" else labelled
    rows = max(depth, depth_for(labelled, [parse_measure(labelled.info.primary_measure)]))
    return [run_system(one, asked, rows) for one in systems_of(systems, CandidateCache(cache_folder()))]


@click.command()
@click.argument("name", metavar="NAME|FOLDER")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--apply", "judge_name", metavar="WHO", help="Write the grades into the set's labels, as judged by WHO.")
@click.option("--replace", "replace_old", is_flag=True, help="With --apply: take the new grade of a labelled pair.")
@click.option("--agreement", "compare", is_flag=True, help="Compare the grades, as a second pass, with the labels.")
@click.option("--json", "as_json", is_flag=True, help="With --agreement: print JSON.")
def judge(name: str, file: Path, judge_name: str | None, replace_old: bool, compare: bool, as_json: bool) -> None:
    """Judge the pairs of a CSV file by the keyboard, a pair at a time; go on where you stopped.

    Keys: 0 does not help, 1 helps, 2 answers, f must not come back for this session, n does not help and nothing in
    the set answers this question, s skip, b back, q quit. Every answer is on disk at once. Then --apply writes them
    into the set, or --agreement compares them with its labels.
    """
    from recallbench.cli.show import print_json
    from recallbench.datasets import registry
    from recallbench.labelling import judging
    from recallbench.labelling.applying import apply
    from recallstack.errors import InputError

    folder = Path(name) if judge_name is None else registry.folder_of_own(name)
    labelled = registry.load(name)
    rows = judging.read(file, labelled)
    if judge_name is not None and not judge_name.strip():
        raise InputError("--apply needs the name of who judged, such as --apply me")
    if judge_name is not None and compare:
        raise InputError("--apply writes labels and --agreement compares them; give one of them")
    if compare:
        found = judging.agreement(labelled, rows)
        if as_json:
            print_json(_agreement_values(found))
        else:
            _show_agreement(found)
    elif judge_name is not None:
        new = apply(folder, rows, judge_name, replace_old)
        registry.load(name)  # what was written must load
        empty = sum(not row.grade for row in rows)
        click.echo(f"{new} new labels by {judge_name}" + (f"; {empty} pairs have no grade yet" if empty else ""))
    else:
        _ask(file, labelled, rows)


def _ask(file: Path, labelled: LabelledSet, rows: list[Judgement]) -> None:
    from recallbench.labelling import judging

    place, skipped = 0, set[int]()
    trail = [number for number, row in enumerate(rows) if row.grade]  # back goes on where the last session stopped
    while True:
        open_ = [i for i, row in enumerate(rows) if not row.grade and i not in skipped and i >= place]
        if not open_:
            break
        place = open_[0]
        question, memory = judging.shown_texts(labelled, rows[place])
        done = sum(bool(row.grade) for row in rows)
        parts = map(_harmless, (rows[place].question, question, "", rows[place].memory, memory))
        click.echo(f"\n[{done + 1}/{len(rows)}] " + "\n".join(parts) + "\n")
        key = ""
        while key not in {*judging.GRADES, "s", "b", "q"}:
            key = _key()
        if key == "q":
            break
        if key == "s":
            skipped.add(place)
        elif key == "b":
            if not trail:
                click.echo("nothing to go back to")
                continue
            place = trail.pop()
            rows[place] = dataclasses.replace(rows[place], grade="")
            judging.write(file, labelled, rows)
        else:
            rows[place] = dataclasses.replace(rows[place], grade=key)
            trail.append(place)
            judging.write(file, labelled, rows)
            place = 0
    left = sum(not row.grade for row in rows)
    click.echo(f"\n{len(rows) - left} judged, {left} left in {file}")


def _harmless(text: str) -> str:
    """A text that a terminal shows and does not obey; every line of it is marked as quoted."""
    lines = (
        "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in line) for line in text.split("\n")
    )
    return "\n".join(f"  {line}" for line in lines)


def _key() -> str:
    """One key: at a terminal without Enter, else a line. The end of the input is q: what was judged is on disk."""
    prompt = "0 1 2 f n s b q > "
    try:
        if not sys.stdin.isatty():
            return input(prompt).strip().lower()
        click.echo(prompt, nl=False)
        key = click.getchar().lower()
        click.echo(key if key.isprintable() else "")
        return key
    except EOFError:
        return "q"


def _show_agreement(found: Agreement) -> None:
    from recallbench.text.tables import table

    cells = [[first, *(str(found.table[first, second]) for second in "012")] for first in "012"]
    click.echo(table(["first pass", "second: 0", "second: 1", "second: 2"], cells))
    click.echo(
        f"\n{found.same} of {found.pairs} pairs have the same grade; Cohen's kappa {found.kappa:.3f}, with linear "
        f"weights {found.weighted:.3f}.\nIt says how consistent the makers are; it is no agreement of users."
    )
    for row, old in found.differing:
        click.echo(f"{row.question} {row.memory}: first {old}, second {row.grade}")


def _agreement_values(found: Agreement) -> dict[str, Any]:
    return {
        "pairs": found.pairs,
        "same": found.same,
        "kappa": found.kappa,
        "kappa_linear": found.weighted,
        "table": [{"first": a, "second": b, "pairs": n} for (a, b), n in found.table.items()],
        "differing": [
            {"question": row.question, "memory": row.memory, "first": old, "second": row.grade}
            for row, old in found.differing
        ],
    }
