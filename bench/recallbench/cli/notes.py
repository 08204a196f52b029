"""`recallbench notes`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from recallstack.systems.notes import Notes, SyncReport

F = TypeVar("F", bound=Callable[..., Any])
DATABASE = Path(".index") / "recallbench-notes.db"
"""Where the index is, below the first folder, unless --db names another file; the scan leaves `.index` out."""
_OPTIONS = (
    click.argument("folder", type=click.Path(path_type=Path)),
    click.option("--root", "more", multiple=True, type=click.Path(path_type=Path), help="A further folder of notes."),
    click.option(
        "--db", type=click.Path(path_type=Path), help="File of the index [FOLDER/.index/recallbench-notes.db]."
    ),
    click.option("--exclude", multiple=True, metavar="GLOB", help="Leave these out too, like **/drafts/**."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON."),
)
_EMBEDDER = click.option("--embedder", metavar="NAME", help="For a semantic list, like sentence-transformers:PATH.")
_LONGEST = click.option("--longest", type=int, metavar="N", help="Characters of the longest chunk [1200].")


def _places(function: F) -> F:
    """The arguments that every command has."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.group()
def notes() -> None:
    """Search a folder of your own Markdown notes, through an index that follows the files.

    Every .md file below FOLDER is a note. The index is one SQLite file; it can be deleted at any time.
    """


@notes.command()
@_places
@_EMBEDDER
@_LONGEST
def index(
    folder: Path,
    more: tuple[Path, ...],
    db: Path | None,
    exclude: tuple[str, ...],
    as_json: bool,
    embedder: str | None,
    longest: int | None,
) -> None:
    """Make the index anew: cut every file, embed every text."""
    with _open(folder, more, db, exclude, embedder, longest=longest) as opened:
        _tell(opened.rebuild(), as_json)


@notes.command()
@_places
@_EMBEDDER
@_LONGEST
@click.option("--accept-spec-change", is_flag=True, help="Cut all files by the chunking rule that waits, or --longest.")
def sync(
    folder: Path,
    more: tuple[Path, ...],
    db: Path | None,
    exclude: tuple[str, ...],
    as_json: bool,
    embedder: str | None,
    longest: int | None,
    accept_spec_change: bool,
) -> None:
    """Bring the index in line with the files: only what changed is cut.

    Another --longest than the index has is recorded and changes nothing until --accept-spec-change.
    """
    with _open(folder, more, db, exclude, embedder, longest=longest) as opened:
        if accept_spec_change:
            opened.accept_spec_change()
        _tell(opened.sync(), as_json)


@notes.command()
@_places
@click.argument("query")
@_EMBEDDER
@click.option("--query-instruction", default="", help="Put before the query for the embedder, if its model wants one.")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 80), help="Hits at most.")
@click.option("--session", metavar="ID", help="Show what this session may see; needs --session-map.")
@click.option("--session-map", type=click.Path(path_type=Path), help='JSON: {"key": {"sessionId": "ID"}, …}.')
@click.option("--owner", "owners", multiple=True, metavar="KEY", help="A key of the owner; needs --session-map.")
@click.option("--section", is_flag=True, help="Print the section that auto-recall would put into the system prompt.")
@click.option("--no-sync", is_flag=True, help="Search the index as it is.")
def search(
    folder: Path,
    more: tuple[Path, ...],
    db: Path | None,
    exclude: tuple[str, ...],
    as_json: bool,
    query: str,
    embedder: str | None,
    query_instruction: str,
    limit: int,
    session: str | None,
    session_map: Path | None,
    owners: tuple[str, ...],
    section: bool,
    no_sync: bool,
) -> None:
    """Bring the index in line, then search it: file, line and text of each hit, best first.

    Without --session-map everything is shown. With it, a session sees what its keys allow: a group or a guest
    public.md only, an owner everything, a session that the map does not name nothing. Scores are left out then:
    they come from ranks over all notes.
    """
    from recallstack.errors import InputError
    from recallstack.systems.notes.sensitivity import read_session_map

    if not query.strip():
        raise InputError("the query is empty; give a few words")
    if session_map is None and (session is not None or owners):
        raise InputError("--session and --owner need --session-map; without it everything is shown")
    known = None if session_map is None else read_session_map(session_map)
    settings: dict[str, Any] = {
        "query_instruction": query_instruction,
        "session_map": known,
        "owners": frozenset(owners),
    }
    with _open(folder, more, db, exclude, embedder, must_exist=no_sync, **settings) as opened:
        if not no_sync:
            warnings = opened.sync().warnings
            if known is None:
                _warn(warnings)
            elif warnings:  # they name notes that the session may not see
                click.echo(f"warning: {len(warnings)} files or folders have a fault; see: notes status", err=True)
        if section:
            _print_section(opened, query, session, as_json)
        else:
            _print_hits(opened, query, session, limit, as_json)


