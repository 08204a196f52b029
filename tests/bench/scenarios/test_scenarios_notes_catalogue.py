"""The catalogue of notes: every documented scenario, every switch caught by an invariant, nothing left of a run."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import psutil
import pytest

from recallbench.scenarios import engine, mutation
from recallbench.scenarios.catalogue import catalogue_folder
from recallbench.scenarios.load import load
from recallbench.scenarios.reference import Reference
from recallbench.scenarios.systems import notes
from recallstack.systems.notes import Switches

CATALOGUE = load([catalogue_folder() / "notes"], Reference())


def test_catalogue_leaves_no_folder_and_no_open_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    process = psutil.Process()
    before = process.num_fds()
    results = engine.run(CATALOGUE, Reference())
    assert {one.outcome for one in results} == {"passed"}
    assert len(results) == 2 * len(CATALOGUE)
    assert process.num_fds() == before
    assert list(tmp_path.iterdir()) == []


def test_each_switch_is_the_mutant_of_a_scenario_that_sees_it_by_an_invariant() -> None:
    """A foreign implementation is judged by `expect` alone: what only `exact` sees would slip through there."""
    assert {name for one in CATALOGUE for name in one.switches} == {one.name for one in dataclasses.fields(Switches)}
    assert {one.name for one in dataclasses.fields(Switches)} == notes.SWITCHES
    for one in CATALOGUE:
        invariants = {each.where for each in one.expect}
        assert invariants & {failed.where for failed in engine.unmet(one, Reference(), one.switches)}, one.id


def test_every_mutant_of_notes_is_caught() -> None:
    mutants = mutation.check(CATALOGUE, Reference())
    assert len(mutants) == len(dataclasses.fields(Switches)) >= 25
    assert mutation.survivors(mutants) == []


def test_documented_ids_are_in_the_catalogue() -> None:
    """The list of the design for notes."""
    documented = {
        "notes-spec-guard",
        "notes-incremental",
        "notes-deleted-file",
        "notes-rebuild-from-files",
        "notes-same-mtime-other-size",
        "notes-renamed-file",
        "notes-group-sees-public-only",
        "notes-unknown-channel-recalls-nothing",
        "notes-no-map-no-filter",
        "notes-other-file-is-personal",
        "notes-dimension-mismatch-drops-semantic",
        "notes-query-instruction-pollutes",
        "notes-diary-crowds-out-fact",
        "notes-recall-not-in-transcript",
        "notes-budget",
        "notes-fts-special-characters",
    }
    assert documented <= {one.id for one in CATALOGUE}
