"""Session replay: what each timing and wiring bug costs, on what was injected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recallbench.cache.candidates import CandidateCache
from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import LabelledSet, Question, Session, SetInfo
from recallbench.datasets.registry import load
from recallbench.evaluation.evaluate import evaluate, run_system
from recallbench.measures import parse_measure
from recallbench.scenarios.sessions import (
    ALL,
    NONE,
    Replay,
    Settings,
    cost_table,
    replay_systems,
    sessions,
    system_name,
    variants,
)
from recallbench.systems.recipe import RecipeSystem
from recallstack.errors import InputError
from recallstack.ranking.presets import preset
from recallstack.ranking.recipes import InjectRecipe
from recallstack.ranking.rows import Corpus, Memory

WORDS = ["anchor", "badge", "canal", "dune", "engine", "ferry", "garden", "harbour"]


def injected(name: str) -> InjectRecipe:
    recipe = preset(name)
    assert isinstance(recipe, InjectRecipe)
    return recipe


def words_set() -> LabelledSet:
    """Question i holds one word that memory i alone holds: BM25 finds it, and any other question's memory is wrong."""
    memories = [Memory(id=f"m{i}", content=f"{word} is written here") for i, word in enumerate(WORDS)]
    questions = [
        Question(id=f"q{i}", text=f"where did I put {word}", relevant={f"m{i}": 2}) for i, word in enumerate(WORDS)
    ]
    return hashed(SetInfo(name="words"), {"main": Corpus.of("main", memories)}, questions)


def ranks(bug: str, settings: Settings, step: int) -> list[int]:
    """For each question of the words set, 1 if its own memory came first, else 0."""
    found = next(one for one in variants() if one.name == bug)
    labelled = words_set()
    system = Replay(injected("inject-fixed"), found, settings, CandidateCache()).systems()[step - 1]
    return [int(ids[:1] == (f"m{i}",)) for i, ids in enumerate(run_system(system, labelled, 5).ids)]


def test_without_a_bug_every_step_has_its_answer() -> None:
    assert ranks(NONE, Settings(), 1) == [1] * 8
    assert ranks(NONE, Settings(), 2) == [1] * 8


def test_the_stale_query_answers_the_turn_before() -> None:
    """One session of eight turns, nothing rewound: step 1 asks with the turn before, so that no turn is right at
    step 1, and every turn is at step 2, when the message is in the log."""
    settings = Settings(rewinds=0, cancels=0)
    assert ranks("stale-query", settings, 1) == [0] * 8
    assert ranks("stale-query", settings, 2) == [1] * 8
    found = next(one for one in variants() if one.name == "stale-query")
    played = Replay(injected("inject-fixed"), found, settings, CandidateCache()).played(words_set())
    queries = sorted(one[0].query for one in played)
    texts = sorted(question.text for question in words_set().questions)
    assert queries[0] == ""  # the first turn has no turn before it
    assert set(queries[1:]) < set(texts)
    assert len(set(queries)) == 8  # and each other text is asked once, a turn late


def test_the_vector_is_missing_on_step_1_alone() -> None:
    found = next(one for one in variants() if one.name == "missing-vector")
    played = Replay(injected("inject-fixed"), found, Settings(), CandidateCache()).played(words_set())
    assert [[step.vector for step in one] for one in played] == [[False, True]] * 8


@pytest.mark.parametrize(("latency", "there"), [(1_999, True), (2_001, False)])
def test_a_vector_that_takes_longer_than_the_wait_is_missing(latency: float, there: bool) -> None:
    none = variants()[0]
    settings = Settings(latency_ms=latency, timeout_ms=2_000, rewinds=0, cancels=0)
    played = Replay(injected("inject-fixed"), none, settings, CandidateCache()).played(words_set())
    assert [one[0].vector for one in played] == [there] * 8


def test_without_a_bug_the_replay_is_the_recipe() -> None:
    """On the built-in set what is injected is what the recipe injects for the question alone, rewinds and all."""
    labelled = load("mneme-memories")
    recipe = injected("inject-fixed")
    cache = CandidateCache()
    alone = run_system(RecipeSystem(recipe, cache), labelled, 5)
    settings = Settings(rewinds=0.3, cancels=0.3)
    for step in Replay(recipe, variants()[0], settings, cache).systems():
        assert run_system(step, labelled, 5).ids == alone.ids


