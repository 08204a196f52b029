"""Make the notebooks from their Markdown twins, or check that they are what the twins make.

    python notebooks/build.py [NAME…]            execute from clean and write NAME.ipynb
    python notebooks/build.py --check [NAME…]    execute from clean and compare; exit code 1 if something differs

A twin `NAME.md` is what people write and read diffs of (Jupytext); `NAME.ipynb` is the same with its output. The check
wants the same cells, no error, nothing on standard error, no path of a machine, no text of the LoCoMo data, and the
same printed output and tables. Images are not compared: their bytes depend on fonts. Without the LoCoMo data
(environment variable RECALLBENCH_DATA) the cells on it skip themselves, and outputs are not compared either.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SECONDS = 300
"""Longest time of one cell."""
MACHINE = re.compile(r"(?:/(?:home|root|Users|tmp|private|work|var|opt)/|[A-Z]:\\\\)[\w.-]*")
COMPARED = ("text/plain", "text/html", "text/markdown")
_CHART = re.compile(r"alt\.(\w*Chart)\(\.\.\.\)")


def twins(names: list[str]) -> list[Path]:
    """The Markdown twins, all of them without names."""
    known = {path.stem: path for path in sorted(HERE.glob("[0-9]*.md"))}
    unknown = [name for name in names if Path(name).stem not in known]
    if unknown:
        raise SystemExit(f"no notebook {unknown[0]!r}; there are: {', '.join(known)}")
    return [known[Path(name).stem] for name in names] or list(known.values())


def bare(path: Path) -> Any:
    """The notebook of a twin, without output and with cell ids that depend on nothing but their place."""
    import jupytext

    notebook = jupytext.read(path)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell["metadata"] = {}
    notebook.metadata = {
        "jupytext": {"formats": "ipynb,md", "text_representation": {"extension": ".md", "format_name": "markdown"}},
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def executed(path: Path) -> Any:
    """The notebook with its output, run in this environment with an empty cache."""
    from nbclient import NotebookClient

    notebook = bare(path)
    with tempfile.TemporaryDirectory() as cache:
        os.environ.update(
            RECALLBENCH_CACHE=cache, JUPYTER_PREFER_ENV_PATH="1", JUPYTER_PLATFORM_DIRS="1", PYTHONHASHSEED="0"
        )
        client = NotebookClient(
            notebook,
            timeout=SECONDS,
            kernel_name="python3",
            record_timing=False,
            extra_arguments=["--log-level=ERROR"],
            resources={"metadata": {"path": str(HERE)}},
        )
        client.execute()
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell["metadata"] = {}
        merged: list[Any] = []
        for output in cell.get("outputs", []):
            output.get("metadata", {}).clear()
            last = merged[-1] if merged else None
            if last and output["output_type"] == "stream" and last.get("name") == output["name"]:
                last["text"] += output["text"]
            else:
                merged.append(output)
        if cell["cell_type"] == "code":
            cell["outputs"] = merged
    return notebook


def shown(cell: Any) -> list[str]:
    """What a cell printed and showed, as text."""
    out = []
    for output in cell.get("outputs", []):
        if output["output_type"] == "stream":
            out.append("".join(output["text"]))
        data = output.get("data", {})
        out.extend("".join(data[kind]) for kind in COMPARED if kind in data)
    return [text for text in out if not _CHART.fullmatch(text)]


def faults(notebook: Any, forbidden: list[str]) -> list[str]:
    """What may not be in a notebook that is committed. forbidden: texts that may not."""
    out = []
    for number, cell in enumerate(notebook.cells):
        where = f"cell {number}"
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                out.append(f"{where}: {output['ename']}: {output['evalue']}")
            if output.get("name") == "stderr":
                out.append(f"{where}: wrote to standard error: {''.join(output['text'])[:200]}")
        texts = ["".join(cell["source"]), *shown(cell)]
        for text in texts:
            found = MACHINE.search(text)
            if found:
                out.append(f"{where}: a path of a machine: {found[0]}")
            out.extend(f"{where}: holds text of the LoCoMo data ({one[:20]}…)" for one in forbidden if one in text)
    return out


def differences(old: Any, new: Any, outputs: bool) -> list[str]:
    """How a committed notebook differs from the one that its twin makes."""
    if [(c.cell_type, c.source) for c in old.cells] != [(c.cell_type, c.source) for c in new.cells]:
        return ["its cells are not those of the twin; run: python notebooks/build.py"]
    if not outputs:
        return []
    changed = [number for number, (a, b) in enumerate(zip(old.cells, new.cells, strict=True)) if shown(a) != shown(b)]
    return [f"cell {number}: the output is not what the code makes:\n{_diff(old, new, number)}" for number in changed]


def _diff(old: Any, new: Any, number: int) -> str:
    import difflib

    sides = ["\n".join(shown(one.cells[number])).splitlines() for one in (old, new)]
    return "\n".join(list(difflib.unified_diff(*sides, "committed", "made", lineterm="", n=0))[:20])


def locomo_texts() -> list[str]:
    """The texts of LoCoMo that a notebook might show, long enough to be no coincidence; none without the data."""
    if not os.environ.get("RECALLBENCH_DATA"):
        return []
    from recallbench import load

    labelled = load("locomo")
    texts = [one.content for corpus in labelled.corpora.values() for one in corpus.memories]
    texts += [one.text for one in labelled.questions]
    return [text for text in dict.fromkeys(one.strip() for one in texts) if len(text) >= 25]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Make or check the notebooks.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true", help="compare with what is there, write nothing")
    options = parser.parse_args()
    import nbformat

    texts, whole = locomo_texts(), bool(os.environ.get("RECALLBENCH_DATA"))
    if not whole and not options.check:
        raise SystemExit("set RECALLBENCH_DATA to the folder of locomo10.json: notebooks are kept with all cells run")
    bad = 0
    for path in twins(options.names):
        start, target = time.perf_counter(), path.with_suffix(".ipynb")
        made = executed(path)
        found = faults(made, texts)
        if options.check:
            if target.is_file():
                old = nbformat.read(target, as_version=4)
                found += [*faults(old, texts), *differences(old, made, outputs=whole)]
            else:
                found.append("is not there; run: python notebooks/build.py")
        elif not found:
            text = json.dumps(json.loads(nbformat.writes(made)), ensure_ascii=False, indent=1)
            target.write_text(text + "\n", encoding="utf-8", newline="\n")
        bad += bool(found)
        print(f"{path.stem}: {time.perf_counter() - start:.0f} s{', ' if found else ''}{'; '.join(found)}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
