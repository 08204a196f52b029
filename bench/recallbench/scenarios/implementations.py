"""`--implementation`: the reference stack, an object of the caller's own, or a system on stdio."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recallbench.scenarios.base import Implementation
from recallbench.scenarios.reference import Reference
from recallstack.errors import InputError

if TYPE_CHECKING:
    from recallbench.systems.config import Configured

_METHODS = ("name", "vocabulary", "switches", "start")


def implementation_of(
    spec: str, configured: Mapping[str, Configured] | None = None, overrides: Mapping[str, Any] | None = None
) -> Implementation:
    """`reference`, `stdio:COMMAND`, or `python:MODULE:NAME`: an implementation, or a function that makes one.

    The working folder is searched for the module too. configured, overrides: as of `systems_of`, for a system on
    stdio; that one must be closed. Raises InputError for an unknown spec, an object that is no implementation, or a
    system that does not start.
    """
    if spec == "reference":
        return Reference()
    if spec in (configured or {}) or not spec.startswith("python:"):
        from recallbench.systems.spec import parse

        one = parse(spec, configured)
        if one.kind != "recipe":
            from recallbench.scenarios.remote import Remote

            return Remote(one, overrides)
    kind, _, rest = spec.partition(":")
    module_name, _, name = rest.partition(":")
    if kind != "python" or not module_name or not name:
        raise InputError(f"--implementation {spec}: use reference, stdio:COMMAND or python:MODULE:NAME")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        made = getattr(importlib.import_module(module_name), name)
    except ImportError as error:
        raise InputError(f"--implementation {spec}: cannot import {module_name}: {error}") from None
    except AttributeError:
        raise InputError(f"--implementation {spec}: {module_name} has no {name}") from None
    if not hasattr(made, "start") or isinstance(made, type):
        if not callable(made):
            raise InputError(f"--implementation {spec}: the object has no start, and cannot be called to make one")
        try:
            made = made()
        except Exception as error:
            raise InputError(
                f"--implementation {spec}: calling {name} without arguments failed: {type(error).__name__}: {error}"
            ) from error
    missing = [one for one in _METHODS if not hasattr(made, one)]
    if missing:
        raise InputError(f"--implementation {spec}: the object has no {', '.join(missing)}")
    found: Implementation = made
    return found
