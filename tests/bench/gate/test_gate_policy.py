"""The policy file: every key read, every mistake named with file and key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made import refused
from paths import ROOT

from recallbench.gate.policy import NO_NEW, Category, Latency, Policy, Scenarios, policy_of, read_config

WHOLE = """
[gate]
dataset = "questions"
data = "public"
split = "test"
query = "context"
systems = ["plugin", "recipe:mine.toml"]
baseline = "baseline"
setup = "npm ci"
allow_zero = ["empty"]
level = 0.9
strict = true
worse_within_margin = "fail"
unjudged = "not-relevant"
seed = 7

[gate.margins]
"nDCG@5" = 0.02
"R(rel=1)@20" = 0.05

[gate.floors]
"R@20" = 0.4

[gate.hard]
Leak = 0
"Stale@5" = "no-new"

[gate.categories.temporal]
margins = {"nDCG@5" = 0.1}
floors = {"nDCG@5" = 0.3}

[gate.latency]
ratio = 1.25
percentile = 50

[gate.scenarios]
run = ["mneme"]
folders = ["scenarios"]
implementation = "python:mine:made"

[systems.plugin]
spec = "stdio:node plugin.mjs"
"""


def test_every_key_is_read(tmp_path: Path) -> None:
    path = tmp_path / "recallbench.toml"
    path.write_text(WHOLE, encoding="utf-8")
    config = read_config(path)
    assert (config.path, config.folder) == (path, tmp_path)
    assert config.policy == Policy(
        dataset="questions",
        data="public",
        split="test",
        query="context",
        systems=("plugin", "recipe:mine.toml"),
        baseline="baseline",
        setup="npm ci",
        margins={"nDCG@5": 0.02, "R(rel=1)@20": 0.05},
        floors={"R@20": 0.4},
        hard={"Leak": 0.0, "Stale@5": NO_NEW},
        categories={"temporal": Category(margins={"nDCG@5": 0.1}, floors={"nDCG@5": 0.3})},
        latency=Latency(ratio=1.25, percentile=50.0),
        scenarios=Scenarios(run=("mneme",), folders=("scenarios",), implementation="python:mine:made"),
        allow_zero=("empty",),
        level=0.9,
        strict=True,
        worse_within_margin="fail",
        unjudged="not-relevant",
        seed=7,
    )
    assert config.policy.measures() == ("nDCG@5", "R(rel=1)@20", "R@20", "Leak", "Stale@5")


def test_the_working_folder_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_config().policy == Policy()
    (tmp_path / "pyproject.toml").write_text('[tool.recallbench.gate.margins]\n"R@5" = 0.1\n', encoding="utf-8")
    assert read_config().policy.margins == {"R@5": 0.1}
    (tmp_path / "recallbench.toml").write_text('[gate.margins]\n"R@5" = 0.2\n', encoding="utf-8")
    assert read_config().policy.margins == {"R@5": 0.2}


BAD: list[tuple[str, str]] = [
    ("[gate]\nmargin = 1", "[gate]: unknown key 'margin'; did you mean 'margins'?"),
    ("[gates]", "unknown table [gates]; did you mean 'gate'?"),
    ("gate = 3", "gate must be a table"),
    ("[gate\n", "broken TOML"),
    ("[gate.margins]\nnDCG = -0.1", '[gate.margins] "nDCG": must be a number above 0, not -0.1'),
    ("[gate.margins]\nnDCG = 0", '[gate.margins] "nDCG": must be a number above 0, not 0'),
    ("[gate.margins]\nnDCG = true", '[gate.margins] "nDCG": must be a number above 0, not True'),
    ("[gate.margins]\nnDCG = nan", '[gate.margins] "nDCG": must be a number above 0, not nan'),
    ('[gate.margins]\n"nDGC@5" = 0.1', "[gate.margins]: measure 'nDGC@5': unknown measure 'nDGC'; did you mean nDCG?"),
    ('[gate.margins]\n"R@5" = 0.1\n"R@05" = 0.2', "'R@05' is another name of 'R@5'"),
    ("[gate]\nmargins = 0.1", "[gate.margins] is a table of measures and numbers"),
    ("[gate.hard]\nLeak = 'none'", '[gate.hard] "Leak": must be a number or "no-new", not \'none\''),
    ("[gate.categories]\ntemporal = 3", "gate.categories holds tables: [gate.categories.NAME]"),
    ("[gate.categories.a]\nfloor = 1", "[gate.categories.a]: unknown key 'floor'; did you mean 'floors'?"),
    (
        "[gate.categories.temporal.floors]\nR = 'x'",
        "[gate.categories.temporal.floors] \"R\": must be a number, not 'x'",
    ),
    ("[gate.latency]\npercentile = 50", "gate.latency: object missing required field `ratio`"),
    ("[gate.latency]\nratio = 0", "gate.latency.ratio: expected `float` > 0.0"),
    ("[gate]\nlevel = 1", "gate.level: expected `float` < 1.0"),
    ("[gate]\nstrict = 'yes'", "gate.strict: expected true/false, got a text"),
    ("[gate]\nsystems = 'one'", "gate.systems: expected a list, got a text"),
    ("[gate]\nsystems = ['one', 2]", "gate.systems[1]: expected a text, got a whole number"),
    ("[gate]\nsplit = 'train'", "gate.split: invalid enum value 'train'"),
]


@pytest.mark.parametrize(("content", "said"), BAD, ids=[said for _, said in BAD])
def test_mistakes_are_named(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "recallbench.toml"
    path.write_text(content, encoding="utf-8")
    message = refused(read_config, path)
    assert message.startswith(f"{path}: ")
    assert said in message


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    assert "recallbench init" in refused(read_config, tmp_path / "no.toml")


def test_integers_are_numbers() -> None:
    values: dict[str, Any] = {"margins": {"Chars": 100}, "latency": {"ratio": 2}}
    found = policy_of(values, "x")
    assert found.margins == {"Chars": 100}
    assert found.latency == Latency(ratio=2.0)


def test_every_key_is_documented() -> None:
    text = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
    for kind, table in ((Policy, "gate"), (Latency, "gate.latency"), (Scenarios, "gate.scenarios")):
        for key in kind.__struct_fields__:
            named = (f"`{key}`", f"[{table}.{key}]", f"[{table}.{key}.NAME]")
            assert any(one in text for one in named), f"{table}.{key}"
