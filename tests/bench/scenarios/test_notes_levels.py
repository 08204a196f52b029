"""No session receives a row above its level: any recipe that filters, its caches, its trace, what a run writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallbench.cache.candidates import CandidateCache
from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import LabelledSet, Question, Session, SetInfo
from recallbench.datasets.readers.notes import read_notes
from recallbench.datasets.registry import load
from recallbench.datasets.select import select
from recallbench.evaluation.evaluate import evaluate, run_system
from recallbench.evaluation.experiment import Experiment
from recallbench.measures import parse_measure
from recallbench.runs.store import RunFolder, manifest_of
from recallbench.scenarios.sessions import Settings as Turns
from recallbench.scenarios.sessions import replay_systems
from recallbench.sweeps.grid import Grid
from recallbench.systems.base import SystemRun
from recallbench.systems.recipe import RecipeSystem
from recallstack.errors import InputError
from recallstack.ranking.channels import retrieve
from recallstack.ranking.presets import preset, presets
from recallstack.ranking.recipes import InjectRecipe, Recipe, SearchRecipe
from recallstack.ranking.rows import Corpus

NAMES = ("public.md", "personal.md", "secret.md", "diary.md", "Public.md")
FOLDERS = ("", "work/", "carryover/", "public/")
CHANNELS = ("owner", "group:1", "grp:2", "Group:3", "guest-a", None)
WORDS = ("lantern", "window", "发布", "blue-lantern", "C++")
Tree = Mapping[tuple[str, str], Sequence[str]]
Asked = tuple[str, str | None]
ALL_LEVELS = {"public", "personal", "secret"}

trees = st.dictionaries(
    st.tuples(st.sampled_from(FOLDERS), st.sampled_from(NAMES)),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
    min_size=1,
    max_size=8,
)
asked = st.lists(
    st.tuples(st.lists(st.sampled_from((*WORDS, '"', "%")), max_size=2).map(" ".join), st.sampled_from(CHANNELS)),
    min_size=1,
    max_size=6,
)


def filtering() -> list[Recipe]:
    """Every preset, made to filter by channel; those that do so by themselves are among them."""
    return [dataclasses.replace(one, sensitivity="channel") for one in presets().values()]


def level(memory: str) -> str:
    """The level of a memory by its id, `path#line`, written a second time."""
    name = memory.rpartition("#")[0].rpartition("/")[2]
    return {"public.md": "public", "secret.md": "secret"}.get(name, "personal")


def may_see(question: Question, mapped: bool) -> set[str]:
    """The documented table, written a second time; `mapped`: some session of the set has a channel."""
    channel = question.session.channel
    if not mapped or channel == "owner":
        return ALL_LEVELS
    return set() if channel is None else {"public"}


def made(
    folder: Path, tree: Mapping[tuple[str, str], Sequence[str]], ask: Sequence[tuple[str, str | None]]
) -> LabelledSet:
    """Notes with a marker in each file; a question's label is the first note that its session may see."""
    for number, ((where, name), words) in enumerate(tree.items()):
        path = folder / where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{' '.join(words)} mark{number:03}", encoding="utf-8")
    corpus = Corpus.of("main", read_notes(folder))
    mapped = any(channel is not None for _, channel in ask)
    questions = []
    for number, (text, channel) in enumerate(ask):
        one = Question(id=f"q{number}", text=text, session=Session(channel=channel))
        seen = [name for name in map(str, corpus.ids) if level(name) in may_see(one, mapped)]
        hidden = [name for name in map(str, corpus.ids) if name not in seen]
        questions.append(
            Question(
                id=one.id, text=text, session=one.session, relevant=dict.fromkeys(seen[:1], 2), forbidden=tuple(hidden)
            )
        )
    return hashed(SetInfo("levels", primary_measure="nDCG@5"), {"main": corpus}, questions)


def check(labelled: LabelledSet, run: SystemRun) -> None:
    """What came back, what a stage is said to have lost, and what the trace names: nothing above the level."""
    for place, question in enumerate(labelled.questions):
        allowed = may_see(question, labelled.has_channels)
        assert {level(name) for name in run.ids[place]} <= allowed, (run.system, question)
        assert {level(name) for name in run.losses[place]} <= allowed
    for row in run.trace:
        assert level(row.memory) in may_see(labelled.questions[row.question], labelled.has_channels)


@settings(max_examples=15, deadline=None)
@given(tree=trees, ask=asked, depth=st.integers(1, 6))
def test_no_session_receives_a_row_above_its_level(
    tmp_path_factory: pytest.TempPathFactory,
    tree: Tree,
    ask: list[Asked],
    depth: int,
) -> None:
    """Through every recipe, from the channels, from the cache of a process, and from the files of another one."""
    folder = tmp_path_factory.mktemp("levels")
    labelled = made(folder / "notes", tree, ask)
    caches = [retrieve, CandidateCache(folder / "cache"), CandidateCache(folder / "cache")]
    runs = []
    for recipe in filtering():
        got = [run_system(RecipeSystem(recipe, one), labelled, depth) for one in caches]
        for run in got:
            check(labelled, run)
            assert run.ids == got[0].ids
        runs.append(got[0])
    assert isinstance(caches[2], CandidateCache)
    assert caches[2].loaded > 0
    check_report(folder, labelled, runs, depth)


