"""Write, compact, candidates and promotion: saved whole, recallable before they return, debts paid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from memory_support import ALL_MODES, BOTH, Clock, Letters, Stores, check_invariants, notes, stores_of, table

from recallstack.errors import InputError
from recallstack.systems.memory.model import NewMemory
from recallstack.systems.memory.modes import Modes
from recallstack.systems.memory.schema import CANDIDATES, MEMORIES
from recallstack.systems.memory.services import Settings
from recallstack.systems.memory.switches import Switches
from recallstack.systems.memory.sync import BATCH


@pytest.fixture(params=BOTH)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with stores_of(request.param, tmp_path, request) as one:
        yield one


def rows(stores: Stores, active: bool = True) -> dict[str, str]:
    """id -> content of the rows of all users."""
    database, _ = stores.open()
    found = table(database, MEMORIES)
    return {row.id: row.content for row in found if (not row.archived and not row.forgotten) == active}


def owners(stores: Stores) -> list[tuple[str, str]]:
    return list(stores.open()[1].owners())


# Write.


def test_what_is_written_is_recalled_at_once_by_its_vector(stores: Stores) -> None:
    """No word in common: only the vector can bring it first. The last one saved is the nearest."""
    portal = stores.portal(Letters())
    portal.write("ann", "s", notes("bbb", "ccc", "aac"))
    receipt = portal.write("ann", "s", notes("aaa"))
    assert (receipt.ids, receipt.durable, receipt.debt, receipt.remarks) == (("aaa",), True, 0, ())
    assert portal.recall("ann", "a", 2).ids == ("aaa", "aac")
    assert portal.recall("bob", "a", 2).ids == ()


def test_the_same_text_twice_is_one_memory(stores: Stores) -> None:
    portal = stores.portal(Letters())
    first = portal.write("ann", "s1", [NewMemory(content="tea"), NewMemory(content="tea")])
    again = portal.write("ann", "s2", [NewMemory(content="tea")])
    assert first.ids == again.ids
    assert list(rows(stores)) == list(first.ids)
    assert owners(stores) == [("ann", first.ids[0])]


def test_a_changed_memory_gets_a_new_vector(stores: Stores) -> None:
    portal = stores.portal(Letters())
    portal.write("ann", "s", [NewMemory(content="aaa", id="x"), NewMemory(content="bba", id="y")])
    portal.write("ann", "s", [NewMemory(content="ccc", id="x")])
    assert portal.recall("ann", "a", 1).ids == ("y",)
    assert portal.recall("ann", "c", 1).ids == ("x",)


def test_nothing_is_embedded_twice(stores: Stores) -> None:
    """The title goes with the content, as everywhere (section 1)."""
    letters = Letters()
    portal = stores.portal(letters)
    portal.write("ann", "s", notes("a"))
    portal.write("ann", "s", [NewMemory(content="b", title="t", id="b")])
    assert letters.documents == [" a", "t b"]


def test_more_than_a_batch(stores: Stores) -> None:
    portal = stores.portal(Letters())
    names = [f"a{number}" for number in range(2 * BATCH + 3)]
    assert portal.write("ann", "s", notes(*names)).debt == 0
    assert len(owners(stores)) == len(names)


def test_nothing_to_write_is_no_row(stores: Stores) -> None:
    assert stores.portal().write("ann", "s", []).ids == ()
    assert rows(stores) == {}


@pytest.mark.parametrize(("user", "session"), [("", "s"), ("ann", ""), ("a\x00", "s"), ("\ud800", "s")])
def test_a_write_needs_a_user_and_a_session(stores: Stores, user: str, session: str) -> None:
    portal = stores.portal()
    for call in (
        lambda: portal.write(user, session, notes("tea")),
        lambda: portal.compact(user, session),
        lambda: portal.save_candidates(user, session, notes("tea")),
        lambda: portal.remember_recent(user, session),
        lambda: portal.prepare(user, session, "hello"),
    ):
        with pytest.raises(InputError, match="is empty or holds what cannot be stored"):
            call()
    assert rows(stores) == {}


def test_an_embedder_that_is_fitted_is_refused(stores: Stores) -> None:
    with pytest.raises(InputError, match="embedder 'lsa' is fitted on a fixed corpus"):
        stores.portal("lsa")


# Compact.


def test_a_compacted_session_is_one_summary(stores: Stores) -> None:
    portal = stores.portal(Letters())
    portal.write("ann", "s", notes("aaa", "bbb"))
    portal.write("ann", "other", notes("ccc"))
    receipt = portal.compact("ann", "s")
    [summary] = receipt.ids
    assert rows(stores) == {"ccc": "ccc", summary: "aaa\nbbb"}
    assert rows(stores, active=False) == {"aaa": "aaa", "bbb": "bbb"}
    assert receipt.debt == 0
    assert sorted(owners(stores)) == sorted([("ann", "ccc"), ("ann", summary)])
    assert portal.recall("ann", "a", 1).ids == (summary,)
    assert table(stores.open()[0], MEMORIES)[-1].type == "summary"


def test_a_second_compaction_takes_the_summary_in(stores: Stores) -> None:
    portal = stores.portal(Letters())
    portal.write("ann", "s", notes("a", "b"))
    [first] = portal.compact("ann", "s").ids
    assert portal.compact("ann", "s").ids == ()  # nothing new
    portal.write("ann", "s", notes("c"))
    [second] = portal.compact("ann", "s").ids
    assert first == second
    assert rows(stores) == {first: "a\nb\nc"}


def test_what_is_written_while_the_summary_is_made_stays(stores: Stores) -> None:
    asked: list[Sequence[str]] = []

    def summarise(texts: Sequence[str]) -> str:
        asked.append(texts)
        if len(asked) == 1:
            other.write("ann", "s", [NewMemory(content="new"), NewMemory(content="A", id="a")])
        return " ".join(texts)

    other = stores.portal(Letters())
    portal = stores.portal(Letters(), summarise=summarise)
    portal.write("ann", "s", notes("a", "b"))
    [summary] = portal.compact("ann", "s").ids
    # `a` changed under the first try, so there is a second
    assert asked == [["a", "b"], ["A", "b", "new"]]
    assert rows(stores) == {summary: "A b new"}


def test_a_memory_that_ends_is_not_kept_alive_by_a_summary(stores: Stores) -> None:
    modes = Modes(expire=True, lifecycle="canary", lifecycle_users=frozenset({"ann"}))
    clock = Clock()
    portal = stores.portal(Letters(), modes, now=clock)
    portal.write("ann", "s", [*notes("aa", "bb"), NewMemory(content="cc", id="cc", expires_at=clock.now + 1000)])
    [summary] = portal.compact("ann", "s").ids
    assert rows(stores) == {summary: "aa\nbb", "cc": "cc"}
    clock.now += 2000
    assert portal.lifecycle.expire("ann").changed == (("ann", "cc"),)
    assert rows(stores) == {summary: "aa\nbb"}


def test_two_compactions_at_once_lose_nothing(stores: Stores) -> None:
    """The other one finishes while the first makes its summary: what the other archived is in neither's loss."""
    tries: list[Sequence[str]] = []

    def summarise(texts: Sequence[str]) -> str:
        tries.append(texts)
        if len(tries) == 1:
            other.write("ann", "s", notes("c"))
            other.compact("ann", "s")
        return "+".join(texts)

    other = stores.portal(Letters(), summarise="|".join)
    portal = stores.portal(Letters(), summarise=summarise)
    portal.write("ann", "s", notes("a", "b"))
    portal.compact("ann", "s")
    assert list(rows(stores).values()) == ["a|b|c"]


