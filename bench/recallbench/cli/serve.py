"""`recallbench serve`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--dataset", required=True, metavar="NAME|FOLDER", help="A labelled set, or a folder of Markdown files.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder or file of a public set.")
@click.option("--system", "spec", default="rrf-k10", show_default=True, metavar="SPEC", help="The recipe that answers.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8787, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
def serve(dataset: str, data: Path | None, spec: str, host: str, port: int) -> None:
    """Answer contract v0.2 (`POST /search`) over a labelled set or a folder of Markdown, until SIGTERM or Ctrl-C."""
    from recallbench.datasets import registry
    from recallbench.datasets.readers import native
    from recallbench.datasets.readers.notes import read_notes
    from recallbench.serve.app import make_app, run_server
    from recallbench.serve.recipe import KnowledgeBase
    from recallbench.systems.recipe import recipe_of
    from recallstack.ranking.rows import Corpus

    folder = Path(dataset)
    named = dataset in {one.name for one in (*registry.names(), *registry.formats())}
    if data is None and not named and folder.is_dir() and not (folder / native.TOML).is_file():
        name = folder.resolve().name
        corpora = {name: Corpus.of(name, read_notes(folder))}
    else:
        corpora = dict(registry.load(dataset, data=data).corpora)
    base = KnowledgeBase(corpora, recipe_of(spec))
    for note in base.warm():
        click.echo(f"note: {note}", err=True)
    run_server(make_app(base.answer, check=base.check, about=base.about()), host, port)
