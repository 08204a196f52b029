"""Texts and names of others are shown as text: no element, no script, no formula, no line turned round."""

from __future__ import annotations

import csv
import io
import json
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_support import Page, evaluated, everything, run_of, small_set, unpacked, written

from recallbench.cli import _run
from recallbench.datasets.model import Question
from recallbench.text.escape import cell, markdown, visible
from recallstack.ranking.rows import Memory

OVERRIDE, ISOLATE = "\u202e", "\u2066"
HOSTILE = {
    "element": "<img src=x onerror=window.attacked=1>",
    "script": "</script><script>window.attacked=1</script>",
    "formula": '=HYPERLINK("x")',
    "plus": "+1+1",
    "at": "\t@SUM(A1)",
    "bidi": f"{OVERRIDE}txt.exe{ISOLATE}",
    "long": "長" * 20_000,
    "markdown": "[a](javascript:alert(1)) **b** `c` | d ![e](f) <b>",
    "template": "{{ 7 * 7 }} {% raw %} ${7*7}",
    "comment": "--><svg onload=window.attacked=1>",
    "lines": "one\r\ntwo\u2028three\x00four",
}


def hostile_set() -> tuple[list[Question], list[Memory]]:
    """Every hostile text as the text, id, category, corpus label, cluster of a question and as a memory and its id."""
    memories = [Memory(id=f"{text[:60]} m", content=text) for text in HOSTILE.values()]
    questions = [
        Question(
            id=f"{text[:60]} q",
            text=text,
            relevant={memories[place].id: 2},
            forbidden=(memories[place - 1].id,),
            categories=(text[:100],),
            lang="en" if place % 2 else text[:30],
            cluster=text[:40],
        )
        for place, text in enumerate(HOSTILE.values())
    ]
    return questions, memories


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every kind of report of a hostile set, texts included."""
    folder = tmp_path_factory.mktemp("hostile")
    questions, memories = hostile_set()
    lists = [[memory.id, memories[place - 1].id] for place, memory in enumerate(memories)]
    systems = [run_of(HOSTILE["element"], lists), run_of(HOSTILE["formula"], [one[::-1] for one in lists])]
    run = written(folder / "runs", evaluated(small_set(questions, memories), systems), text=True)
    out = folder / "out"
    arguments = ["report", str(run), "--include-text", "--html", str(out / "r.html"), "--markdown", str(out)]
    assert _run([*arguments, "--badge", str(out / "badge"), "--baseline", HOSTILE["formula"]]) == 0
    assert _run(["report", "history", str(out)]) == 0
    return out


@cache
def page(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["r.html", "history.html"])
def test_a_page_holds_only_its_own_elements(name: str, files: Path) -> None:
    found = page(files / name)
    tags = [tag for tag, _ in found.elements]
    assert "img" not in tags
    assert "svg" not in tags
    # Our script, and packs of data that no browser runs.
    scripts = [attributes.get("type") for tag, attributes in found.elements if tag == "script"]
    assert scripts.count(None) == 1
    assert set(scripts) == {None, "application/gzip"}
    for _, attributes in found.elements:
        assert not any(key.startswith("on") for key in attributes)
        assert not str(attributes.get("href", "#")).lower().startswith(("javascript", "data", "http"))
        assert "src" not in attributes


def test_a_page_shows_the_texts_as_text(files: Path) -> None:
    shown = page(files / "r.html").text
    assert HOSTILE["element"] in shown
    assert "[U+202E]txt.exe" in shown
    data = unpacked((files / "r.html").read_text(encoding="utf-8"))["data-0"]
    texts = json.loads(data)["text"]
    assert texts == list(HOSTILE.values())  # as they are: the script writes them as text


def test_no_character_turns_a_line_round(files: Path) -> None:
    for name, text in everything(files).items():
        if name.endswith((".html", ".parquet")):
            continue  # packed data and typed values keep what was said; the script shows it as `visible` does
        assert OVERRIDE not in text, name
        assert ISOLATE not in text, name
        assert "\x00" not in text, name
    raw = (files / "r.html").read_text(encoding="utf-8")
    assert OVERRIDE not in raw
    assert ISOLATE not in raw


def rows_of(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))))


@pytest.mark.parametrize("name", ["questions.csv", "results.csv"])
def test_no_cell_is_a_formula(name: str, files: Path) -> None:
    rows = rows_of(files / name)
    assert len({len(row) for row in rows}) == 1
    texts = 0
    for row in rows:
        for one in row:
            try:
                float(one)
            except ValueError:
                assert one.lstrip()[:1] not in ("=", "+", "-", "@"), one
                assert one[:1] not in ("\t", "\r"), one
                texts += one.startswith("'")
    assert texts >= 2  # the search can fail


def test_the_table_of_questions_keeps_its_rows(files: Path) -> None:
    rows = rows_of(files / "questions.csv")
    assert len(rows) == 1 + len(HOSTILE)
    assert max(len(one) for row in rows for one in row) == 20_000


def test_markdown_holds_no_markup_of_others(files: Path) -> None:
    text = (files / "report.md").read_text(encoding="utf-8")
    blocks = text.split("```")
    assert len(blocks) % 2 == 1  # every block of code that opens also ends
    prose = "".join(blocks[::2])
    assert "<img" not in prose
    assert "<b>" not in prose
    assert "](javascript" not in prose
    assert max(map(len, prose.splitlines())) < 4_000
    # Every table keeps the same number of columns down to its last row.
    for block in prose.split("\n\n"):
        lines = [one for one in block.splitlines() if one.startswith("|")]
        columns = {len(one.replace("\\|", "").split("|")) for one in lines}
        assert len(columns) <= 1, lines[:3]


def test_images_are_well_formed_and_run_nothing(files: Path) -> None:
    images = list(files.rglob("*.svg"))
    assert len(images) >= 4
    for path in images:
        root = ElementTree.fromstring(path.read_bytes())
        for one in root.iter():
            tag = one.tag.rpartition("}")[2]
            assert tag not in ("script", "foreignObject", "image", "img"), (path.name, tag)
            for key, value in one.attrib.items():
                assert not key.startswith("on"), path.name
                assert "javascript" not in value.lower() or "aria" in key, path.name


def test_json_files_are_json(files: Path) -> None:
    for path in files.rglob("*.json"):
        json.loads(path.read_text(encoding="utf-8"))


# The rules themselves


@given(st.text())
def test_what_is_visible_has_no_hidden_character(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\x00\x1b\x7f")
    shown.encode("utf-8")  # no half character is left


def test_characters_are_named() -> None:
    assert visible("a\u202eb\ud800c\td\ne") == "a[U+202E]b[U+D800]c\td\ne"
    assert visible("👩‍💻 ok") == "👩‍💻 ok"  # joiners make one picture


@given(st.text())
def test_a_cell_never_begins_a_formula(text: str) -> None:
    import unicodedata

    shown = cell(text)
    bare = "".join(one for one in shown if unicodedata.category(one) not in ("Cc", "Cf", "Zs", "Zl", "Zp"))
    assert bare[:1] not in tuple("=+-@＝＋－＠")


@pytest.mark.parametrize("text", ["=1", " =1", "\t=1", "\n=1", "＝1", "-1", "+1", "@a", "\ufeff=1", "\u00a0=1"])
def test_formulas_get_an_apostrophe(text: str) -> None:
    assert cell(text).startswith("'")


@pytest.mark.parametrize("text", ["a=1", "1-1", "rrf-k60", "é", "", "[U+202E]"])
def test_other_cells_stay_as_they_are(text: str) -> None:
    assert cell(text) == text


@given(st.text())
def test_markdown_has_no_live_markup(text: str) -> None:
    import re

    shown = markdown(text)
    assert "<" not in shown
    assert "\n" not in shown
    assert re.search(r"(?<!\\)(\\\\)*[`*_\[\]]", shown) is None


def test_no_link_and_no_mention_comes_alive() -> None:
    assert markdown("see https://x.org, www.x.org") == "see https\\://x.org, www\\.x.org"
    assert markdown("thanks @someone") == "thanks @\u2060someone"
    assert markdown("nDCG@5") == "nDCG@5"
