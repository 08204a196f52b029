"""The report as Markdown with static images: for a repository, a pull request, release notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recallbench.reports import charts
from recallbench.reports.chart_parts import Spec
from recallbench.reports.inputs import ScenarioResult
from recallbench.reports.scenarios_view import scenarios_view
from recallbench.reports.section import Section
from recallbench.reports.view import View, facts, section_view
from recallbench.reports.words import Both, Lang, say
from recallbench.text.escape import clipped, markdown
from recallbench.text.numbers import spread
from recallbench.text.tables import table

MOST_TEXT = 160
"""Characters of a question's text that a line shows."""


def images_of(section: Section, lang: Lang) -> dict[str, tuple[Both, Spec]]:
    """File name -> (what it shows, its chart), in the order of the report."""
    held = section.held
    out = {"results": (say("results"), charts.forest(held, lang))}
    for by in ("category", "lang"):
        if by in section.groups:
            out[f"by-{by}"] = (say(f"by.{by}"), charts.groups(section, by, lang))
    for one in section.costs:
        out[f"cost-{one.kind}"] = (say(f"cost.{one.kind}"), charts.pareto(section, one.kind, lang))
    known = dict(
        zip((one.system for one in section.waterfalls), charts.waterfalls(section.waterfalls, lang), strict=True)
    )
    for side, name in (("left", held.pick), ("right", held.second)):
        if name in known:
            text = say("waterfall")
            out[f"waterfall-{side}"] = (Both(f"{text.en}: {name}", f"{text.zh}：{name}"), known[name])
    if section.sweep is not None:
        out["sweep"] = (say("sweep"), charts.heat_map(section.sweep, lang))
    return {f"{name}.svg": one for name, one in out.items()}


