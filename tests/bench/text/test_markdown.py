"""Markdown tables."""

from __future__ import annotations

from recallbench.text.tables import table, width


def test_columns_line_up_with_chinese() -> None:
    lines = table(["系统", "值"], [["rrf", "0.5"], ["关键词", "0.25"]]).splitlines()
    assert len({width(line) for line in lines}) == 1
    assert lines[1] == "|--------|-----:|"


def test_a_pipe_or_line_end_in_a_cell_stays_inside_it() -> None:
    assert "a\\|b c" in table(["x"], [["a|b\nc"]])
