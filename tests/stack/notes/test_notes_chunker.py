"""Chunking: where a file is cut, which line a chunk names, and the signature of the rule."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallstack.errors import InputError
from recallstack.systems.notes.chunker import LONGEST, VERSION, Chunk, ChunkRule, chunks

RULE = ChunkRule()


def cut(text: str, rule: ChunkRule = RULE) -> list[tuple[int, int, str]]:
    return [(one.line, one.part, one.text) for one in chunks(text, rule)]


def test_blank_lines_items_and_headings() -> None:
    # Line numbers counted by hand: the heading is line 1, the blank line 2 belongs to nothing.
    text = (
        "# Pets\n\nThe cat is called\nMira.\n- likes fish\n  and milk\n"
        "* hates dogs\n1. first\n2) second\n## End\nbye  \n"
    )
    assert cut(text) == [
        (1, 1, "# Pets"),
        (3, 1, "The cat is called\nMira."),
        (5, 1, "- likes fish\n  and milk"),
        (7, 1, "* hates dogs"),
        (8, 1, "1. first"),
        (9, 1, "2) second"),
        (10, 1, "## End"),
        (11, 1, "bye"),
    ]


@pytest.mark.parametrize("line", ["#tag", "####### seven", "-dash", "1.5 kg", "**bold**", "--- "])
def test_what_only_looks_like_a_border(line: str) -> None:
    assert cut(f"above\n{line}\nbelow") == [(1, 1, f"above\n{line.rstrip()}\nbelow")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_counts_one_line(end: str) -> None:
    assert cut(end.join(["a", "", "b", "c"])) == [(1, 1, "a"), (3, 1, "b\nc")]


def test_characters_that_are_no_line_end_do_not_shift_lines() -> None:
    # Editors count none of these as a line: the second entry is on line 3.
    assert cut("a\u2028b\x0bc\x0cd\x85e\n\nf") == [(1, 1, "a\u2028b\x0bc\x0cd\x85e"), (3, 1, "f")]


def test_a_long_entry_is_cut_by_length_and_keeps_its_first_line() -> None:
    assert cut("x\n\nabcdefg\nhij", ChunkRule(longest=4)) == [
        (1, 1, "x"),
        (3, 1, "abcd"),
        (3, 2, "efg"),  # "efg\n": blanks at either end go
        (3, 3, "hij"),
    ]
    assert [len(one.text) for one in chunks("字" * (2 * LONGEST + 1), RULE)] == [LONGEST, LONGEST, 1]


def test_settings_of_the_rule() -> None:
    text = "# A\ntext\n- item"
    assert cut(text, ChunkRule(items=False)) == [(1, 1, "# A"), (2, 1, "text\n- item")]
    assert cut(text, ChunkRule(headings=False)) == [(1, 1, "# A\ntext"), (3, 1, "- item")]


def test_ids_of_parts() -> None:
    assert [Chunk(3, part, "").id("a/b.md") for part in (1, 2)] == ["a/b.md#3", "a/b.md#3.2"]


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n", "\r\n\r\n"])
def test_nothing_to_cut(text: str) -> None:
    assert cut(text) == []


lines = st.lists(st.text(alphabet="ab字 -#*1.\t", max_size=12), max_size=12)


@given(lines, st.integers(1, 9), st.booleans(), st.booleans())
def test_no_word_is_lost_and_lines_are_right(parts: list[str], longest: int, headings: bool, items: bool) -> None:
    rule = ChunkRule(longest=longest, headings=headings, items=items)
    got = list(chunks("\n".join(parts), rule))
    squeezed = "".join("".join(parts).split())
    assert "".join("".join(one.text.split()) for one in got) == squeezed
    assert all(len(one.text) <= longest for one in got)
    assert [one.line for one in got] == sorted(one.line for one in got)
    for one in got:
        if one.part == 1 and one.text:
            assert parts[one.line - 1].strip().startswith(one.text.split("\n")[0].strip()[:longest].strip())


@given(st.integers(1, 10_000), st.booleans(), st.booleans())
def test_a_signature_makes_its_rule_again(longest: int, headings: bool, items: bool) -> None:
    rule = ChunkRule(longest=longest, headings=headings, items=items)
    assert ChunkRule.of(rule.signature) == rule


def test_signatures_differ_with_every_setting() -> None:
    rules = [RULE, ChunkRule(longest=9), ChunkRule(headings=False), ChunkRule(items=False)]
    assert len({rule.signature for rule in rules}) == len(rules)


@pytest.mark.parametrize("change", [{"version": VERSION + 1}, {"tables": True}])
def test_a_rule_of_another_version_is_refused(change: dict[str, object]) -> None:
    signature = json.dumps({**json.loads(RULE.signature), **change})
    with pytest.raises(InputError, match="does not know"):
        ChunkRule.of(signature)


def test_longest_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        ChunkRule(longest=0)
