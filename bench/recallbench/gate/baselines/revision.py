"""Another revision of the caller's repository, checked out beside it for as long as its system is asked."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from recallbench.systems.config import Configured
from recallbench.systems.loops import ended_by_signals
from recallbench.systems.process import signal_group
from recallbench.systems.spec import parse
from recallstack.errors import InputError

_OF_GIT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY")
"""What git sets for a hook; in another work tree each would point at the wrong place."""
_BUILT = ("stdio", "mcp")
"""Kinds of systems that run from files of the repository."""


@dataclasses.dataclass(frozen=True, slots=True)
class Revision:
    """A checked-out revision. root: its work tree; folder: what stands there for the caller's working folder."""

    ref: str
    commit: str
    root: Path
    folder: Path

    @property
    def title(self) -> str:
        """As it is named in a report."""
        short = self.commit[:10]
        return short if self.commit.startswith(self.ref) else f"{self.ref} ({short})"


def refuse_foreign(specs: Sequence[str], configured: Mapping[str, Configured]) -> None:
    """Raises InputError for a system that no revision of the repository makes: both sides would be the same one."""
    for spec in specs:
        found = parse(spec, configured)
        if found.kind in _BUILT or (found.kind == "recipe" and found.rest.endswith(".toml")):
            continue
        raise InputError(
            f"--baseline-ref: system {spec!r} does not run from files of this repository, so that both sides would be "
            "the same; use stdio:COMMAND, mcp:COMMAND or recipe:FILE.toml, or a saved --baseline"
        )


@contextlib.contextmanager
def checked_out(ref: str, here: Path | None = None) -> Iterator[Revision]:
    """A work tree of a revision, removed at the end whatever happens. here: the working folder.

    Raises InputError outside a repository, for an unknown revision, or where the working folder is not in it.
    """
    here = (here or Path.cwd()).resolve()
    top = Path(_git(here, "rev-parse", "--show-toplevel", why="--baseline-ref needs a git repository"))
    commit = _git(
        here,
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        f"{ref}^{{commit}}",
        why=f"--baseline-ref {ref}: no such revision here; a shallow clone holds few (in CI: fetch-depth: 0)",
    )
    shell = Path(tempfile.mkdtemp(prefix="recallbench-"))
    root = shell / "tree"
    with contextlib.ExitStack() as stack:
        stack.callback(_remove, here, shell, root)
        stack.enter_context(ended_by_signals())
        # Hooks are for people's own check-outs; this one is nobody's.
        _git(here, "-c", "core.hooksPath=/dev/null", "worktree", "add", "--quiet", "--detach", str(root), commit)
        folder = root / here.relative_to(top.resolve())
        if not folder.is_dir():
            raise InputError(f"--baseline-ref {ref}: {here.relative_to(top.resolve())} is not in that revision")
        yield Revision(ref, commit, root, folder)


def _remove(here: Path, shell: Path, root: Path) -> None:
    with contextlib.suppress(InputError):
        _git(here, "worktree", "remove", "--force", str(root))
    shutil.rmtree(shell, ignore_errors=True)
    with contextlib.suppress(InputError):
        _git(here, "worktree", "prune")


def moved(configured: Mapping[str, Configured], revision: Revision, here: Path | None = None) -> dict[str, Configured]:
    """The same systems, started from the revision's folders; a folder outside the repository stays."""
    here = (here or Path.cwd()).resolve()
    top = Path(_git(here, "rev-parse", "--show-toplevel")).resolve()
    out = {}
    for name, one in configured.items():
        folder = one.folder.resolve()
        if folder.is_relative_to(top):
            one = dataclasses.replace(one, folder=revision.root / folder.relative_to(top))
        out[name] = one
    return out


def set_up(command: str, revision: Revision) -> None:
    """Run the policy's setup command in a revision's folder, through the shell; its output goes to standard error.

    Raises InputError if it fails.
    """
    if not command:
        return
    # In a group of its own, so that what it started ends with it.
    with subprocess.Popen(
        command, shell=True, cwd=revision.folder, stdout=2, env=clean_env(), start_new_session=True
    ) as done:
        try:
            code = done.wait()
        except BaseException:
            signal_group(done.pid, hard=True)
            raise
    if code:
        raise InputError(f"--baseline-ref {revision.ref}: setup command failed with exit code {code}: {command}")


def clean_env() -> dict[str, str]:
    """The environment without what git sets for a hook."""
    return {name: value for name, value in os.environ.items() if name not in _OF_GIT}


def current_commit(here: Path | None = None) -> str:
    """The commit of the working folder, with `+` for changes that are not committed; empty outside a repository."""
    here = here or Path.cwd()
    try:
        commit = _git(here, "rev-parse", "--short=10", "HEAD")
        return commit + ("+" if _git(here, "status", "--porcelain", "--untracked-files=no") else "")
    except InputError:
        return ""


def _git(here: Path, *arguments: str, why: str = "") -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=here, env=clean_env(), capture_output=True, encoding="utf-8", check=False
        )
    except OSError as error:
        raise InputError(f"git cannot be run: {error.strerror}; install it, or use a saved --baseline") from None
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise InputError(f"{why}{': ' if why and said else ''}{said}" or f"git {arguments[0]} failed")
    return done.stdout.strip()