def check_report(folder: Path, labelled: LabelledSet, runs: Sequence[SystemRun], depth: int) -> None:
    """A run on disk: rows a question may see, and the text of no note, in the cache neither."""
    evaluation = evaluate(labelled, runs, [parse_measure("nDCG@5"), parse_measure("R@5")], depth)
    out = RunFolder(folder / "out", "run")
    path = out.finish(evaluation, manifest_of(evaluation, {}, seed=None))
    allowed = {one.id: may_see(one, labelled.has_channels) for one in labelled.questions}
    for name in ("hits.parquet", "trace.parquet"):
        rows = pd.read_parquet(path / name)
        assert all(level(memory) in allowed[q] for q, memory in zip(rows["question"], rows["memory"], strict=True))
        assert "mark0" not in rows.to_csv()
    for file in [*path.rglob("*"), *(folder / "cache").rglob("*")]:
        assert not file.is_file() or b"mark0" not in file.read_bytes()


@settings(max_examples=4, deadline=None)
@given(tree=trees, ask=asked)
def test_no_turn_of_a_session_does_either(
    tmp_path_factory: pytest.TempPathFactory, tree: Tree, ask: list[Asked]
) -> None:
    """Sessions with each documented bug put back, the late query and the cached vector among them."""
    labelled = made(tmp_path_factory.mktemp("turns"), tree, ask)
    recipe = preset("inject-strict")
    assert isinstance(recipe, InjectRecipe)
    for system in replay_systems(recipe, Turns(), CandidateCache()):
        run = run_system(system, labelled, 5)
        for question, ids in zip(labelled.questions, run.ids, strict=True):
            assert {level(name) for name in ids} <= may_see(question, labelled.has_channels), system.name


@pytest.mark.parametrize("name", [name for name, one in presets().items() if one.sensitivity == "off"])
def test_the_property_can_fail(name: str, tmp_path: Path) -> None:
    """Each preset that does not filter gives a group the owner's secret, and a stranger too."""
    tree: Tree = {("", "secret.md"): ["lantern"], ("", "public.md"): ["window"]}
    labelled = made(tmp_path, tree, [("lantern", "owner"), ("lantern", "group:1"), ("lantern", None)])
    run = run_system(RecipeSystem(preset(name), retrieve), labelled, 5)
    assert all("secret.md#1" in ids for ids in run.ids)
    with pytest.raises(AssertionError):
        check(labelled, run)


def test_a_part_of_a_set_keeps_its_map(tmp_path: Path) -> None:
    """Only the stranger's question is left, and it still sees nothing: a set with channels has a session map."""
    labelled = made(tmp_path, {("", "secret.md"): ["lantern"]}, [("lantern", "owner"), ("lantern", None)])
    owner, stranger = labelled.questions
    whole = hashed(
        labelled.info,
        labelled.corpora,
        [owner, Question(id="q1", text="lantern", categories=("unknown",), session=stranger.session)],
    )
    part = select(select(whole, categories=["unknown"]), limit=1)
    assert part.has_channels
    for recipe in filtering():
        assert run_system(RecipeSystem(recipe, retrieve), part, 5).ids == ((),)
    strict = preset("inject-strict")
    assert isinstance(strict, InjectRecipe)
    for system in replay_systems(strict, Turns(), retrieve):
        assert run_system(system, part, 5).ids == ((),)
    alone = hashed(labelled.info, labelled.corpora, [stranger])  # no session has a channel: everyone is the owner
    assert run_system(RecipeSystem(preset("notes-k10"), retrieve), alone, 5).ids == (("secret.md#1",),)


def test_notes_search_stands_in_the_tables_of_notes_vault() -> None:
    """Among the presets, with channels that it heeds: Leak is 0 where it is above 0 without the filter."""
    found = Experiment("notes-vault", ["rrf-k10", "notes-k10"], ["nDCG@5", "Leak"]).wide().set_index("system")
    assert found.loc["rrf-k10", "Leak"] > 0
    assert found.loc["notes-k10", "Leak"] == 0
    assert "notes-k10" in [one.name for one in presets().values() if one.kind == "search"]
    assert {one.session.channel is None for one in load("notes-vault").questions} == {True, False}


@pytest.mark.parametrize("field", ["source_weights", "sensitivity"])
def test_a_sweep_refuses_steps_that_it_does_not_count(field: str) -> None:
    base: Any = dataclasses.replace(preset("notes-k10"), source_weights="off", sensitivity="off")
    assert isinstance(base, SearchRecipe)
    assert Grid(base=base).recipes()
    broken = dataclasses.replace(base, **{field: getattr(preset("notes-k10"), field)})
    with pytest.raises(InputError, match=f"base 'notes-k10' has {field} after its fusion"):
        Grid(base=broken).recipes()