def test_an_empty_summary_is_refused_and_archives_nothing(stores: Stores) -> None:
    portal = stores.portal(Letters(), summarise=lambda texts: " ")
    portal.write("ann", "s", notes("a", "b"))
    with pytest.raises(InputError, match="session 's': the summary is empty; nothing was compacted"):
        portal.compact("ann", "s")
    assert list(rows(stores)) == ["a", "b"]


# Candidates and promotion.


def test_a_candidate_is_no_memory_until_it_is_promoted(stores: Stores) -> None:
    portal = stores.portal(Letters())
    saved = portal.save_candidates("ann", "s", [NewMemory(content="aaa", title="t", type="preference", importance=5)])
    assert saved.durable
    [candidate] = portal.candidates("ann")
    assert (candidate.id, candidate.user, candidate.status, candidate.durable) == (
        saved.ids[0],
        "ann",
        "pending",
        True,
    )
    assert portal.recall("ann", "aaa", 5).ids == ()
    receipt = portal.promote(candidate.id, "admin")
    assert receipt.debt == 0
    assert portal.candidates("ann") == ()
    [promoted] = portal.candidates("ann", None)
    assert (promoted.status, promoted.memory_id) == ("promoted", receipt.ids[0])
    [hit] = portal.recall("ann", "zzz a", 5).hits
    assert (hit.content, hit.title, hit.type, hit.importance, hit.session) == ("aaa", "t", "preference", 5, "s")


