"""Public files that are not part of the project: downloaded, checked against a pinned SHA-256, kept whole.

The standard library's urllib does it (redirects, the proxies of the environment, the system's certificates):
one request needs no HTTP client, and httpx is in an extra only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recallbench.datasets.jsonl import nearest, one_line
from recallstack.errors import InputError

TIMEOUT = 30.0
"""Seconds without a byte until the download is given up."""
CHUNK = 1 << 16
"""Bytes read at once."""


@dataclass(frozen=True, slots=True)
class Public:
    """A public file. size: bytes. sha256: of its content, hex. terms: what the licence asks, one line."""

    file: str
    url: str
    size: int
    sha256: str
    licence: str
    terms: str


PUBLIC: Mapping[str, Public] = {
    "locomo": Public(
        file="locomo10.json",
        url="https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json",
        size=2_805_274,
        sha256="79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4",
        licence="CC BY-NC 4.0",
        terms="name the authors (Maharana et al., Evaluating Very Long-Term Conversational Memory of LLM Agents,"
        " ACL 2024), no commercial use; https://creativecommons.org/licenses/by-nc/4.0/",
    )
}
"""By the name of the format that reads it."""


def public(name: str) -> Public:
    """Raises InputError for a name without a public file."""
    if name not in PUBLIC:
        raise InputError(f"{name!r} cannot be fetched; {nearest(name, PUBLIC)}")
    return PUBLIC[name]


def folder_of(name: str) -> Path:
    """Where a fetched file is kept unless another folder is named: in the user's data folder of this system."""
    import platformdirs

    return platformdirs.user_data_path("recallbench") / name


def fetch(one: Public, folder: Path, url: str | None = None, progress: Callable[[int], None] | None = None) -> bool:
    """Put the file into `folder`; False if it is there already. url: another place with the same bytes.

    The file gets its name when its checksum is right, never before. progress is told the bytes so far.
    Raises InputError, one line, if the address cannot be read, its content is another, or `folder` cannot be
    written.
    """
    target = folder / one.file
    if target.exists():
        if _hash(target) != one.sha256:
            raise InputError(f"{target}: is there already and is another file; move it away, or name another folder")
        return False
    source = url or one.url
    with _temporary(target) as (handle, name):
        digest, size = hashlib.sha256(), 0
        for part in _download(source):
            size += len(part)
            if size > one.size:
                raise InputError(f"{source}: is longer than the {one.size} bytes of {one.file}; nothing was kept")
            digest.update(part)
            handle.write(part)
            if progress:
                progress(size)
        handle.close()
        if size < one.size:
            raise InputError(f"{source}: ended after {size} of {one.size} bytes; nothing was kept, try again")
        if digest.hexdigest() != one.sha256:
            raise InputError(
                f"{source}: its SHA-256 is {digest.hexdigest()}, and that of {one.file} is {one.sha256};"
                " nothing was kept: the file was changed, give --url for a place that has the original"
            )
        name.replace(target)
    return True


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[tuple[Any, Path]]:
    """(open file, its path) beside `target`; the file is deleted unless it was renamed."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
        try:
            with os.fdopen(number, "wb") as handle:
                yield handle, Path(name)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from None


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def _download(url: str) -> Iterator[bytes]:
    """The content at an address, in parts. Raises InputError; no error of the network leaves as an OSError."""
    import http.client
    import urllib.error
    import urllib.request

    if not url.startswith(("https://", "http://")):
        raise InputError(f"{url}: an address begins with https:// or http://")
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "recallbench"})
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            while part := answer.read(CHUNK):
                yield part
    except urllib.error.HTTPError as error:
        error.close()
        raise InputError(
            f"{url}: the server answers {error.code} {error.reason}; give --url for another place"
        ) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise InputError(
            f"{url}: cannot be downloaded: {one_line(str(reason)) or type(error).__name__};"
            " check the network, or download it elsewhere and name its folder with --data"
        ) from None
