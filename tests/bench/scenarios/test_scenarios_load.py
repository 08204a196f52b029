"""Scenario files that cannot be used: one line with file and line number each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recallbench.scenarios.load import load
from recallbench.scenarios.reference import Reference
from recallstack.errors import InputError

GOOD = """id: my-scenario
system: mneme
kind: bug
title: {en: A title, zh: 标题}
source: a test
needs: [search]
symptom: what a user sees
cause: why
given:
  memories: [{id: a, content: cache}]
legacy: {like_override: true}
steps:
  - {probe: search, query: cache, save: hits}
expect:
  - {first: [hits.ids, a]}
symptoms:
  - {empty: hits.ids}
"""


def test_the_good_file_loads(tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD, encoding="utf-8")
    [found] = load([tmp_path], Reference())
    assert (found.id, found.title.zh, dict(found.switches)) == ("my-scenario", "标题", {"like_override": True})
    assert found.expect[0].where == f"{path}:15"


BROKEN = [
    ("  - {probe: search,", "  - {prob: search,", 13, "unknown step"),
    ("probe: search", "probe: serch", 13, "unknown probe 'serch'; did you mean 'search'?"),
    ("query: cache,", "qery: cache,", 13, "unknown argument of search 'qery'"),
    ("needs: [search]", "needs: [serch]", 6, "unknown capability 'serch'"),
    ("needs: [search]", "needs: [lane]", 6, "unknown capability of mneme 'lane'"),
    ("kind: bug", "kind: bugg", 3, "kind"),
    ("system: mneme", "system: nothing", 2, "system"),
    ("id: my-scenario", "id: My Scenario", 1, "id"),
    ("title: {en: A title, zh: 标题}", "title: {en: A title}", 4, "zh"),
    ("legacy: {like_override: true}", "legacy: {like_overide: true}", 11, "unknown switch of mneme 'like_overide'"),
    ("legacy: {like_override: true}\n", "", 3, "a bug needs `legacy`"),
    ("symptoms:\n  - {empty: hits.ids}\n", "", 3, "a bug needs `symptoms`"),
    ("kind: bug", "kind: guard", 3, "a guard needs `mutant`"),
    ("first: [hits.ids, a]", "frist: [hits.ids, a]", 15, "unknown operator 'frist'"),
    ("first: [hits.ids, a]", "first: [hits.ids]", 15, "first takes a path and 1 more"),
    ("first: [hits.ids, a]", "first: [other.ids, a]", 15, "nothing is saved as 'other'"),
    ("expect:\n  - {first: [hits.ids, a]}\n", "", 1, "nothing is expected"),
    (", save: hits}", "}", 13, "saves nothing"),
    ("  - {probe", "  - {advance_ms: -5}\n  - {probe", 13, "advance_ms is -5"),
    ("  - {probe", "  - {fault: {embed: broken}}\n  - {probe", 13, "unknown fault of embed 'broken'"),
    ("  - {probe", "  - {event: user/massage}\n  - {probe", 13, "unknown event 'user/massage'"),
    ("given:", "given:\n  config: {recip: rrf}", 10, "unknown setting of mneme 'recip'"),
    ("cause: why", "cause: why\ncause: because", 9, "key 'cause' stands here twice"),
    ("cause: why", "cause: !!python/object/apply:os.system [ls]", 8, "could not determine a constructor"),
    ("cause: why", "cause: [why", 9, "not valid YAML"),
    ("cause: why", "cause: &a [*a]", 8, "alias *a; write the value out"),
    ("cause: why", "cause: why\nreason: none", 9, "unknown field `reason`"),
    ("cause: why", "caus: why", 8, "unknown field `caus`; did you mean 'cause'?"),
    ("system: mneme", "system: mnem", 2, "Invalid enum value 'mnem'; did you mean 'mneme'?"),
    ("save: hits}", "top_k: x, save: hits}", 13, "top_k is 'x': Expected `int`, got `str`"),
    ("save: hits}", "top_k: 0, save: hits}", 13, "top_k is 0: Expected `int` >= 1"),
    ("given:", "given:\n  vectors: {a: [.nan, 1]}", 10, "a vector is a list of finite numbers"),
]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"), BROKEN, ids=[f"{i}-{one[3][:20]}" for i, one in enumerate(BROKEN)]
)
def test_broken_files(old: str, new: str, line: int, message: str, tmp_path: Path) -> None:
    assert old in GOOD
    path = tmp_path / "broken.yaml"
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load([path], Reference())
    text = str(caught.value)
    assert message in text
    assert text.startswith(f"{path}:{line}:")
    assert "\n" not in text


def test_files_that_are_no_scenario(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no scenario file"):
        load([tmp_path], Reference())
    with pytest.raises(InputError, match="cannot be read"):
        load([tmp_path / "missing.yaml"], Reference())
    (tmp_path / "list.yaml").write_text("- a\n")
    with pytest.raises(InputError, match="a scenario is a mapping"):
        load([tmp_path], Reference())


def test_an_id_twice_names_both_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(InputError, match=r"b\.yaml: scenario id 'my-scenario' is also in .*a\.yaml"):
        load([tmp_path], Reference())


def command(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "recallbench", "scenarios", *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=cwd,
        encoding="utf-8",
    )


def test_the_command_runs_and_writes_junit_and_markdown(tmp_path: Path) -> None:
    out = tmp_path / "new" / "scenarios.xml"
    done = command(
        "run", "--system", "field", "--junit", str(out), "--markdown", str(tmp_path / "s.md"), "--lang", "zh"
    )
    assert done.returncode == 0, done.stderr
    assert "passed" in done.stdout.splitlines()[-1]
    assert "LIKE" not in done.stdout
    assert "名次从 0 开始计算" in done.stdout
    assert out.read_text(encoding="utf-8").startswith("<?xml")
    assert "# Scenarios" in (tmp_path / "s.md").read_text(encoding="utf-8")


def test_a_failing_scenario_exits_1_and_says_what_came(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(GOOD, encoding="utf-8")  # legacy shows no such symptom
    done = command("run", "--folder", str(tmp_path))
    assert done.returncode == 1
    assert "expected  empty: hits.ids" in done.stdout
    assert "came      hits.ids is ['a']" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "mneme-like-overide-rrf"), "did you mean mneme-like-override-rrf?"),
        (("run", "--system", "nothing"), "no scenario of it"),
        (("run", "--folder", "nowhere"), "cannot be read"),
        (("run", "--implementation", "nothing"), "use reference, stdio:COMMAND or python:MODULE:NAME"),
        (("run", "--implementation", "python:no_such_module:x"), "cannot import no_such_module"),
        (("run", "--implementation", "python:json:nothing"), "json has no nothing"),
        (("run", "--implementation", "python:json:JSONDecoder"), "the object has no name"),
        (("show", "nothing"), "unknown scenario"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    done = command(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


PLUGIN = """
from recallbench.scenarios.base import Vocabulary

