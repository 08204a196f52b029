"""What a session may not see never comes back with the strict preset, and does with the legacy one."""

from __future__ import annotations

import pytest

from recallbench.datasets.hashing import hashed
from recallbench.datasets.model import Question, Session, SetInfo
from recallbench.evaluation.evaluate import run_system
from recallbench.evaluation.experiment import Experiment
from recallbench.systems.recipe import RecipeSystem
from recallstack.ranking.channels import retrieve
from recallstack.ranking.presets import preset
from recallstack.ranking.rows import Corpus, Memory


@pytest.mark.parametrize("name", ["mneme-memories", "kb-preretrieval", "notes-vault"])
def test_leak_on_the_built_in_sets(name: str) -> None:
    """Over everything returned: above 0 for the legacy behaviour, exactly 0 for the strict one."""
    found = Experiment(name, ["inject-legacy", "inject-strict"], ["nDCG@5", "Leak"]).wide().set_index("system")
    assert found.loc["inject-legacy", "Leak"] > 0
    assert found.loc["inject-strict", "Leak"] == 0


def returned(*sessions: Session) -> list[tuple[str, ...]]:
    memories = [
        Memory(id=level, content=f"badge {level}", sensitivity=level)  # type: ignore[arg-type]
        for level in ("public", "personal", "secret")
    ]
    questions = [Question(id=f"q{i}", text="badge", session=one) for i, one in enumerate(sessions)]
    labelled = hashed(SetInfo(name="levels"), {"main": Corpus.of("main", memories)}, questions)
    return list(run_system(RecipeSystem(preset("inject-strict"), retrieve), labelled, 5).ids)


def test_levels_follow_the_channel_and_fail_closed() -> None:
    """Owner all, group and guest public alone, no channel among channels nothing (recall semantics, section 6)."""
    owner, group, guest, unknown = returned(
        Session(channel="owner"), Session(channel="group:42"), Session(channel="guest-1"), Session()
    )
    assert sorted(owner) == ["personal", "public", "secret"]
    assert (group, guest, unknown) == (("public",), ("public",), ())


def test_without_any_channel_everyone_is_the_owner() -> None:
    assert sorted(returned(Session(), Session())[0]) == ["personal", "public", "secret"]