def test_the_promoted_users_rows_are_synced_not_the_callers(stores: Stores) -> None:
    """Bob promotes Ann's candidate: hers is recalled by vector at once, and a debt of Bob's stays as it is."""
    letters = Letters()
    portal = stores.portal(letters)
    letters.fails = True
    assert portal.write("bob", "s", notes("aaa")).debt == 1
    letters.fails = False
    [candidate] = portal.save_candidates("ann", "s", [NewMemory(content="aab")]).ids
    receipt = portal.promote(candidate, "bob")
    assert owners(stores) == [("ann", receipt.ids[0])]
    status = portal.status()
    assert status.debt == 1


def test_a_candidate_keeps_its_end(stores: Stores) -> None:
    """Asked to be kept until 5,000 ms: so is the memory, and expire archives it then and not before."""
    modes = Modes(candidates=True, expire=True, lifecycle="canary", lifecycle_users=frozenset({"ann"}))
    clock = Clock()
    portal = stores.portal(Letters(), modes, now=clock)
    end = clock.now + 5000
    [candidate] = portal.save_candidates("ann", "s", [NewMemory(content="a", expires_at=end)]).ids
    [memory] = portal.promote(candidate, "admin").ids
    assert [row.expires_at for row in table(stores.open()[0], MEMORIES)] == [end]
    clock.now = end - 2  # each look counts up by one
    assert portal.lifecycle.expire("ann").changed == ()
    clock.now = end - 1
    assert portal.lifecycle.expire("ann").changed == (("ann", memory),)


def test_a_promotion_upserts_the_whole_session(stores: Stores) -> None:
    """By user and session: a vector of the session that got lost without a debt is back; another session's is not."""
    portal = stores.portal(Letters())
    portal.write("ann", "s", notes("aaa"))
    portal.write("ann", "other", notes("aab"))
    vectors = stores.open()[1]
    vectors.remove("ann", ["aaa", "aab"])
    [candidate] = portal.save_candidates("ann", "s", [NewMemory(content="abb")]).ids
    [memory] = portal.promote(candidate, "admin").ids
    assert sorted(vectors.owners()) == sorted([("ann", "aaa"), ("ann", memory)])


def test_a_second_promotion_is_acknowledged_and_changes_nothing(stores: Stores) -> None:
    portal = stores.portal(Letters())
    [candidate] = portal.save_candidates("ann", "s", notes("a")).ids
    first = portal.promote(candidate, "admin")
    before = table(stores.open()[0], MEMORIES)
    assert stores.admin(Letters()).promote(candidate, "admin").ids == first.ids
    assert table(stores.open()[0], MEMORIES) == before


def test_a_rejected_candidate_stays_rejected(stores: Stores) -> None:
    portal = stores.portal(Letters())
    [candidate] = portal.save_candidates("ann", "s", notes("a")).ids
    portal.reject(candidate)
    assert portal.save_candidates("ann", "s", notes("a")).ids == (candidate,)
    assert portal.candidates("ann") == ()
    with pytest.raises(InputError, match="was rejected; save it again as a memory"):
        portal.promote(candidate, "admin")
    with pytest.raises(InputError, match="is not pending"):
        portal.reject(candidate)
    assert rows(stores) == {}


def test_what_was_forgotten_can_be_a_candidate_again(stores: Stores) -> None:
    modes = Modes(candidates=True, forget=True, lifecycle="canary", lifecycle_users=frozenset({"ann"}))
    portal = stores.portal(Letters(), modes)
    [candidate] = portal.save_candidates("ann", "s", [NewMemory(content="a")]).ids
    [memory] = portal.promote(candidate, "admin").ids
    assert portal.save_candidates("ann", "s", [NewMemory(content="a")]).ids == (candidate,)
    assert portal.candidates("ann") == ()  # it is a memory already
    portal.lifecycle.forget("ann", [memory])
    portal.save_candidates("ann", "s", [NewMemory(content="a")])
    assert [(one.id, one.memory_id) for one in portal.candidates("ann")] == [(candidate, None)]
    assert portal.promote(candidate, "admin").ids == (memory,)
    assert portal.recall("ann", "a", 5).ids == (memory,)


