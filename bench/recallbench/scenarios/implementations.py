"""`--implementation`: the reference stack, or an object of the caller's own."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from recallbench.scenarios.base import Implementation
from recallbench.scenarios.reference import Reference
from recallstack.errors import InputError

_METHODS = ("name", "vocabulary", "switches", "start")


def implementation_of(spec: str) -> Implementation:
    """`reference`, or `python:MODULE:NAME`: an implementation, or a function without arguments that makes one.

    The working folder is searched for the module too. Raises InputError for an unknown spec or an object that is
    no implementation.
    """
    if spec == "reference":
        return Reference()
    kind, _, rest = spec.partition(":")
    module_name, _, name = rest.partition(":")
    if kind != "python" or not module_name or not name:
        raise InputError(f"--implementation {spec}: use reference or python:MODULE:NAME")
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