def report_markdown(
    section: Section, images: Mapping[str, Both], lang: Lang, command: str, scenarios: Sequence[ScenarioResult] = ()
) -> str:
    """The report of one run. images: file name -> what it shows, as `images_of` names them."""
    view = section_view(section, command)

    def word(key: str) -> str:
        return say(key).in_(lang)

    def image(*starts: str) -> str:
        found = [name for name in images if name.startswith(starts)]
        return "\n\n".join(f"![{markdown(images[name].in_(lang))}]({name})" for name in found)

    parts = [
        f"# {word('title')}: {markdown(view['name'])} {markdown(view['version'])}",
        facts(section).in_(lang),
        *_verdict(section, view, lang),
        f"## {word('results')}",
        image("results"),
        _results(section, view, lang),
        markdown(view["note"].in_(lang)),
    ]
    if section.groups:
        parts += [f"## {word('groups')}", image("by-")]
    parts += [f"## {word('cost')}", image("cost-"), *(markdown(one["note"].in_(lang)) for one in view["costs"])]
    parts += [f"## {word('waterfall')}", image("waterfall-")]
    parts.append(markdown((view["waterfall"]["note"] if view["waterfall"] else say("w.none")).in_(lang)))
    if view["sweep"]:
        parts += [f"## {word('sweep')}", image("sweep"), markdown(view["sweep"].in_(lang))]
    if scenarios:
        parts += [f"## {word('scenarios')}", _scenarios(scenarios, lang)]
    parts += [f"## {word('checks')}", _checks(view, lang)]
    if view["power"]:
        parts += [f"## {word('power')}", _power(view, lang)]
    parts += [f"## {word('reproduce')}", _reproduce(view, lang)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _verdict(section: Section, view: View, lang: Lang) -> list[str]:
    found = section.verdict
    rows = [[markdown(one.label.in_(lang)), one.value, markdown(one.detail.in_(lang))] for one in found.figures]
    sure = "\n".join(f"- {markdown(one.in_(lang))}" for one in found.sure)
    look = [
        f"{place}. {markdown(clipped(one['id'], 80))}: {markdown(one['why'].in_(lang))}"
        + (f" — {markdown(clipped(one['text'], MOST_TEXT))}" if one["text"] else "")
        for place, one in enumerate(view["look"], 1)
    ]
    return [
        f"**{markdown(found.headline.in_(lang))}**",
        table(["", say("value").in_(lang), ""], rows, "lrl") if rows else "",
        f"### {say('sure').in_(lang)}" if sure else "",
        sure,
        f"### {say('look').in_(lang)}",
        "\n".join(look) or say("l.none").in_(lang),
    ]


def _results(section: Section, view: View, lang: Lang) -> str:
    header = [say("system").in_(lang), *(markdown(one.in_(lang)) for one in view["columns"])]
    rows = []
    for row in view["rows"]:
        badges = [say(f"badge.{one}").in_(lang) for one in row["badges"]]
        name = markdown(row["system"]) + (f" ({', '.join(badges)})" if badges else "")
        cells = [
            " ".join(filter(None, (one["mark"], one["text"], one["range"] if place < 2 else "")))
            for place, one in enumerate(row["cells"])
        ]
        rows.append([name, *cells])
    return table(header, rows)


def _scenarios(results: Sequence[ScenarioResult], lang: Lang) -> str:
    view = scenarios_view(results)
    rows = [[one["system"], f"{one['passed']}/{one['runs']}"] for one in view["groups"]]
    failed = [f"- {markdown(one.scenario)} ({one.variant})" for one in results if one.outcome == "failed"]
    text = table([say("system").in_(lang), say("x.passed").in_(lang)], rows)
    return "\n\n".join([view["note"].in_(lang), text, *(["\n".join(failed)] if failed else [])])


def _checks(view: View, lang: Lang) -> str:
    lines = [say("k.valid" if view["valid"] else "k.invalid").in_(lang), ""]
    for one in view["checks"]:
        level = say(f"k.level.{one['level']}").in_(lang)
        for finding in one["findings"]:
            where = f" {markdown(finding['system'])}:" if finding["system"] else ""
            lines.append(f"- **{level}** ({one['name']}){where} {markdown(finding['message'])}")
    shown = lines if view["checks"] else [say("k.none").in_(lang)]
    return "\n".join([*shown, "", markdown(view["passed"].in_(lang))])


def _power(view: View, lang: Lang) -> str:
    keys = ("measure", "o.questions", "o.clusters", "o.pairs", "o.median", "o.least", "o.greatest")
    rows = [[markdown(row[0]), *row[1:]] for row in view["power"]["rows"]]
    needed = [markdown(one.in_(lang)) for one in view["power"]["needed"]]
    return "\n\n".join(
        [markdown(view["power"]["note"].in_(lang)), table([say(key).in_(lang) for key in keys], rows), *needed]
    )


def _reproduce(view: View, lang: Lang) -> str:
    found = view["reproduce"]
    parts = [_code(found["command"]), *(markdown(one.in_(lang)) for one in found["folders"]), _code(found["report"])]
    for key, rows in found["tables"]:
        shown = [[markdown(name), f"`{value.replace('`', '')}`"] for name, value in rows]
        parts.append(
            f"**{say(key).in_(lang)}**\n\n" + table([say("name").in_(lang), say("value").in_(lang)], shown, "ll")
        )
    return "\n\n".join(parts)


def _code(text: str) -> str:
    """A block whose fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def index_markdown(sections: Sequence[tuple[Section, str]], command: str, lang: Lang, html: str | None = None) -> str:
    """The first page of a folder of reports. sections: each with the folder of its report; html: a file beside it."""
    rows = []
    for section, folder in sections:
        held = section.held
        own = spread(held.means[held.pick, held.primary])
        rows.append(
            [
                f"[{markdown(section.name)}]({folder}/report.md)",
                markdown(section.verdict.headline.in_(lang)),
                f"{held.primary} {own}",
            ]
        )
    header = [say(key).in_(lang) for key in ("runs", "verdict", "measure")]
    title = say("title").in_(lang)
    page = [f"[{title}]({html}) (HTML)"] if html else []
    return "\n\n".join([f"# {title}", table(header, rows, "lll"), *page, _code(command)]) + "\n"
