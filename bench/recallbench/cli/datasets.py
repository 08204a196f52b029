"""`recallbench datasets`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from recallbench.cli.datasets_get import convert, fetch
from recallbench.cli.datasets_judge import judge, pool
from recallbench.cli.datasets_log import from_log
from recallbench.cli.datasets_make import grow, power


@click.group()
def datasets() -> None:
    """List, show, check, convert and fetch labelled sets."""


datasets.add_command(convert)
datasets.add_command(fetch)
datasets.add_command(pool)
datasets.add_command(judge)
datasets.add_command(power)
datasets.add_command(grow)
datasets.add_command(from_log)


@datasets.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_sets(as_json: bool) -> None:
    """The sets that ship with the package, and the public formats that can be read."""
    from recallbench.cli.show import print_json
    from recallbench.datasets.registry import formats, names
    from recallbench.text.tables import table

    if as_json:
        print_json(
            {
                "built-in": [{"name": one.name, "description": one.description} for one in names()],
                "formats": [{"name": one.name, "description": one.description} for one in formats()],
            }
        )
        return
    rows = [[one.name, "built-in", one.description] for one in names()]
    rows += [[one.name, "format, needs --data", one.description] for one in formats()]
    click.echo(table(["name", "kind", "what it is"], rows, "lll"))


@datasets.command()
@click.argument("name", metavar="NAME|FOLDER")
@click.option("--data", type=click.Path(path_type=Path), help="Folder or file of a public set.")
@click.option("--question", metavar="ID", help="Show this question and its labels, texts included.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(name: str, data: Path | None, question: str | None, as_json: bool) -> None:
    """What a set holds: counts by language, category, split and memory type; its hashes."""
    from recallbench.cli.show import print_json
    from recallbench.datasets.registry import load
    from recallbench.text.tables import table

    labelled = load(name, data=data)
    if question is not None:
        _show_question(labelled, question, as_json)
        return
    info, questions = labelled.info, labelled.questions
    memories = [memory for corpus in labelled.corpora.values() for memory in corpus.memories]
    values: dict[str, Any] = {
        "name": info.name,
        "version": info.version,
        "description": info.description,
        "licence": info.licence,
        "primary measure": info.primary_measure,
        "corpora": len(labelled.corpora),
        "memories": len(memories),
        "questions": len(questions),
        "questions with a relevant memory": sum(any(g > 0 for g in q.relevant.values()) for q in questions),
        "clusters": len({q.cluster for q in questions if q.cluster}),
        "memories hash": labelled.memories_hash,
        "labels hash": labelled.labels_hash,
    }
    counts: dict[str, Counter[str]] = {
        "language": Counter(q.lang or "–" for q in questions),
        "category": Counter(category for q in questions for category in q.categories),
        "split": Counter(q.split or "–" for q in questions),
        "memory type": Counter(memory.type for memory in memories),
    }
    if as_json:
        by = {name: dict(sorted(count.items())) for name, count in counts.items()}
        print_json({**values, "by": by, "notes": list(labelled.notes)})
        return
    click.echo(table(["what", "value"], [[key, str(value)] for key, value in values.items()], "ll"))
    for title, count in counts.items():
        if count:
            click.echo("\n" + table([title, "count"], [[key, str(n)] for key, n in sorted(count.items())]))
    for note in labelled.notes:
        click.echo(f"note: {note}")


def _show_question(labelled: Any, question: str, as_json: bool) -> None:
    import msgspec

    from recallbench.cli.show import print_json
    from recallbench.datasets.jsonl import nearest
    from recallstack.errors import InputError

    found = next((one for one in labelled.questions if one.id == question), None)
    if found is None:
        known = [one.id for one in labelled.questions]
        raise InputError(f"{labelled.info.name}: no question {question!r}; {nearest(question, known)}")
    corpus = labelled.corpora[found.corpus]
    names = dict.fromkeys((*found.relevant, *found.not_relevant, *found.forbidden))
    values = {
        "question": msgspec.to_builtins(found),
        "memories": [msgspec.to_builtins(corpus.memories[corpus.index[name]]) for name in names],
    }
    if as_json:
        print_json(values)
        return
    import yaml

    click.echo(yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=100), nl=False)


@datasets.command()
@click.argument("names", nargs=-1, metavar="[NAME|FOLDER…]")
@click.option("--all", "every", is_flag=True, help="Check every set that ships with the package.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder or file of a public set.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(names: tuple[str, ...], every: bool, data: Path | None, as_json: bool) -> int:
    """Check labels, duplicates, scopes, word copying and balance. Exit code 1 if there is an error."""
    from recallbench.cli.show import print_json
    from recallbench.datasets import registry
    from recallbench.datasets.jsonl import one_line
    from recallbench.evaluation.check_set import check as check_set
    from recallstack.errors import InputError

    wanted = [*names, *(one.name for one in registry.names() if every)]
    if not wanted:
        raise InputError("name a set or a folder, or give --all")
    reports = {name: check_set(registry.load(name, data=data)) for name in dict.fromkeys(wanted)}
    failed = any(one.level == "error" for report in reports.values() for one in report.findings)
    if as_json:
        print_json(
            {
                name: {
                    "findings": [
                        {"level": one.level, "where": one.where, "message": one.message} for one in report.findings
                    ],
                    "statistics": report.statistics,
                }
                for name, report in reports.items()
            }
        )
        return int(failed)
    for name, report in reports.items():
        count = Counter(one.level for one in report.findings)
        click.echo(f"{name}: {count['error']} errors, {count['warning']} warnings")
        for one in report.findings:
            click.echo(f"  {one.level}: {one_line(one.where)}: {one_line(one.message)}")
    return int(failed)