def test_what_was_compacted_is_no_candidate_again(stores: Stores) -> None:
    """The same message is read a second time: the summary says already what was promoted from it."""
    modes = Modes(candidates=True, forget=True, lifecycle="canary", lifecycle_users=frozenset({"ann"}))
    portal = stores.portal(Letters(), modes)
    both = [NewMemory(content="a"), NewMemory(content="b")]
    for one in portal.save_candidates("ann", "s", both).ids:
        portal.promote(one, "admin")
    [summary] = portal.compact("ann", "s").ids
    portal.save_candidates("ann", "s", both)
    assert portal.candidates("ann") == ()
    portal.lifecycle.forget("ann", [summary])
    portal.save_candidates("ann", "s", both)
    assert [one.content for one in portal.candidates("ann")] == ["a", "b"]  # nothing says them any longer


def test_what_has_expired_can_be_a_candidate_again(stores: Stores) -> None:
    modes = Modes(candidates=True, expire=True, lifecycle="canary", lifecycle_users=frozenset({"ann"}))
    clock = Clock()
    portal = stores.portal(Letters(), modes, now=clock)
    short = [NewMemory(content="a", expires_at=clock.now + 100)]
    [candidate] = portal.save_candidates("ann", "s", short).ids
    portal.promote(candidate, "admin")
    clock.now += 1000
    assert portal.lifecycle.expire("ann").changed
    portal.save_candidates("ann", "s", short)
    assert [one.id for one in portal.candidates("ann")] == [candidate]


def test_candidates_of_all_users_oldest_first(stores: Stores) -> None:
    portal = stores.portal(Letters())
    portal.save_candidates("bob", "s", notes("z", "a"))
    portal.save_candidates("ann", "s", notes("m"))
    assert [(one.user, one.content) for one in portal.candidates()] == [("bob", "z"), ("bob", "a"), ("ann", "m")]
    assert [one.content for one in portal.candidates("bob")] == ["z", "a"]


def test_an_unknown_candidate_is_named(stores: Stores) -> None:
    with pytest.raises(InputError, match="candidate 'c-1' is not known"):
        stores.portal().promote("c-1", "admin")


def test_candidates_without_persistence_stay_in_the_process(stores: Stores) -> None:
    portal = stores.portal(Letters(), Modes(), bound=2)
    receipt = portal.save_candidates("ann", "s", notes("a", "b", "c"))
    assert not receipt.durable
    assert receipt.remarks == ("kept in this process only, until it ends",)
    portal.save_candidates("bob", "s", notes("d"))
    assert [one.content for one in portal.candidates()] == ["b", "c", "d"]  # the oldest of Ann's went
    assert len(receipt.ids) == 2
    memory = portal.promote(receipt.ids[0], "admin").ids[0]
    assert rows(stores) == {memory: "b"}
    assert [one.status for one in portal.candidates("ann", None)] == ["promoted", "pending"]
    assert stores.portal(Letters(), Modes()).candidates() == ()


def test_a_caller_cannot_promote_twice_at_once(stores: Stores) -> None:
    """Two admins: both are acknowledged with the same memory, and one of them saves it."""
    portal, admin = stores.portal(Letters()), stores.admin(Letters())
    [candidate] = portal.save_candidates("ann", "s", notes("a")).ids
    assert portal.promote(candidate, "x").ids == admin.promote(candidate, "y").ids
    [row] = table(stores.open()[0], MEMORIES)
    assert row.revision == 1


# Debts.


def test_a_failing_embedder_leaves_a_debt_that_the_next_sync_pays(stores: Stores) -> None:
    letters = Letters()
    portal = stores.portal(letters)
    letters.fails = True
    receipt = portal.write("ann", "s", notes("aaa", "bbb"))
    assert receipt.ids == ("aaa", "bbb")
    assert receipt.debt == 2
    assert receipt.remarks == ("embedder 'letters' failed with ConnectionError",)  # and no text
    found = portal.recall("ann", "bbb", 5)
    assert found.ids == ("bbb", "aaa")  # of the newest rows, by the word
    assert found.remarks == ("embedder 'letters' failed with ConnectionError; recalled without vectors",)
    letters.fails = False
    assert portal.write("ann", "another session", notes("ccc")).debt == 0
    assert [one for _, one in owners(stores)] == ["aaa", "bbb", "ccc"]


