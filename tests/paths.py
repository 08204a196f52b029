"""Where tests find the known answers and the real labelled data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CASES = ROOT / "tests" / "cases"


def data_folder() -> Path:
    """The folder of the real labelled data; skips the test where it is not there."""
    named = os.environ.get("RECALLBENCH_DATA")
    if not named:
        pytest.skip("RECALLBENCH_DATA is not set: the real labelled data is not part of the project")
    return Path(named)
