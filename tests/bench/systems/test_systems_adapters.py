"""The adapters for JavaScript and Python, and the examples that use them: real processes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT
from systems_support import QUESTIONS, Outcome, nothing_left, run_system

from recallbench.cli import _run
from recallbench.systems.adapters import ADAPTERS

NODE = shutil.which("node") or ""
needs_node = pytest.mark.skipif(not NODE, reason="node is not installed")
PERFECT = dict.fromkeys(QUESTIONS, 1.0)
Captured = pytest.CaptureFixture[str]

PLUGIN = """
import { serve } from "./recallbench.mjs";
let rows = [];
let later = [];
const wanted = (text) => rows.filter((one) => one.content.split(" ").includes(text.replace("?", "").split(" ").at(-1)));
const rank = (question) => wanted(question.text).map((one) => ({ id: one.id, score: 1 }));
serve({
  name: "made",
  reset: () => void (rows = []),
  index: (block) => void rows.push(...block),
  search: SEARCH,
});
"""
SEARCHES = {
    "plain": "(question) => rank(question)",
    "prints": """(question) => {
      console.log("log"); console.info("info"); console.debug("debug"); console.table([1]); console.dir({});
      process.stdout.write("raw\\n");
      return rank(question);
    }""",
    "throws": "(question) => { if (question.id === 'q-3') throw new Error('no such table'); return rank(question); }",
    "rejects": "async ({ id, text }) => { if (id === 'q-3') throw new Error('no such table'); return rank({ text }); }",
    "ends": "(question) => { if (question.id === 'q-3') process.exit(5); return rank(question); }",
    # Answers three questions at a time, the last one first.
    "overlaps": """(question) => new Promise((resolve) => {
      later.push(() => resolve(rank(question)));
      if (later.length === 3) { for (const one of later.reverse()) one(); later = []; }
    })""",
    # An answer that is larger than a pipe holds, and the end of the process right after it.
    "large": """(question) => {
      const hits = rank(question).map((one) => ({ ...one, text: "x".repeat(500_000) }));
      if (question.id === "q-6") setImmediate(() => process.exit(0));
      return { hits, trace: { words: hits.map((one) => one.id) } };
    }""",
}


def plugin(folder: Path, mode: str) -> Path:
    """A plugin of its own folder, with the adapter beside it as `systems adapter` puts it there."""
    assert _run(["systems", "adapter", "javascript", str(folder / "plugin")]) == 0
    path = folder / "plugin" / "made.mjs"
    path.write_text(PLUGIN.replace("SEARCH", SEARCHES[mode]), encoding="utf-8")
    return path


def ask(folder: Path, capsys: Captured, mode: str, **settings: object) -> Outcome:
    path = plugin(folder, mode)
    return run_system(folder, capsys, f'stdio:"{NODE}" "{path}"', stop_s=2.0, **settings)


@needs_node
@pytest.mark.parametrize("mode", ["plain", "prints"])
def test_what_a_plugin_prints_does_not_reach_the_harness(mode: str, tmp_path: Path, capsys: Captured) -> None:
    found = ask(tmp_path, capsys, mode)
    assert found.code == 0
    assert found.rr == PERFECT
    assert "system-note" not in found.checks


@needs_node
@pytest.mark.parametrize("mode", ["throws", "rejects"])
def test_a_plugin_that_throws_fails_one_question(mode: str, tmp_path: Path, capsys: Captured) -> None:
    found = ask(tmp_path, capsys, mode)
    assert found.code == 2
    assert found.failed == {"q-3": "answered with an error: no such table"}


@needs_node
def test_a_plugin_that_ends_is_started_again(tmp_path: Path, capsys: Captured) -> None:
    found = ask(tmp_path, capsys, "ends")
    assert found.code == 2
    assert found.failed == {"q-3": "exited with code 5"}
    assert found.rr == {**PERFECT, "q-3": 0.0}


@needs_node
def test_questions_overlap_in_a_plugin(tmp_path: Path, capsys: Captured) -> None:
    found = ask(tmp_path, capsys, "overlaps", concurrency=3)
    assert found.code == 0
    assert found.rr == PERFECT


@needs_node
def test_a_large_answer_comes_whole_even_if_the_process_ends_at_once(tmp_path: Path, capsys: Captured) -> None:
    found = ask(tmp_path, capsys, "large")
    assert found.code == 0
    assert found.rr == PERFECT


@needs_node
def test_the_trace_of_a_plugin_is_kept(tmp_path: Path, capsys: Captured) -> None:
    import pyarrow.parquet as pq

    found = ask(tmp_path, capsys, "large")
    assert found.folder is not None
    rows = [row for row in pq.read_table(found.folder / "trace.parquet").to_pylist() if row["system"] == "it"]
    assert [(row["question"], row["stage"], row["rank"], row["memory"]) for row in rows] == [
        (f"q-{number}", "words", 1, f"m-{number}") for number in range(1, 7)
    ]


def raw(command: list[str], lines: list[str]) -> list[dict[str, object]]:
    """The answers of a system to lines that are written as they are, until its input is closed."""
    done = subprocess.run(command, input="".join(lines).encode(), capture_output=True, timeout=60, check=True)
    return [json.loads(line) for line in done.stdout.split(b"\n") if line]


HELLO = '{"id":1,"op":"hello","protocol":1}\n'
PYTHON_PLUGIN = """
import sys
from recallbench_adapter import serve
class Plugin:
    name = "made"
    def index(self, memories):
        self.rows = memories
    def search(self, question, top_k):
        return [{"id": one["id"], "text": one["content"]} for one in self.rows]
