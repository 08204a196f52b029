"""Writes reports: the HTML file, the folder of Markdown with images and tables, badges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from recallbench.reports import images
from recallbench.reports.badge import badge_json, badge_svg
from recallbench.reports.export import questions_csv, results_csv, write_parquet
from recallbench.reports.inputs import ScenarioResult
from recallbench.reports.markdown_report import images_of, index_markdown, report_markdown
from recallbench.reports.report_summary import summary_json
from recallbench.reports.section import Section
from recallbench.reports.words import Lang
from recallbench.runs.store import slug
from recallstack.errors import InputError


def write_text(path: Path, text: str) -> None:
    """Write a file and the folders above it. Raises InputError where that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror or error}") from None


def folder_names(sections: Sequence[Section]) -> list[str]:
    """A folder name for each section: its set, and its run where a set occurs twice."""
    names = [slug(section.name) for section in sections]
    return [
        name if names.count(name) == 1 else slug(section.run.folders[0].name)
        for name, section in zip(names, sections, strict=True)
    ]


def write_markdown(
    folder: Path,
    sections: Sequence[Section],
    lang: Lang,
    command: str,
    scenarios: Sequence[ScenarioResult] = (),
    html: Path | None = None,
) -> list[Path]:
    """Write the reports of some runs into a folder; returns the Markdown files. html: the page of the same runs.

    One run lies in the folder itself; several lie in folders of their own below it, and a README.md leads to them.
    """
    images.needs_extra()
    several = len(sections) > 1
    names = folder_names(sections)
    out = []
    for section, name in zip(sections, names, strict=True):
        own = folder / name if several else folder
        out.append(_write_one(own, section, lang, command, scenarios))
    if several:
        index = folder / "README.md"
        beside = html.name if html is not None and html.resolve().parent == folder.resolve() else None
        write_text(index, index_markdown(list(zip(sections, names, strict=True)), command, lang, beside))
        out.insert(0, index)
    return out


def _write_one(folder: Path, section: Section, lang: Lang, command: str, scenarios: Sequence[ScenarioResult]) -> Path:
    shown = images_of(section, lang)
    for name, (_, spec) in shown.items():
        write_text(folder / name, images.svg(spec))
    text = report_markdown(section, {name: title for name, (title, _) in shown.items()}, lang, command, scenarios)
    write_text(folder / "report.md", text)
    write_text(folder / "summary.json", summary_json(section))
    write_text(folder / "results.csv", results_csv(section))
    write_text(folder / "questions.csv", questions_csv(section))
    write_badge(folder, "badge", section)
    try:
        write_parquet(folder / "questions.parquet", section)
    except OSError as error:
        raise InputError(f"{folder / 'questions.parquet'}: cannot write: {error.strerror or error}") from None
    return folder / "report.md"


def write_badge(folder: Path, name: str, section: Section) -> None:
    """Write NAME.json (an endpoint of shields.io) and NAME.svg."""
    write_text(folder / f"{name}.json", badge_json(section))
    write_text(folder / f"{name}.svg", badge_svg(section))
