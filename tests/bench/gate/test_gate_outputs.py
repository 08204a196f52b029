"""What a gate shows: one screen, a comment that no id can break, JUnit, JSON."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from gate_sets import COUNT, gated, made_set, policy, system

from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.gate.annotations import MOST as ANNOTATED
from recallbench.gate.annotations import workflow_commands
from recallbench.gate.comment import LIMIT, MARK, code, comment, plain
from recallbench.gate.judge import GateResult, judge
from recallbench.gate.lines import reasons, settled, shown
from recallbench.gate.outcome import Outcome, Settle, Verdict
from recallbench.gate.terminal import terminal
from recallbench.gate.values import gate_values, junit
from recallbench.statistics.sample_size import MOST
from recallbench.text.tables import width
from recallstack.ranking.rows import Corpus, Memory

HOSTILE = "<img src=x onerror=alert(1)> @octocat | `x` [a](http://b) **b**"


@pytest.fixture(scope="module")
def failing() -> GateResult:
    """Everything at once: a drop, a category, a leak, a floor, a scenario, latency that cannot be judged, clusters."""
    labelled = made_set(clusters=10, categories={"temporal": range(15)}, forbidden=[3])
    rules = policy(
        margins={"R@5": 0.05, "nDCG@5": 0.05},
        floors={"R@5": 0.9},
        hard={"Leak": "no-new"},
        categories={"temporal": {"margins": {"R@5": 0.1}}},
        latency={"ratio": 1.2},
        scenarios={"run": ["mneme-like-override-rrf"]},
        unjudged="bounds",
    )
    ranks = {n: 0 if n % 2 else 3 for n in range(20)}
    after = system(labelled, ranks, leaks=[3], losses={1: "out-fused", 3: "filtered"})
    return gated(labelled, system(labelled), after, rules, notes=["labels of 2 questions have changed"])


def test_the_terminal_shows_one_screen_with_the_verdict_first(failing: GateResult) -> None:
    text = terminal(failing)
    lines = text.splitlines()
    assert lines[0].startswith("FAIL: plugin against before (made 1, 40 questions in 10 clusters)")
    assert len(lines) <= 60
    assert "| Leak (no new)" in text
    assert "1 worse" in text
    assert "out-fused 1" in text
    assert "filtered 1" in text
    assert "Judge these first" in text
    assert "note: labels of 2 questions have changed" in text


def test_a_pass_without_a_change_is_short() -> None:
    labelled = made_set()
    text = terminal(gated(labelled, system(labelled), system(labelled), policy(margins={"R@5": 0.1})))
    assert "No question changed." in text
    assert len(text.splitlines()) <= 10


def test_many_rules_show_those_that_did_not_pass() -> None:
    outcomes = [Outcome("hard", "s", f"m{n}", Verdict.PASS) for n in range(20)]
    outcomes[17] = Outcome("hard", "s", "m17", Verdict.FAIL)
    found, left = shown(outcomes, 5)
    assert [one.name for one in found] == ["m0", "m1", "m2", "m3", "m17"]
    assert left == 15


def test_an_inconclusive_result_says_what_would_settle_it() -> None:
    labelled = made_set(clusters=20)
    after = system(labelled, dict.fromkeys((0, 1, 2, 3), 0))
    result = gated(labelled, system(labelled), after, policy(margins={"R@5": 0.1}))
    (said,) = reasons(result)
    assert said.startswith("R@5: cannot tell at 95 % whether the drop is within 0.1; what settles it: about ")
    assert "clusters) if nothing changed" in said
    assert "if the true drop is 0.2" in said
    assert settled(Settle(MOST, MOST), 0.1) == "more than 1,000,000 questions would settle it: choose a wider margin"
    assert settled(None, 0.1).startswith("label more questions")


def hostile() -> GateResult:
    """Ids of questions, memories, categories, systems and the set are markup."""
    plain_set = made_set()
    names = [f"m-{n}{HOSTILE}" for n in range(COUNT)] + [f"x-{n}" for n in range(1, 6)]
    questions = [
        Question(id=f"q-{n}{HOSTILE}", text="?", relevant={f"m-{n}{HOSTILE}": 2}, categories=(HOSTILE,))
        for n in range(COUNT)
    ]
    corpus = Corpus("main", [Memory(id=name, content=name) for name in names])
    labelled: LabelledSet = hashed(SetInfo(name=f"set {HOSTILE}"), {"main": corpus}, questions)

    def named(run: Any) -> Any:
        ids = tuple(tuple(f"{one}{HOSTILE}" if one.startswith("m-") else one for one in row) for row in run.ids)
        return dataclasses.replace(run, system=f"plugin {HOSTILE}", ids=ids)

    before, after = named(system(plain_set)), named(system(plain_set, dict.fromkeys(range(20), 0)))
    rules = policy(margins={"R@5": 0.1}, categories={HOSTILE: {"margins": {"R@5": 0.1}}})
    return judge(labelled, [before], [after], rules, depth=5, against=HOSTILE)


def test_no_id_is_markup_in_a_comment() -> None:
    text = comment(hostile())
    assert text.startswith(MARK)
    body = text.removeprefix(MARK)
    for part in body.split("`")[::2]:  # outside of code
        assert "<img" not in part
        assert "@octocat" not in part
        assert "](http" not in part.replace("\\]", "")
        assert "**b**" not in part
    rows = [line for line in body.splitlines() if line.startswith("| ")]
    header = next(line for line in rows if line.startswith("| question"))
    flips = rows[rows.index(header) : rows.index(header) + 10]
    assert {line.replace("\\|", "").count("|") for line in flips} == {header.count("|")}


COMMAND = "\n::error::done\r\n::stop-commands::x \x1b[2J \u202e"


def commanding() -> GateResult:
    """Line ends and control characters in the ids of questions, categories, the set, the baseline, a system's words."""
    made = made_set(forbidden=[3])
    questions = [
        msgspec.structs.replace(one, id=f"{one.id}{COMMAND}", categories=(f"c{COMMAND}",)) for one in made.questions
    ]
    labelled = hashed(SetInfo(name=f"set{COMMAND}"), made.corpora, questions)
    losses = dict.fromkeys(range(20), f"stage{COMMAND}")
    after = system(made, dict.fromkeys(range(20), 0), leaks=[3], failed=[39], losses=losses)
    after = dataclasses.replace(after, notes=(f"log{COMMAND}",))
    rules = policy(margins={"R@5": 0.1}, hard={"Leak": 0}, categories={f"c{COMMAND}": {"margins": {"R@5": 0.1}}})
    notes = [f"labels changed ({COMMAND})"]
    return judge(labelled, [system(made)], [after], rules, depth=5, against=f"base{COMMAND}", notes=notes)


