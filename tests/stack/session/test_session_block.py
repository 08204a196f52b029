"""The injected block: budget, whole characters, braces made harmless."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallstack.errors import InputError
from recallstack.ranking.rows import Memory
from recallstack.systems.session.block import Block, BlockConfig, harmless, render
from recallstack.systems.session.switches import Switches


def memories(*contents: str, title: str = "t") -> list[Memory]:
    return [Memory(id=f"m{n}", title=title, content=content) for n, content in enumerate(contents, 1)]


def test_a_line_a_memory_in_their_order() -> None:
    rows = [
        Memory(id="x", title="Release  window", content="Thursdays 10:00", type="decision"),
        Memory(id="y", title="", content="Prefers tea", type="preference"),
        Memory(id="z", title="Only a title", content=""),
    ]
    block = render(rows, BlockConfig(head="Memory:"))
    assert block.text == (
        "Memory:\n- [decision] Release window: Thursdays 10:00\n- [preference] Prefers tea\n- [project] Only a title"
    )
    assert (block.ids, block.truncated) == (("x", "y", "z"), False)


def test_without_a_memory_there_is_no_block() -> None:
    assert render([], BlockConfig()) == Block("", (), False)


def test_each_content_is_cut_at_its_bound_and_the_block_at_its_budget() -> None:
    """Entry bound 5: four characters and the ellipsis. The lines then are 'H', '\\n- [project] t: aaaa…' (21 long)."""
    rows = memories("a" * 9, "b" * 5, "c")
    block = render(rows, BlockConfig(max_chars=500, entry_chars=5, head="H"))
    assert block.text == "H\n- [project] t: aaaa…\n- [project] t: bbbbb\n- [project] t: c"
    assert (block.ids, block.truncated) == (("m1", "m2", "m3"), True)
    # 'H' and line 1 are 22 characters, the head of line 2 is 16: of 40, 39 are kept and one is the ellipsis.
    block = render(rows, BlockConfig(max_chars=40, entry_chars=5, head="H"))
    assert block.text == "H\n- [project] t: aaaa…\n- [project] t: b…"
    assert (len(block.text), block.ids, block.truncated) == (40, ("m1", "m2"), True)
    # One less, and nothing of the second content is left: it is not in the block.
    block = render(rows, BlockConfig(max_chars=39, entry_chars=5, head="H"))
    assert block.text == "H\n- [project] t: aaaa…\n- [project] t: …"
    assert block.ids == ("m1",)


def test_a_budget_with_no_room_for_a_memory_leaves_no_block() -> None:
    assert render(memories("a"), BlockConfig(max_chars=10, head="Memories:")) == Block("", (), True)


@pytest.mark.parametrize(
    ("content", "limit", "kept"),
    [
        ("ab😀cd", 4, "ab😀…"),
        ("ab😀cd", 3, "ab…"),
        ("e\u0301e\u0301", 3, "e\u0301…"),  # two letters with an accent each: the second would be split
        ("x👍🏽y", 3, "x…"),  # the skin tone stays with its hand, or both go
    ],
)
def test_cuts_end_at_whole_characters(content: str, limit: int, kept: str) -> None:
    block = render(memories(content, title=""), BlockConfig(entry_chars=limit, head=""))
    assert block.text == f"\n- [project] {kept}"


def test_half_a_character_in_a_memory_is_replaced() -> None:
    block = render(memories("a\ud83d"), BlockConfig())
    assert block.text.endswith("a\ufffd")


def test_a_cut_that_counts_utf16_units_leaves_half_a_character() -> None:
    """'ab' and four units of two emoji: a cut to 4 keeps 3 units, which end inside the first emoji."""
    rows = memories("ab😀😀")
    config = BlockConfig(entry_chars=4)
    assert render(rows, config).text.encode("utf-8")
    with pytest.raises(UnicodeEncodeError):
        render(rows, config, Switches(cut_by_utf16=True)).text.encode("utf-8")


def test_braces_do_nothing_in_a_template() -> None:
    text = 'docker --format "{{.Server.Version}}" {% x %} {0} {a!r:>{w}} } {{{'
    block = render(memories(text, title="{title}"), BlockConfig())
    assert block.text.format() == block.text
    assert list(string.Formatter().parse(block.text)) == [(block.text, None, None, None)]
    assert not set("{}") & set(block.text)
    assert "｛｛.Server.Version｝｝" in block.text
    assert "｛title｝" in block.text
    raw = render(memories(text), BlockConfig(), Switches(braces_raw=True)).text
    assert "{{.Server.Version}}" in raw
    with pytest.raises((ValueError, KeyError, IndexError)):
        raw.format()


def test_the_budget_ignored_is_seen() -> None:
    rows = memories("a" * 2_000)
    assert len(render(rows, BlockConfig(max_chars=100)).text) == 100
    assert len(render(rows, BlockConfig(max_chars=100), Switches(budget_ignored=True)).text) > 2_000


@pytest.mark.parametrize("name", ["max_chars", "entry_chars"])
def test_a_bound_below_one_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is 0; it must be at least 1"):
        BlockConfig(**{name: 0})


texts = st.text(st.one_of(st.characters(), st.sampled_from("{}%$ \n\u200d\u0301😀🏽🇩🇪\ud83d\ude00")), max_size=40)


@given(st.lists(st.tuples(texts, texts), max_size=6), st.integers(1, 120), st.integers(1, 30))
@settings(max_examples=300, deadline=None)
def test_whatever_the_memories_hold(rows: list[tuple[str, str]], budget: int, entry: int) -> None:
    given_rows = [Memory(id=f"m{n}", title=title, content=content) for n, (title, content) in enumerate(rows)]
    block = render(given_rows, BlockConfig(max_chars=budget, entry_chars=entry))
    assert len(block.text) <= budget
    block.text.encode("utf-8")
    assert block.text.format() == block.text
    assert harmless(block.text) == block.text
    assert block.ids == tuple(one.id for one in given_rows[: len(block.ids)])  # the first ones, in their order
    assert bool(block.ids) == bool(block.text)
    if len(block.ids) < len(given_rows):
        assert block.truncated
    assert block.text.count("\n- [project]") >= len(block.ids)
