"""The command line. Commands are loaded when they are called, so that `--help` stays quick."""

from __future__ import annotations

import errno
import importlib
import os
import sys
import traceback
import warnings
from typing import Any

import click

OK, FAILED, BAD_INPUT, INCONCLUSIVE, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 70, 130
"""Exit codes (protocols, statistics and verdict)."""

_REPORT = "this is a fault of recallbench; please report it with the lines above"
_COMMANDS = {
    "run": "Run systems on labelled sets, measure and check them.",
    "compare": "Two systems of a run, or two runs: paired differences, and the questions that flipped.",
    "gate": "Is this change fit to merge? PASS, FAIL, INCONCLUSIVE or INVALID, and why.",
    "baseline": "What systems returned at a good revision, committed: save, show, check.",
    "init": "Start in a repository of your own: policy, starter set, CI file.",
    "datasets": "List, show, check, convert and fetch labelled sets.",
    "systems": "Check an adapter line by line; get the adapter for your language.",
    "recipes": "List, show and compare recipes.",
    "explain": "One question through one recipe: every stage, and where each memory was lost.",
    "sweep": "Choose a fusion recipe on dev questions, report it on test questions.",
    "report": "Reports from runs: HTML, Markdown with images, badge; history over revisions.",
    "scenarios": "Replay documented bug sequences: list, show, run, mutants.",
    "notes": "Search a folder of your own Markdown notes: index, search, sync, status.",
    "serve": "Answer the pre-retrieval contract over a set or a folder of Markdown.",
    "verify": "Known-answer tests of this installation.",
    "cache": "Where channel candidates are kept, and how to drop them.",
}
"""name -> one line of help; `cli/NAME.py` holds the command under its own name."""


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: Any = getattr(importlib.import_module(f"recallbench.cli.{cmd_name}"), cmd_name)
        return command  # type: ignore[no-any-return]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


def _version() -> str:
    from importlib.metadata import version

    return version("recallbench")


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="recallbench", message="%(prog)s %(version)s")
def cli() -> None:
    """recallbench: did the recall of an agent memory get better or worse, on which questions, at which step?

    Exit codes: 0 fine; 1 something failed a check; 2 bad input or an invalid run; 3 an inconclusive gate with --strict;
    70 a fault of recallbench itself; 130 interrupted.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    from recallstack.errors import InputError

    try:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a lone surrogate in a question must not end a run
                stream.reconfigure(errors="backslashreplace")
        with warnings.catch_warnings():
            warnings.showwarning = _warned
            code = cli.main(arguments, prog_name="recallbench", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.ctx.get_help() if error.ctx else error.format_message(), file=sys.stderr)
        return BAD_INPUT
    except click.ClickException as error:
        return _say(error.format_message(), BAD_INPUT)
    except InputError as error:
        return _say(str(error), BAD_INPUT)
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output is gone (`| head`): nothing is wrong, and the exit must not print again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as error:
        # Where an output file is named, the code that writes it says so; what is left is a disk without room
        # (a compiled kernel's cache, a temporary file) or a fault of ours.
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return _say(f"{error.filename or 'disk'}: {error.strerror}; make room and run again", BAD_INPUT)
        traceback.print_exc()
        return _say(_REPORT, INTERNAL)
    except Exception:  # noqa: BLE001 (the last line of defence: shown whole, with its own exit code)
        traceback.print_exc()
        return _say(_REPORT, INTERNAL)


def _warned(message: Warning | str, *where: Any, **more: Any) -> None:
    """A warning as one line, without the place in our code."""
    print(f"recallbench: warning: {' '.join(str(message).split())}", file=sys.stderr)


def _say(message: str, code: int) -> int:
    from recallbench.text.escape import one_line

    print(f"recallbench: error: {one_line(message)}", file=sys.stderr)
    return code