@pytest.mark.parametrize("show", [terminal, comment])
def test_no_id_begins_a_line_or_moves_the_cursor(show: Callable[[GateResult], str]) -> None:
    """In the log of a CI job a line that begins with `::` is a command to the runner."""
    text = show(commanding())
    assert "::error::done" in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]
    assert not {"\x1b", "\r", "\u202e"} & set(text)


def test_names_as_code_and_sentences() -> None:
    assert code("a`b\nc") == "`aˋb c`"
    assert plain("a <b> @me nDCG@5 [x](y) *z* a_b") == "a &lt;b&gt; &#64;me nDCG@5 \\[x\\](y) \\*z\\* a\\_b"


def test_a_comment_begins_with_the_numbers_and_folds_the_rest(failing: GateResult) -> None:
    text = comment(failing)
    first = text.split("<details>")[0]
    assert "❌ recallbench: FAIL" in first
    assert "| R@5" in first
    assert "-0.2" in first
    for folded in ("by category", "Statistics", "nobody judged"):
        assert folded in text
        assert folded not in first
    assert text.count("<details>") == text.count("</details>")


def test_a_comment_fits() -> None:
    """A thousand questions with long ids, all worse."""
    count = 400
    labelled = made_set(count, categories={f"category-{n}" * 20: range(count) for n in range(40)})
    after = system(labelled, dict.fromkeys(range(count), 0))
    text = comment(gated(labelled, system(labelled), after, policy(margins={"R@5": 0.1})))
    assert len(text) <= LIMIT + 100
    assert text.count("<details>") == text.count("</details>")


COMMAND_LINE = re.compile(r"::(error|warning|notice) (?:file=([^:,]*),)?title=([^:,]*)::(.*)")


def commands(text: str) -> list[tuple[str, ...]]:
    """(level, file, title, message) of each line, as the runner of GitHub Actions reads it."""
    found = [COMMAND_LINE.fullmatch(line) for line in text.splitlines()]
    assert all(found), text
    return [match.groups() for match in found if match]


def test_annotations_name_the_verdict_and_what_did_not_pass(failing: GateResult) -> None:
    first, *rest = commands(workflow_commands(failing, "sub/recallbench.toml"))
    assert first[:3] == ("error", "sub/recallbench.toml", "recallbench")
    assert first[3].startswith("FAIL: plugin against before")
    not_passed = [one for one in failing.outcomes if one.verdict is not Verdict.PASS]
    assert len(rest) == len(not_passed)
    levels = {title: level for level, _, title, _ in rest}
    assert levels["recallbench%3A Leak"] == "error"
    assert levels["recallbench%3A latency p95"] == "warning"
    # What fails comes first; 95 % is written as GitHub's toolkit writes it.
    assert [level for level, *_ in rest] == sorted(level for level, *_ in rest)
    assert any("at 95 %25 over all rules together" in message for *_, message in rest)


