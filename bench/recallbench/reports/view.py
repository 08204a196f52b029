"""A section as the page shows it: rows of written figures, badges, sentences in both languages."""

from __future__ import annotations

import json
import math
from typing import Any

from recallbench.reports.reproduce import command
from recallbench.reports.section import Section
from recallbench.reports.words import Both, listed, outcome, say, words
from recallbench.statistics.intervals import Interval
from recallbench.text.numbers import bounds, fine, mark, number, probability

View = dict[str, Any]


def facts(section: Section) -> Both:
    """Questions, memories and depth of a run, its split if it is of one."""
    run = section.run
    out = say(
        "facts", questions=len(run.evaluation.labelled.questions), memories=run.memories, depth=run.evaluation.depth
    )
    if run.evaluation.split is None:
        return out
    split = say("split", split=run.evaluation.split)
    return Both(f"{out.en}, {split.en}", f"{out.zh}，{split.zh}")


def section_view(section: Section, report_command: str) -> View:
    """All that the template of a report needs of one run."""
    view: View = {
        "name": section.name,
        "version": section.run.evaluation.labelled.info.version,
        "facts": facts(section),
        "verdict": section.verdict,
        "look": [
            {
                "place": one.place,
                "id": section.run.evaluation.labelled.questions[one.place].id,
                "why": one.why,
                "text": section.text_of(one.place),
            }
            for one in section.verdict.look
        ],
        "valid": section.run.evaluation.valid,
        **_results(section),
        **_groups(section),
        **_costs(section),
        "waterfall": _waterfall(section),
        "sweep": _sweep(section),
        "checks": _checks(section),
        "passed": _passed(section),
        "power": _power(section),
        "reproduce": _reproduce(section, report_command),
    }
    parts = ["verdict", "results", "groups", "cost", "waterfall", "sweep", "questions", "checks", "power", "reproduce"]
    view["contents"] = [name for name in parts if name not in ("groups", "sweep") or view[name]]
    return view


def _cell(interval: Interval, signed: bool = False, sign: str = "") -> View:
    sort = "" if interval.n == 0 or math.isnan(interval.mean) else f"{interval.mean:.9g}"
    text = number(interval.mean, signed=signed) if interval.n else number(None)
    return {"text": text, "range": bounds(interval, signed), "sort": sort, "mark": sign}


def _results(section: Section) -> View:
    held = section.held
    measures = _measures(section)
    columns = [_column(measure) for measure in measures]
    columns[1:1] = [say("difference", base=held.reference), say("p")]
    family = held.to_best if held.baseline is None else held.to_base
    rows = []
    for name in held.order:
        cells = [_cell(held.means[name, held.primary])]
        if name == held.reference:
            cells += [{"text": number(None), "range": "", "sort": "", "mark": ""}] * 2
        else:
            change = held.to_reference[name, held.primary]
            same = change.n > 0 and change.low == change.high == 0
            blank = {"text": "=", "range": "", "sort": "0", "mark": ""}
            cells.append(blank if same else _cell(change, signed=True, sign=mark(change)))
            p = family[name].adjusted
            cells.append({"text": probability(p), "range": "", "sort": f"{p:.9g}", "mark": ""})
        for measure in map(str, measures[1:]):
            sign = "" if name == held.reference else mark(held.to_reference[name, measure])
            cells.append(_cell(held.means[name, measure], sign=sign))
        badges = ["pick"] * (name == held.pick != held.best) + [held.tone(name)] * (held.tone(name) != "behind")
        rows.append({"system": name, "badges": badges + ["base"] * (name == held.baseline), "cells": cells})
    return {"columns": columns, "rows": rows, "note": _results_note(section, len(family))}


def _measures(section: Section) -> list[Any]:
    """The measures in the order of the columns: the primary one, those of harm, the others.

    Without those, after the primary one, that count for no question.
    """
    held = section.held
    first, *others = section.run.evaluation.measures
    shown = [one for one in others if any(held.means[system, str(one)].n for system in held.order)]
    return [first, *sorted(shown, key=lambda one: str(one) not in held.guards)]


def _column(measure: Any) -> Both:
    name = str(measure)
    if measure.higher_is_better:
        return Both(name, name)
    lower = say("lower")
    return Both(f"{name} ({lower.en})", f"{name}（{lower.zh}）")


def _results_note(section: Section, family: int) -> Both:
    held, evaluation = section.held, section.run.evaluation
    own = held.means[held.best, held.primary]
    clusters = say("r.clusters", clusters=own.clusters) if own.clusters > 1 else Both("", "")
    text = say("r.note", clusters=clusters, measure=held.primary, family=family, base=held.reference)
    sizes = []
    for measure in map(str, evaluation.measures):
        counts = sorted({held.means[name, measure].n for name in evaluation.systems}, reverse=True)
        n = say("r.range", low=counts[-1], high=counts[0]) if len(counts) > 1 else str(counts[0])
        sizes.append(say("r.over", name=measure, n=n))
    counted = say("r.counted", counted=Both("; ".join(one.en for one in sizes), "；".join(one.zh for one in sizes)))
    return Both(f"{text.en} {counted.en}", f"{text.zh}{counted.zh}")


