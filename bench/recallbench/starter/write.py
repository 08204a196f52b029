"""The files of `init`: none is written over, and all or none is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Literal

from recallbench.systems.spec import kind_of
from recallstack.errors import InputError

Ci = Literal["github", "gitlab", "none"]
CI_FILES: Mapping[Ci, str] = {"github": ".github/workflows/recallbench.yml", "gitlab": ".gitlab/recallbench.yml"}
POLICY = "recallbench.toml"
BASELINE = "recall-baseline"


def template(name: str) -> str:
    """A file of `templates/`."""
    return (files("recallbench.starter") / "templates" / name).read_text(encoding="utf-8")


def policy_text(dataset: str, system: str, margins: Mapping[str, float], *, complete: bool) -> str:
    """`recallbench.toml`, with a comment on every key.

    complete: whether the labels are (a starter set's are by its making).
    """
    unjudged = (
        'unjudged = "not-relevant"   # each question was drawn from its answer: other memories are wrong answers'
        if complete
        else '# unjudged = "not-relevant"   # if the labels are complete; else unjudged hits can make it INCONCLUSIVE'
    )
    lines = "\n".join(f'"{name}" = {value:g}' for name, value in margins.items())
    primary = next(iter(margins))
    parts = {
        "DATASET": _toml(dataset),
        "SYSTEMS": _systems(system)[0],
        "TABLE": _systems(system)[1],
        "UNJUDGED": unjudged,
        "MARGINS": lines,
        "PRIMARY": primary,
        "BASELINE": _toml(BASELINE),
    }
    text = template(POLICY)
    for key, value in parts.items():
        text = text.replace(f"@{key}@", value)
    return text


def _systems(system: str) -> tuple[str, str]:
    """(the line `systems`, the table that it names)."""
    if not system:
        example = '[systems.plugin]\nspec = "stdio:node plugin.mjs"'
        return 'systems = ["plugin"]', example
    if kind_of(system) not in (None, "recipe"):
        return 'systems = ["plugin"]', f"[systems.plugin]\nspec = {_toml(system)}"
    return f"systems = [{_toml(system)}]", '# [systems.plugin]\n# spec = "stdio:node plugin.mjs"'


def _toml(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)


def absent(root: Path, names: Sequence[str]) -> None:
    """Raises InputError if one of the files is there."""
    for name in names:
        if (root / name).exists():
            raise InputError(f"{root / name}: is there already; move it away, or write into another folder with --out")


def write_all(root: Path, contents: Mapping[str, str]) -> None:
    """Write files below a folder; those that were written are taken back if one cannot be.

    Raises InputError if one cannot be written.
    """
    done: list[Path] = []
    try:
        for name, text in contents.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            done.append(path)
            path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        for path in done:
            path.unlink(missing_ok=True)
        raise InputError(f"{error.filename}: cannot be written: {error.strerror}; nothing was kept") from None
