"""Results in a notebook: escaped, without texts, and readable without Jinja2."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest

from recallbench import Experiment, ablation, compare, from_frames, load, sweep_map
from recallbench.cache.candidates import CandidateCache
from recallbench.evaluation.explain import explain
from recallbench.measures import parse_measure
from recallbench.sweeps.choose import sweep_set
from recallbench.sweeps.grid import Grid
from recallbench.text.display import Part, _template, to_html, to_text
from recallstack.ranking.presets import preset

CANARY = "canary-7f3a"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def hostile():
    """A set whose every text is a canary, and whose names are markup."""
    memories = pd.DataFrame({"id": [f"m{n}" for n in range(4)], "content": [f"{CANARY} {n} tea" for n in range(4)]})
    questions = pd.DataFrame(
        {
            "id": [f"q{n}{HOSTILE}" for n in range(4)],
            "text": [f"{CANARY} {n}" for n in range(4)],
            "relevant": ["m0", "m1", "m2", "m3"],
            "categories": [[HOSTILE]] * 4,
            "cluster": ["a", "a", "b", "b"],
            "split": ["dev", "dev", "test", "test"],
        }
    )
    return from_frames(memories, questions, name=HOSTILE)


def shown(hostile):
    """(what, value) of everything that shows itself."""
    recipes = [dataclasses.replace(preset(name), name=f"{name}{HOSTILE}") for name in ("bm25-okapi", "rrf-k60")]
    result = Experiment(hostile, recipes, ["RR", "R@5"], baseline=recipes[0].name)
    sixteen = Experiment(hostile, ["presets:inject"], ["RR"])
    yield "set", hostile
    yield "result", result
    yield "compared", compare(result)
    yield "by category", compare(result, by="category")
    yield "ablation", ablation(sixteen)
    yield "map", sweep_map(hostile, measures=["RR"], k=(1, 60), pools=(20,))
    yield "explanation", explain(hostile, hostile.questions[0].id, recipes[1])
    grid = Grid(methods=("rrf",), k=(1, 60), pools=(20,))
    yield "sweep", sweep_set(hostile, CandidateCache(), grid, [parse_measure("RR")])


def test_everything_is_escaped_and_holds_no_text(hostile) -> None:
    seen = []
    for what, value in shown(hostile):
        html, text = value._repr_html_(), repr(value)
        assert "<img" not in html, what
        assert CANARY not in html, what
        assert CANARY not in text, what
        assert html.count("<table>") >= 1, what
        seen.append((what, "&lt;img" in html))
    assert [what for what, escaped in seen if not escaped] == ["sweep"]  # it names recipes of its own alone


def test_a_part_in_html_and_in_text() -> None:
    parts = [Part("Title & more", "about", ("", "a|b"), [["x", "1"]], ["note <b>"]), Part("", "alone")]
    html = to_html(parts)
    assert html is not None
    assert "<strong>Title &amp; more</strong><br>about" in html
    assert "<li>note &lt;b&gt;</li>" in html
    assert "<p>alone</p>" in html
    assert to_text(parts).splitlines() == [
        "Title & more: about",
        "|     | a\\|b |",
        "|-----|-----:|",
        "| x   |    1 |",
        "- note <b>",
        "alone",
    ]


def test_without_jinja_the_text_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython falls back to `__repr__` where `_repr_html_` gives None."""
    import builtins

    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "jinja2":
            raise ImportError(name)
        return real(name, *rest, **more)

    _template.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    try:
        assert load("kb-preretrieval")._repr_html_() is None
    finally:
        _template.cache_clear()


def test_a_set_shows_its_counts() -> None:
    one = load("kb-preretrieval")
    questions, memories = len(one.questions), sum(map(len, one.corpora.values()))
    assert repr(one) == f"kb-preretrieval {one.info.version}: {questions} questions, {memories} memories"
    dev = sum(question.split == "dev" for question in one.questions)
    assert f"dev {dev}" in one._repr_html_()


def test_an_invalid_result_says_so() -> None:
    from recallbench.systems.base import SystemRun

    class Broken:
        name, spec = "broken", {}

        def run(self, labelled, depth):
            import numpy as np

            n = len(labelled.questions)
            return SystemRun("broken", {}, ((),) * n, ((),) * n, np.zeros(n, np.int32), np.ones(n, bool))

    result = Experiment("kb-preretrieval", [Broken(), "bm25-okapi"], ["nDCG@5"])
    assert not result.valid
    assert "INVALID" in repr(result)
    assert "error: broken" in repr(result)