def test_each_variant_differs_from_the_fixed_stack_where_its_bug_is() -> None:
    """The ranking bugs are the recipe's switches: with one in, the replay injects what that recipe injects."""
    labelled, cache = load("mneme-memories"), CandidateCache()
    for bug, name in (("truncate-before-filter", "inject-dual+capacity+rerank"), (ALL, "inject-legacy")):
        found = next(one for one in variants() if one.name == bug)
        step_2 = Replay(injected("inject-fixed"), found, Settings(), cache).systems()[1]
        if bug != ALL:
            assert run_system(step_2, labelled, 5).ids == run_system(RecipeSystem(preset(name), cache), labelled, 5).ids
        assert step_2.spec["replay"]["bug"] == bug


def test_sessions_keep_scopes_apart_and_ask_each_question_once() -> None:
    import random

    scopes = [Session(agent_scope=name) for name in ("coder", "writer")]
    questions = [Question(id=f"q{i}", text="x", session=scopes[i % 2]) for i in range(11)]
    got = list(sessions(questions, range(11), 3, random.Random(1), mapped=False))
    assert sorted(place for one in got for place in one) == list(range(11))
    assert all(len({place % 2 for place in one}) == 1 for one in got)
    assert max(map(len, got)) == 3


def test_the_cost_table_pairs_each_step_with_its_own_baseline() -> None:
    """Eight questions, all right without a bug; the stale query is wrong on all at step 1, right on all at step 2."""
    labelled = words_set()
    settings = Settings(rewinds=0, cancels=0)
    systems = replay_systems(injected("inject-fixed"), settings, CandidateCache())
    runs = [run_system(one, labelled, 5) for one in systems]
    text = cost_table(evaluate(labelled, runs, [parse_measure("RR@1")], 5))
    [row] = [line for line in text.splitlines() if line.startswith("| stale-query")]
    cells = [cell.strip() for cell in row.split("|")[3:7]]
    assert cells == ["0.000", "-1.000 [-1.000, -1.000]", "1.000", "+0.000 [+0.000, +0.000]"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"turns": 0}, "turns is 0"),
        ({"steps": 0}, "steps is 0"),
        ({"latency_ms": -1}, "latency_ms is -1"),
        ({"timeout_ms": float("nan")}, "timeout_ms is nan"),
        ({"rewinds": 1.5}, "rewinds is 1.5"),
        ({"cancels": -0.1}, "cancels is -0.1"),
    ],
)
def test_settings_out_of_range(values: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Settings(**values)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "recallbench", "run", *arguments], capture_output=True, text=True, timeout=240
    )


def test_the_command_gives_the_same_table_for_the_same_seed(tmp_path: Path) -> None:
    common = ("--dataset", "mneme-memories", "--split", "dev", "--category", "exact", "--replay", "sessions")
    first = run(*common, "--system", "inject-fixed", "--out", str(tmp_path / "a"))
    again = run(*common, "--system", "inject-fixed", "--out", str(tmp_path / "b"))
    assert first.returncode == 0, first.stderr
    assert first.stdout.replace(str(tmp_path / "a"), "") == again.stdout.replace(str(tmp_path / "b"), "")
    assert first.stdout.startswith("## What each bug costs")
    [folder] = (tmp_path / "a").iterdir()
    assert (folder / "summary.md").read_text(encoding="utf-8").startswith("## What each bug costs")
    assert (folder / "runs" / f"{system_name('stale-query', 1)}.trec").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--system", "rrf-k60"), "takes one injection recipe"),
        (("--system", "inject-fixed", "--system", "inject-legacy"), "takes one injection recipe"),
        (("--system", "inject-fixed", "--rewinds", "2"), "rewinds is 2.0"),
        (("--system", "inject-fixed", "--corpus", "nowhere"), "of corpus 'nowhere'"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = run("--dataset", "mneme-memories", "--replay", "sessions", "--out", str(tmp_path), *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
