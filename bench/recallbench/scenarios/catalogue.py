"""Where the catalogue of scenarios lies."""

from __future__ import annotations

from pathlib import Path

from recallbench.datasets.registry import shipped_folder
from recallstack.errors import InputError


def catalogue_folder() -> Path:
    """`datasets/scenarios` of the checkout or of the installed package. Raises InputError if it is not there."""
    folder = shipped_folder()
    if folder is None or not (folder / "scenarios").is_dir():
        raise InputError("the scenario catalogue is not part of this installation; give --folder")
    return folder / "scenarios"
