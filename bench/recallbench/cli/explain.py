"""`recallbench explain`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from recallbench.evaluation.explain import Explanation


@click.command()
@click.argument("question", metavar="QUESTION")
@click.option("--dataset", required=True, metavar="NAME|FOLDER", help="The labelled set that holds the question.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder or file of a public set.")
@click.option("--system", "spec", required=True, metavar="SPEC", help="A recipe: a preset's name or FILE.toml.")
@click.option("--depth", type=click.IntRange(min=1), help="Rows asked for. Default: the set's own.")
@click.option("--top", type=click.IntRange(min=1), default=5, show_default=True, help="Rows shown of each stage.")
@click.option("--include-text", is_flag=True, help="Also print the texts of the question and of the memories.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(
    question: str,
    dataset: str,
    data: Path | None,
    spec: str,
    depth: int | None,
    top: int,
    include_text: bool,
    as_json: bool,
) -> None:
    """One question (its id) through one recipe: every stage, where each relevant memory was, where it was lost."""
    from recallbench.cli.show import print_json
    from recallbench.datasets.registry import load
    from recallbench.evaluation.explain import explain as find
    from recallbench.systems.recipe import recipe_of

    found = find(load(dataset, data=data), question, recipe_of(spec), depth)
    if as_json:
        print_json(found.to_values(include_text))
    else:
        click.echo(_markdown(found, top, include_text))


def _markdown(found: Explanation, top: int, include_text: bool) -> str:
    from recallbench.text.tables import table

    values: dict[str, Any] = found.to_values(include_text)
    grades = {label["memory"]: str(label["grade"]) for label in values["labels"]}
    parts = [f"# {values['question']} through {values['recipe']} (depth {values['depth']})"]
    if include_text:
        parts.append(values["text"])
    stages = list(values["stages"])
    header = ["label", "grade", *stages, "outcome"]
    rows = [
        [
            label["memory"],
            str(label["grade"]),
            *(str(label["ranks"].get(stage, "–")) for stage in stages),
            label["outcome"],
        ]
        for label in values["labels"]
    ]
    parts.append("## Where each relevant memory was (its rank after each stage)")
    parts.append(
        table(header, rows, "lr" + "r" * len(stages) + "l") if rows else "The question has no relevant memory."
    )
    parts.append(f"## The first {top} rows of each stage")
    for stage, hits in values["stages"].items():
        if not hits:
            parts.append(f"**{stage}**: nothing")
            continue
        shown = [
            [
                str(rank),
                hit["memory"],
                "–" if hit["score"] is None else f"{hit['score']:.6g}",
                grades.get(hit["memory"], ""),
                *([hit["text"]] if include_text else []),
            ]
            for rank, hit in enumerate(hits[:top], 1)
        ]
        columns = ["rank", "memory", "score", "grade", *(["text"] if include_text else [])]
        parts.append(
            f"**{stage}** ({len(hits)} rows)\n\n" + table(columns, shown, "rlrr" + ("l" if include_text else ""))
        )
    parts.extend(f"note: {note}" for note in values["notes"])
    return "\n\n".join(parts)