def _groups(section: Section) -> View:
    charts = [{"id": f"groups-{by}", "title": say(f"by.{by}")} for by in section.groups if by in ("category", "lang")]
    tables = []
    for by, cells in section.groups.items():
        names = list(dict.fromkeys(cell.group for cell in cells))
        title = say(f"by.{by}")
        for measure in section.shown:
            at = {(cell.system, cell.group): cell.interval for cell in cells if cell.measure == measure}
            rows = [
                {"system": system, "cells": [_cell(at[system, group]) for group in names]}
                for system in section.held.order
            ]
            counted = [f"{group} ({at[section.held.best, group].n})" for group in names]
            full = Both(f"{measure} {title.en}", f"{measure} {title.zh}")
            tables.append({"title": full, "names": counted, "rows": rows})
    return {"group_charts": charts, "groups": tables}


def _costs(section: Section) -> View:
    found = [
        {
            "id": f"pareto-{one.kind}",
            "title": say(f"cost.{one.kind}"),
            "note": say("c.note", names=listed(one.front))
            if one.kind == "tokens"
            else say("c.front.of", names=listed(one.front)),
        }
        for one in section.costs
    ]
    return {"costs": found, "timed": any(one.kind == "latency" for one in section.costs)}


def _waterfall(section: Section) -> View | None:
    if not section.waterfalls:
        return None
    systems = [one.system for one in section.waterfalls]
    held = section.held
    left = systems.index(held.pick) if held.pick in systems else 0
    right = systems.index(held.second) if held.second in systems else min(1, len(systems) - 1)
    first = section.waterfalls[0]
    rel = section.run.evaluation.labelled.info.default_rel
    return {
        "systems": systems,
        "left": left,
        "right": right,
        "note": say("w.note", n=first.total, rel=rel),
        "outcomes": [outcome(name) for name in first.counts],
        "rows": [{"system": one.system, "counts": list(one.counts.values())} for one in section.waterfalls],
    }


def _sweep(section: Section) -> Both | None:
    """How the choice was made, and how far apart the figures of the map are: its colours always span all of them."""
    sweep = section.sweep
    if sweep is None:
        return None
    sentence = Both(sweep.sentence, sweep.sentence)
    if f"choice.{sweep.how}" in words():
        told = say(f"choice.{sweep.how}", name=sweep.chosen, count=sweep.recipes, value=number(sweep.reported))
        sentence = Both(sweep.sentence, told.zh)
    values = [value for *_, value in sweep.cells]
    out = say("h.note", measure=sweep.measure, sentence=sentence, low=number(min(values)), high=number(max(values)))
    found = next((one.detectable for one in section.resolutions if one.measure == sweep.measure), None)
    if found is None or max(values) - min(values) >= found[0]:
        return out
    flat = say("h.flat", least=fine(found[0]))
    return Both(f"{out.en} {flat.en}", f"{out.zh}{flat.zh}")


LONG = 240
"""Characters of findings after which they are shown on demand."""


def _checks(section: Section) -> list[View]:
    """The findings, one entry a check and level, the gravest first as in the run."""
    found: dict[tuple[str, str], list[View]] = {}
    for one in section.run.evaluation.checks:
        found.setdefault((one.level, one.name), []).append({"system": one.system, "message": one.message})
    return [
        {
            "level": level,
            "name": name,
            "meaning": words().get(f"check.{name}"),
            "findings": findings,
            "long": sum(len(one["message"]) for one in findings) > LONG,
        }
        for (level, name), findings in found.items()
    ]


def _passed(section: Section) -> Both:
    """The known checks that had nothing to say of this run."""
    said = {one.name for one in section.run.evaluation.checks}
    silent = [text for key, text in words().items() if key.startswith("check.") and key[6:] not in said]
    names = Both("; ".join(one.en for one in silent), "；".join(one.zh for one in silent))
    return say("k.passed", names=names)


def _power(section: Section) -> View | None:
    if len(section.held.order) < 2:
        return None
    rows = []
    for one in section.resolutions:
        found = [fine(value) for value in one.detectable] if one.detectable else [number(None)] * 3
        differ = f"{one.differ} / {one.pairs}"
        rows.append([one.measure, str(one.questions), str(one.clusters or number(None)), differ, *found])
    best = section.held.best
    needed = [
        say("o.needed", best=best, other=name, difference=fine(difference), n=f"{questions:,}")
        for name, difference, questions in section.needed
    ]
    return {"note": say("o.note", best=best), "rows": rows, "needed": needed}


def _reproduce(section: Section, report_command: str) -> View:
    manifest = section.run.manifest
    data = manifest["dataset"]
    tables: list[tuple[str, list[tuple[str, str]]]] = [
        (
            "d.data",
            [(key, str(data[key])) for key in ("name", "version", "licence", "memories", "labels") if data[key]],
        ),
        ("d.versions", list(manifest["versions"].items())),
        (
            "d.settings",
            [(key, _plain(value)) for key, value in manifest["settings"].items() if value not in (None, [])],
        ),
    ]
    if "time" in manifest:
        machine = manifest.get("machine", {})
        tables.append(
            ("d.machine", [("time", manifest["time"]), *((key, str(value)) for key, value in machine.items())])
        )
    folders = [say("d.folder", folder=one.name) for one in section.run.folders]
    if manifest["published"]:
        folders.append(say("d.private"))
    return {
        "command": command(section.run),
        "report": report_command,
        "folders": folders,
        "tables": tables,
        "systems": [
            (name, json.dumps(spec, ensure_ascii=False, sort_keys=True)) for name, spec in manifest["systems"].items()
        ],
    }


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
