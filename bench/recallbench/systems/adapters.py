"""The adapter modules that ship with the package, copied into a plugin's own project."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from recallstack.errors import InputError

ADAPTERS = {
    "javascript": {"recallbench.mjs": "adapters/recallbench.mjs", "recallbench.d.mts": "adapters/recallbench.d.mts"},
    "python": {"recallbench_adapter.py": "adapters/python.py"},
}
"""language -> file name in the plugin's project -> file of this package."""


def write_adapter(language: str, folder: Path, force: bool = False) -> list[Path]:
    """Write the files of an adapter. Returns their paths.

    Raises InputError for a file that is there and differs (unless `force`), or a folder that cannot be written.
    """
    source = files("recallbench")
    found = {folder / name: (source / path).read_bytes() for name, path in ADAPTERS[language].items()}
    for path, data in found.items():
        if not force and path.exists() and path.read_bytes() != data:
            raise InputError(f"{path}: is there and differs; --force writes over it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, data in found.items():
            path.write_bytes(data)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None
    return list(found)