@notes.command()
@_places
def status(folder: Path, more: tuple[Path, ...], db: Path | None, exclude: tuple[str, ...], as_json: bool) -> None:
    """What the index holds, and what a sync would do."""
    import dataclasses

    from recallbench.cli.show import print_json
    from recallbench.text.tables import table

    with _open(folder, more, db, exclude, None, must_exist=True) as opened:
        found = dataclasses.asdict(opened.status())
        found["database"] = str(opened.config.database)
    if as_json:
        print_json(found)
        return
    warnings = found.pop("warnings")
    rows = [[key.replace("_", " "), "–" if value is None else str(value)] for key, value in found.items()]
    click.echo(table(["what", "value"], rows, "ll"))
    _warn(warnings)


def _open(
    folder: Path,
    more: tuple[Path, ...],
    db: Path | None,
    exclude: tuple[str, ...],
    embedder: str | None,
    *,
    longest: int | None = None,
    must_exist: bool = False,
    **settings: Any,
) -> Notes:
    """The notes of these folders. Raises InputError for a folder, an index or an embedder that is not there."""
    from recallstack.errors import InputError
    from recallstack.ranking.embedders import resolve_embedder
    from recallstack.systems.notes import ChunkRule, Notes, NotesConfig
    from recallstack.systems.notes.globs import DEFAULT_EXCLUDE

    for one in (folder, *more):
        if not one.is_dir():
            raise InputError(f"{one}: no such folder; name a folder of Markdown files")
    database = db or folder / DATABASE
    if must_exist and not database.is_file():
        raise InputError(f"{database}: no such index; make it with: recallbench notes index {folder}")
    config = NotesConfig(
        database=database,
        roots=(folder, *more),
        exclude=(*DEFAULT_EXCLUDE, *exclude),
        rule=None if longest is None else ChunkRule(longest=longest),
        **settings,
    )
    return Notes(config, None if embedder is None else resolve_embedder(embedder))


def _tell(report: SyncReport, as_json: bool) -> None:
    import dataclasses

    from recallbench.cli.show import print_json

    if as_json:
        print_json(dataclasses.asdict(report))
        return
    embedded = f", {report.embedded} texts embedded" if report.embedded else ""
    click.echo(
        f"{len(report.added)} files added, {len(report.changed)} changed, {len(report.deleted)} forgotten "
        f"({len(report.renamed)} renamed), {report.unchanged} unchanged; {report.chunks} chunks cut{embedded}"
    )
    if report.rule_waits:
        click.echo("note: the chunking rule has changed; sync --accept-spec-change cuts all files by it", err=True)
    _warn(report.warnings)


def _warn(warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)


def _print_hits(opened: Notes, query: str, session: str | None, limit: int, as_json: bool) -> None:
    import dataclasses

    from recallbench.cli.show import print_json
    from recallstack.systems.notes.scanner import shown

    found = opened.search(query, session, limit)
    mapped = opened.config.session_map is not None
    if as_json:
        document = dataclasses.asdict(found)
        for row in document["hits"] if mapped else ():
            del row["score"]
        print_json(document)
        return
    for remark in found.remarks:
        click.echo(f"note: {remark}", err=True)
    if not found.hits and not found.remarks:
        click.echo("nothing found", err=True)
    for hit in found.hits:
        file = hit.file if len(opened.config.roots) == 1 else f"{hit.root}/{hit.file}"
        # A score tells how many notes above the session's level stand before this one.
        score = "" if mapped else f"  {hit.score:.4f}"
        click.echo(f"{shown(file)}:{hit.line}{score}  {hit.sensitivity}")
        click.echo("".join(f"    {line}\n" for line in hit.text.splitlines()))


def _print_section(opened: Notes, query: str, session: str | None, as_json: bool) -> None:
    import dataclasses

    from recallbench.cli.show import print_json

    made = opened.section(query, session)
    if as_json:
        print_json(None if made is None else dataclasses.asdict(made))
    elif made is None:
        click.echo("nothing to recall", err=True)
    else:
        click.echo(made.text)
