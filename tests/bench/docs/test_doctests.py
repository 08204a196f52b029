"""The examples in the docstrings of the Python API and in its guide are run."""

from __future__ import annotations

import doctest
import importlib

import pytest
from paths import ROOT

MODULES = [
    "recallbench.sweeps.ablations",
    "recallbench.evaluation.compared",
    "recallbench.datasets.select",
    "recallbench.evaluation.experiment",
    "recallbench.evaluation.frames",
    "recallbench.plots.results",
    "recallbench.plots.sweeps",
    "recallbench.sweeps.maps",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name: str) -> None:
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted > 0
    assert done.failed == 0


def test_examples_of_the_guide() -> None:
    done = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False, encoding="utf-8")
    assert done.attempted > 20
    assert done.failed == 0


def test_every_function_of_the_api_is_in_the_guide() -> None:
    import recallbench
    from recallbench import plots

    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    assert [name for name in (*recallbench.__all__, *plots.__all__) if name not in text] == []