class Running:
    def __init__(self, given):
        self.given = given
    async def event(self, kind, data): pass
    async def call(self, name, arguments): pass
    async def fault(self, name, value): pass
    async def close(self): pass
    async def probe(self, name, arguments):
        words = set(arguments["query"].split())
        ranked = sorted(self.given.memories, key=lambda one: -len(words & set(one["content"].split())))
        return {"ids": [one["id"] for one in ranked][: arguments.get("top_k", 5)]}

class Mine:
    name = "mine"
    def vocabulary(self, system):
        if system == "mneme":
            return Vocabulary(probes={"search": frozenset()}, capabilities=frozenset({"search", "vectors"}))
    def switches(self, system):
        return frozenset()
    def start(self, system, given, switches):
        return Running(given)
"""


def test_an_implementation_of_ones_own(tmp_path: Path) -> None:
    """Fixed alone, invariants alone; what it does not declare is n/a. Its ranking by shared words puts b and k1..."""
    (tmp_path / "mine.py").write_text(PLUGIN)
    done = command(
        "run", "--implementation", "python:mine:Mine", "mneme-like-override-rrf", "mneme-prefetch-shared", cwd=tmp_path
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("| mneme")]
    assert len(lines) == 2
    assert " n/a " in next(line for line in lines if "prefetch" in line)
    assert " ok " in next(line for line in lines if "like" in line)  # a shares two words with the query, k1 none