def test_repay_pays_for_all_users(stores: Stores) -> None:
    letters = Letters()
    portal = stores.portal(letters)
    letters.fails = True
    portal.write("ann", "s", notes("a"))
    portal.write("bob", "s", notes("b"))
    assert portal.repay().debt == 2
    letters.fails = False
    assert portal.repay().debt == 0
    assert owners(stores) == [("ann", "a"), ("bob", "b")]


@pytest.mark.parametrize("bad", [[[1.0]], [1.0, 2.0], [[], []], [[1.0], [float("nan")]]])
def test_what_is_no_vector_is_a_debt(stores: Stores, bad: Any) -> None:
    class Odd(Letters):
        def encode_documents(self, texts: Sequence[str]) -> Any:
            return bad

    receipt = stores.portal(Odd()).write("ann", "s", notes("a", "b"))
    assert receipt.debt == 2
    assert "embedder 'letters' returned" in receipt.remarks[0]


def test_another_embedder_reconciles(stores: Stores) -> None:
    """Vectors of the old model are left out and said so; reconcile makes all of them anew."""
    stores.portal(Letters(name="old")).write("ann", "s", notes("aaa", "bbb"))
    portal = stores.portal(Letters(name="new"))
    found = portal.recall("ann", "zz a", 5)
    assert found.ids == ("aaa", "bbb")  # the newest rows, equals in the order of saving
    assert found.remarks == ("2 vectors are not of 'new' with 3 dimensions: left out until they are made anew",)
    assert portal.reconcile().debt == 0
    assert portal.recall("ann", "zz b", 5).ids == ("bbb", "aaa")
    database, vectors = stores.open()
    check_invariants(database, vectors, "new")


def test_reconcile_mends_a_vector_table_that_was_lost_or_is_of_another_time(stores: Stores) -> None:
    portal = stores.portal(Letters())
    portal.write("ann", "s", notes("a", "b"))
    portal.compact("ann", "s")
    database, vectors = stores.open()
    summary = next(one for one in rows(stores))
    vectors.remove("ann", [summary])
    from recallstack.systems.memory.vectors import VectorRow

    vectors.upsert("ann", "letters", [VectorRow("a", 1, 1, None)])  # archived since
    vectors.upsert("eve", "letters", [VectorRow("x", 1, 1, None)])  # of nobody
    assert portal.reconcile().debt == 0
    assert owners(stores) == [("ann", summary)]
    check_invariants(database, vectors, "letters")


def test_a_row_that_changes_while_it_is_embedded_keeps_its_debt(stores: Stores) -> None:
    """Another process writes the same memory at the wrong moment; its own sync brings the right vector."""

    class Slow(Letters):
        def encode_documents(self, texts: Sequence[str]) -> Any:
            if not self.documents:
                self.documents.append("once")
                other.write("ann", "s", [NewMemory(content="ccc", id="x")])
            return super().encode_documents(texts)

    other = stores.portal(Letters())
    portal = stores.portal(Slow())
    portal.write("ann", "s", [NewMemory(content="aaa", id="x")])
    assert portal.status().debt == 0
    database, vectors = stores.open()
    check_invariants(database, vectors, "letters")
    assert portal.recall("ann", "c", 1).hits[0].content == "ccc"


# The documented bug.


def test_legacy_back_fill_leaves_the_new_row_out(stores: Stores) -> None:
    """Batches of two from the oldest on: the third row is never reached, however often one writes."""
    legacy = stores.portal(Letters(), backfill_batch=2, switches=Switches(backfill_from_zero=True, vector_only=True))
    legacy.write("ann", "s", notes("aab", "abb"))
    legacy.write("ann", "s", notes("aaa"))
    assert legacy.recall("ann", "a", 5).ids == ("aab", "abb")
    fixed = stores.portal(Letters(), switches=Switches(vector_only=True))
    fixed.write("ann", "s", notes("aac"))
    assert fixed.recall("ann", "a", 5).ids[0] == "aaa"


def test_the_defaults_are_the_documented_ones() -> None:
    settings = Settings()
    assert settings.modes == Modes()
    assert (settings.modes.lifecycle, settings.modes.injection, settings.modes.candidates) == ("off", "shadow", False)
    assert settings.switches == Switches()
    assert ALL_MODES.candidates
    assert Clock()() == Clock()()
    assert CANDIDATES.name == "memory_v2_candidates"
