"""`recallbench verify`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE…]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(files: tuple[Path, ...], as_json: bool) -> int:
    """Known-answer tests of this installation: cases (JSON lines) with the values that must come out.

    Without a file, the cases that ship with the package. Exit code 1 if any fails; the first that differs is
    shown in full.
    """
    from recallbench.cli.show import print_json
    from recallbench.text.tables import table
    from recallbench.verify.run import shipped_cases
    from recallbench.verify.run import verify as check

    result = check(files or shipped_cases())
    counts, failed = result.by_kind(), result.failed
    if as_json:
        print_json(
            {
                "kinds": {kind: {"passed": good, "failed": bad} for kind, (good, bad) in counts.items()},
                "failed": [
                    {
                        "kind": one.kind,
                        "case": one.case,
                        "where": one.where,
                        "differences": [
                            {"what": d.what, "expected": repr(d.expected), "got": repr(d.got)} for d in one.differences
                        ],
                    }
                    for one in failed
                ],
            }
        )
        return 1 if failed else 0
    click.echo(table(["kind", "passed", "failed"], [[kind, str(g), str(b)] for kind, (g, b) in counts.items()]))
    if failed:
        first = failed[0]
        click.echo(f"\nfirst difference: {first.where}, kind {first.kind}, case {first.case}")
        for one in first.differences:
            click.echo(f"  {one.what}\n    expected {one.expected!r}\n    got      {one.got!r}")
        click.echo(f"  the case: {first.line}")
    return 1 if failed else 0