serve(Plugin())
"""


@pytest.mark.parametrize("language", ["javascript", "python"])
def test_texts_pass_unchanged_and_strangers_get_an_error(language: str, tmp_path: Path) -> None:
    """Line separators of Unicode inside a text, half of a line at a time, operations that do not exist."""
    if language == "javascript":
        if not NODE:
            pytest.skip("node is not installed")
        path = plugin(tmp_path, "plain")
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("score: 1", "text: one.content"), encoding="utf-8")
        command = [NODE, str(path)]
    else:
        assert _run(["systems", "adapter", "python", str(tmp_path)]) == 0
        (tmp_path / "made.py").write_text(PYTHON_PLUGIN, encoding="utf-8")
        # The copied adapter needs nothing of ours: site packages are not even looked at.
        command = [sys.executable, "-S", str(tmp_path / "made.py")]
    odd = "a\u2028b\u2029c\u0085d \U0001f600 'x'"
    memory = json.dumps({"id": "m", "content": odd}, ensure_ascii=False)
    answers = raw(
        command,
        [
            HELLO,
            f'{{"id":2,"op":"index","memories":[{memory}]}}\n',
            '\n{"id":3,"op":"toString"}\n',
            '{"id":4,"op":"index_done"}\n{"id":5,"op":"inject","question":{"id":"q","text":""},"top_k":3}\n',
            '{"id":6,"op":"search","question":{"id":"q","text":"\'x\'"},"top_k":3}\n',
        ],
    )
    by_id = {one["id"]: one for one in answers}
    assert by_id[1] == {"id": 1, "protocol": 1, "name": "made", "version": "", "capabilities": ["search"]}
    assert by_id[2] == {"id": 2}
    assert "no operation toString" in str(by_id[3]["error"])
    assert by_id[4] == {"id": 4}
    assert "no operation inject" in str(by_id[5]["error"])
    assert by_id[6] == {"id": 6, "hits": [{"id": "m", "text": odd}]}


@pytest.mark.parametrize("language", ["javascript", "python"])
def test_another_protocol_is_refused(language: str, tmp_path: Path) -> None:
    if language == "javascript" and not NODE:
        pytest.skip("node is not installed")
    example = {"javascript": [NODE, "javascript/plugin.mjs"], "python": [sys.executable, "python/plugin.py"]}[language]
    [answer] = raw([example[0], str(ROOT / "examples" / example[1])], ['{"id":1,"op":"hello","protocol":2}\n'])
    assert "this adapter speaks protocol 1, not 2" in str(answer["error"])


EXAMPLES = {"javascript": f'stdio:"{NODE}" "{ROOT}/examples/javascript/plugin.mjs"',
            "python": f'stdio:"{sys.executable}" "{ROOT}/examples/python/plugin.py"'}  # fmt: skip


@pytest.mark.parametrize("language", ["javascript", "python"])
def test_the_examples_pass_the_check_and_find_the_answers(language: str, tmp_path: Path, capsys: Captured) -> None:
    if language == "javascript" and not NODE:
        pytest.skip("node is not installed")
    with nothing_left(str(tmp_path)):
        assert _run(["systems", "check", EXAMPLES[language]]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("0 failed, 0 warnings, ")
    found = run_system(tmp_path, capsys, EXAMPLES[language])
    assert found.code == 0
    assert found.rr == PERFECT  # each question has one word that stands in its answer alone


def test_the_examples_are_short() -> None:
    """About 40 lines of code each: what an author has to write."""
    for path in (ROOT / "examples").glob("*/plugin.*"):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        code = [line for line in lines if not line.lstrip().startswith(("//", "#", '"""'))]
        assert len(code) <= 55, path


def test_an_adapter_is_not_written_over_another_file(tmp_path: Path, capsys: Captured) -> None:
    assert _run(["systems", "adapter", "javascript", str(tmp_path)]) == 0
    assert [Path(line).name for line in capsys.readouterr().out.splitlines()] == list(ADAPTERS["javascript"])
    assert _run(["systems", "adapter", "javascript", str(tmp_path)]) == 0  # the same again
    (tmp_path / "recallbench.mjs").write_text("mine")
    capsys.readouterr()
    assert _run(["systems", "adapter", "javascript", str(tmp_path)]) == 2
    assert "is there and differs; --force writes over it" in capsys.readouterr().err
    assert (tmp_path / "recallbench.mjs").read_text() == "mine"
    assert _run(["systems", "adapter", "javascript", str(tmp_path), "--force"]) == 0
    assert "PROTOCOL" in (tmp_path / "recallbench.mjs").read_text(encoding="utf-8")


@needs_node
def test_the_check_in_the_documentation_is_what_the_command_prints(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "systems.md").read_text(encoding="utf-8")
    block = page.partition("<!-- check: examples/javascript/plugin.mjs -->\n```\n")[2].partition("\n```")[0]
    command, _, printed = block.partition("\n")
    assert command == '$ recallbench systems check "stdio:node examples/javascript/plugin.mjs"'
    assert _run(["systems", "check", "stdio:node examples/javascript/plugin.mjs"]) == 0
    assert capsys.readouterr().out.strip() == printed


def test_every_setting_is_documented() -> None:
    from recallbench.systems.settings import KINDS, keys_of

    page = (ROOT / "docs" / "systems.md").read_text(encoding="utf-8")
    table = page.partition("| key | of | default | |")[2]
    missing = {key for kind in KINDS for key in keys_of(kind) if f"`{key}`" not in table}
    assert missing == set()