def test_annotations_of_a_pass_and_of_an_inconclusive_result() -> None:
    labelled = made_set()
    good, four = system(labelled), system(labelled, dict.fromkeys((0, 1, 2, 3), 0))
    [passed] = commands(workflow_commands(gated(labelled, good, good, policy(margins={"R@5": 0.1}))))
    assert passed[:2] == ("notice", None)
    for strict, level in ((False, "warning"), (True, "error")):
        result = gated(labelled, good, four, policy(margins={"R@5": 0.1}, strict=strict))
        assert [one[0] for one in commands(workflow_commands(result))] == [level, level]


def test_no_id_is_a_command_of_its_own_and_few_are_shown() -> None:
    found = commands(workflow_commands(commanding(), f"a,b:c{COMMAND}"))
    assert {level for level, *_ in found} == {"error"}
    assert found[0][1].startswith("a%2Cb%3Ac %3A%3Aerror%3A%3Adone")
    labelled = made_set(categories={f"part-{n:02}": range(20) for n in range(30)})
    rules = policy(margins={"R@5": 0.1}, categories={f"part-{n:02}": {"margins": {"R@5": 0.1}} for n in range(30)})
    many = gated(labelled, system(labelled), system(labelled, dict.fromkeys(range(40), 0)), rules)
    assert len(commands(workflow_commands(many))) == ANNOTATED


def test_junit_has_a_test_a_rule(failing: GateResult) -> None:
    root = ElementTree.fromstring(junit(failing))
    suite = root.find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    assert len(cases) == len(failing.outcomes) == int(suite.get("tests", 0))
    by_name = {case.get("name"): [child.tag for child in case] for case in cases}
    assert by_name["Leak (hard)"] == ["failure"]
    assert by_name["latency p95 (latency)"] == ["skipped"]
    assert by_name["mneme-like-override-rrf (scenario)"] == []
    failures = sum(tags == ["failure"] for tags in by_name.values())
    assert (suite.get("failures"), suite.get("errors")) == (str(failures), "0")


def test_junit_of_strict_and_invalid_results() -> None:
    labelled = made_set()
    four = system(labelled, dict.fromkeys((0, 1, 2, 3), 0))
    strict = gated(labelled, system(labelled), four, policy(margins={"R@5": 0.1}, strict=True))
    assert ElementTree.fromstring(junit(strict)).find(".//failure") is not None
    broken = gated(labelled, system(labelled), system(labelled, failed=[0]), policy(margins={"R@5": 0.1}))
    found = ElementTree.fromstring(junit(broken)).find(".//error")
    assert found is not None
    assert "q-0" in found.get("message", "")


def test_junit_of_hostile_names_is_xml() -> None:
    found = ElementTree.fromstring(junit(hostile())).find(".//testcase")
    assert found is not None
    assert HOSTILE in found.get("classname", "")


def test_json_holds_everything_and_no_nan(failing: GateResult) -> None:
    values = json.loads(json.dumps(gate_values(failing), allow_nan=False))
    assert values["verdict"] == "FAIL"
    assert values["exit_code"] == 1
    rule = next(one for one in values["outcomes"] if one["name"] == "R@5" and not one["category"] and one["change"])
    assert rule["change"]["worse"] == 10
    # The ten lost answers are of five of the ten clusters, all drops: 2 of 2^5 sign patterns are as extreme.
    assert rule["change"]["statistics"]["p_randomization"] == pytest.approx(2 / 32)
    assert values["flips"][0]["lost_at"]
    assert values["unjudged"]
    # A cell without an interval: null, not NaN.
    labelled = made_set(categories={"tiny": range(3)})
    rules = policy(margins={"R@5": 0.1}, categories={"tiny": {"margins": {"R@5": 0.1}}})
    few = gate_values(gated(labelled, system(labelled), system(labelled, {0: 0}), rules))
    tiny = next(one for one in few["outcomes"] if one["category"] == "tiny")
    assert tiny["change"]["low"] is None
    assert tiny["change"]["settle"] is None


def test_the_terminal_is_narrow_enough(failing: GateResult) -> None:
    tables = [line for line in terminal(failing).splitlines() if line.startswith("|")]
    assert max(map(width, tables)) <= 120
