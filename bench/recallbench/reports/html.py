"""The HTML report: one file that needs nothing else, works from disk, and asks nobody for anything."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from recallbench.reports import charts, images
from recallbench.reports.inputs import ScenarioResult
from recallbench.reports.payload import packed, questions_payload
from recallbench.reports.scenarios_view import scenarios_view
from recallbench.reports.section import Section
from recallbench.reports.view import section_view
from recallbench.reports.words import LANGS, Both, Lang, say, words
from recallbench.text.escape import clipped, visible

TOP = 20
"""Rows of each list that the table of questions shows."""


def report_html(
    sections: Sequence[Section],
    *,
    scenarios: Sequence[ScenarioResult] = (),
    lang: Lang = "en",
    top: int = TOP,
    command: str = "",
) -> str:
    """The report of some runs as one HTML document.

    lang: shown first; the page has both. top: rows of each list in the table of questions. command: how the report was
    made, as it is to be shown. Raises InputError where the extra `reports` is missing.
    """
    images.needs_extra()
    packs = {}
    for place, section in enumerate(sections):
        packs[f"data-{place}"] = packed(questions_payload(section, top))
        packs[f"charts-{place}"] = packed({one: section_charts(section, one) for one in LANGS})
    names = " · ".join(dict.fromkeys(section.name for section in sections))
    title = say("title")
    return page(
        "report.html.j2",
        Both(f"{title.en}: {names}", f"{title.zh}：{names}"),
        lang,
        packs,
        private=say("d.private") if any(section.run.manifest["published"] for section in sections) else None,
        sections=[section_view(section, command) for section in sections],
        scenarios=scenarios_view(scenarios) if scenarios else None,
        has_scenarios=bool(scenarios),  # in the parts `scenarios` is a macro
    )


def section_charts(section: Section, lang: str) -> dict[str, Any]:
    """Every chart of a run by its id; waterfalls are a list, one for each system that left a trace."""
    out: dict[str, Any] = {"forest": charts.forest(section.held, lang)}
    for one in section.costs:
        out[f"pareto-{one.kind}"] = charts.pareto(section, one.kind, lang)
    for by in ("category", "lang"):
        if by in section.groups:
            out[f"groups-{by}"] = charts.groups(section, by, lang)
    if section.sweep is not None:
        out["sweep"] = charts.heat_map(section.sweep, lang)
    out["waterfalls"] = charts.waterfalls(section.waterfalls, lang)
    return out


def page(
    template: str, title: Both, lang: Lang, packs: Mapping[str, str], private: Both | None = None, **values: Any
) -> str:
    """A page of ours: the frame with its style, script and packed data around a template."""
    import jinja2
    from markupsafe import Markup

    folder = files("recallbench.reports").joinpath("templates")
    shown = {key: text for key, text in words().items() if key.startswith(("q.", "outcome."))}
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(
        both=_both, labels=_labels, attributes=_attributes, both_of=lambda name: Both(name, name)
    )
    environment.filters.update(visible=visible, clipped=clipped, breaking=_breaking)
    text = environment.get_template(template).render(
        words=words(),
        title=title,
        lang=lang,
        private=private,
        version=version("recallbench"),
        style=Markup(_asset("style.css")),
        script=Markup(_asset("report.js")),
        library=packed(images.library()),
        packs=[*packs.items(), ("words", packed(shown))],
        **values,
    )
    return re.sub(r"\n\s*\n+", "\n", text)


def _asset(name: str) -> str:
    text = files("recallbench.reports").joinpath("templates", name).read_text(encoding="utf-8")
    assert "</script" not in text.lower()
    assert "</style" not in text.lower()
    return text


def _both(text: Both) -> Any:
    """A text in both languages, of which the page shows one."""
    from markupsafe import Markup

    en, zh = visible(text.en), visible(text.zh)
    if en == zh:
        return Markup("{}").format(en)
    return Markup('<span class="t" lang="en">{}</span><span class="t" lang="zh">{}</span>').format(en, zh)


def _breaking(name: str) -> Any:
    """A name that may be broken after its joints, and not within its words."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"(?<=[+_/.:=-])(?=[^+_/.:=;-])", "<wbr>", str(escape(visible(name)))))


def _labels(text: Both) -> Any:
    """Attributes from which the script sets `aria-label`."""
    from markupsafe import Markup

    return Markup('data-label-en="{}" data-label-zh="{}"').format(visible(text.en), visible(text.zh))


def _attributes(text: Both) -> Any:
    """Attributes from which the script sets the text of an option."""
    from markupsafe import Markup

    return Markup('data-en="{}" data-zh="{}"').format(visible(text.en), visible(text.zh))
