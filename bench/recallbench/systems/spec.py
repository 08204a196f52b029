"""A spec of `--system`, taken apart: `[NAME=]KIND:REST`."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from recallbench.systems.config import Configured
from recallbench.systems.settings import KINDS, Kind
from recallstack.errors import InputError

_NAME = re.compile(r"([\w.+-]+)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec that was taken apart: `[NAME=]KIND:REST`. where: how messages begin."""

    kind: Kind
    rest: str
    name: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""
    folder: Path | None = None


def parse(spec: str, configured: Mapping[str, Configured] | None = None) -> Spec:
    """A spec as it is given. What has no kind in front is a system of the configuration, or else a recipe.

    Raises InputError for a spec that says nothing.
    """
    where = f"--system {spec}"
    one = (configured or {}).get(spec)
    if one is not None:
        found = parse(one.spec)
        return Spec(found.kind, found.rest, spec, one.values, one.where, one.folder)
    named = _NAME.fullmatch(spec)
    if named and kind_of(named[2]) is not None:
        found = parse(named[2])
        return Spec(found.kind, found.rest, named[1], {}, where)
    kind = kind_of(spec)
    if kind is None:
        return Spec("recipe", spec, where=where)
    rest = spec if spec.startswith(("http://", "https://")) else spec.partition(":")[2]
    if not rest.strip():
        raise InputError(f"{where}: nothing stands after {kind}:")
    return Spec(kind, rest.strip(), where=where)


def kind_of(spec: str) -> Kind | None:
    """The kind in front of a spec, None where there is none."""
    if spec.startswith("https://"):
        return "http"
    return next((kind for kind in KINDS if spec.startswith(f"{kind}:")), None)


def command_of(one: Spec) -> list[str]:
    """The words of a command, as a shell would split them; there is no shell. Raises InputError for an open quote."""
    try:
        words = shlex.split(one.rest, posix=os.name != "nt")
    except ValueError as error:
        raise InputError(f"{one.where}: {error}") from None
    if not words or not words[0]:
        raise InputError(f"{one.where}: no command")
    return words


def shown(word: str) -> str:
    """A word of a command without a path of this machine."""
    path = PurePath(word)
    return f"…/{path.name}" if path.is_absolute() else word


def public_url(url: str) -> str:
    """An address without user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def digest(data: bytes) -> str:
    """The first 12 hexadecimal digits of the SHA-256 of some bytes: enough to tell two versions of a file apart."""
    return hashlib.sha256(data).hexdigest()[:12]
