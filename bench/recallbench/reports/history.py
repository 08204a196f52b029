"""Committed reports and runs over revisions: a measure with its interval, and where the data changed."""

from __future__ import annotations

import itertools
import json
import math
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recallbench.measures import parse_measure
from recallbench.reports import charts, images
from recallbench.reports.chart_parts import Spec, short_names
from recallbench.reports.html import page
from recallbench.reports.payload import packed
from recallbench.reports.words import LANGS, Both, Lang, say
from recallbench.statistics.intervals import Interval
from recallbench.text.numbers import bounds, number
from recallstack.errors import InputError

SUMMARY, MANIFEST = "summary.json", "manifest.json"
SHOWN_SYSTEMS = 6
MEASURES = ("nDCG@5", "R@20", "Leak", "Stale")
"""Measures that a history shows besides the primary one, where they were measured."""


@dataclass(frozen=True, eq=False)
class Point:
    """One revision of one set. at: (system, measure) -> interval; data: hashes of memories and of labels.

    pick: the system that the report's verdict was about; empty where a summary does not say.
    """

    revision: str
    dataset: str
    version: str
    primary: str
    baseline: str | None
    data: tuple[str, str]
    at: dict[tuple[str, str], Interval]
    pick: str = ""

    def best(self) -> str:
        """The best system by the primary measure; the first among equals."""
        sign = 1.0 if parse_measure(self.primary).higher_is_better else -1.0
        means = {system: sign * one.mean for (system, measure), one in self.at.items() if measure == self.primary}
        return max(means, key=lambda name: -math.inf if math.isnan(means[name]) else means[name])


def history(folder: Path) -> dict[str, list[Point]]:
    """Set -> its points, oldest first.

    Where a set has one summary under the folder and git keeps it, each commit that changed it is a revision, and
    what is not committed yet the last one. Where a set has several, each is a revision: runs in the order of their
    time, others in the order of their names. Raises InputError for a folder without a summary, or a damaged one.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the folder of committed reports or runs")
    files = sorted(path for path in folder.rglob(SUMMARY) if not any(one.startswith(".") for one in path.parts))
    if not files:
        raise InputError(f"{folder}: holds no {SUMMARY}; give the folder of committed reports or runs")
    found: dict[str, list[tuple[Path, dict[str, Any], dict[str, Any]]]] = {}
    for path in files:
        value, manifest = _read(path), path.with_name(MANIFEST)
        found.setdefault(_name(value, path), []).append((path, value, _read(manifest) if manifest.is_file() else {}))
    out = {}
    for name, mine in found.items():
        if len(mine) == 1:
            path, value, manifest_value = mine[0]
            out[name] = _committed(path, value, manifest_value)
        else:
            mine.sort(key=lambda one: (one[2].get("time", ""), _natural(str(one[0].relative_to(folder)))))
            out[name] = [_point(str(p.parent.relative_to(folder)), v, m, str(p)) for p, v, m in mine]
    return out


def _natural(text: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text)]


def _read(path: Path) -> dict[str, Any]:
    try:
        return _object(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot read: {error.strerror or error}") from None


def _object(data: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise InputError(f"{where}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{where}: not a JSON object")
    return value


def _name(value: dict[str, Any], where: object) -> str:
    try:
        return f"{value['dataset']}, {value['split']}" if value.get("split") else str(value["dataset"])
    except KeyError as error:
        raise InputError(f"{where}: not a summary of a run or report (it has no {error})") from None


def _point(revision: str, value: dict[str, Any], manifest: dict[str, Any], where: str) -> Point:
    try:
        data = value.get("data") or manifest["dataset"]
        at = {
            (one["system"], one["measure"]): Interval(
                _known(one["mean"]), _known(one["low"]), _known(one["high"]), one["n"], one["clusters"]
            )
            for one in value["results"]
        }
        pair = (data["memories"], data["labels"])
        return Point(
            revision,
            _name(value, where),
            str(value["version"]),
            value["primary"],
            value.get("baseline"),
            pair,
            at,
            str(value.get("pick", "")),
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"{where}: not a summary of a run or report ({error!r})") from None


def _known(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _committed(path: Path, value: dict[str, Any], manifest: dict[str, Any]) -> list[Point]:
    """The points of one file in git's history; the file alone where git does not know it."""
    here = _point(say("t.now").en, value, manifest, str(path))
    listed = _git(path.parent, "log", "--reverse", "--format=%H %h %cs", "--", f":(top,literal){_in_repository(path)}")
    out = []
    for line in (listed or b"").decode().splitlines():
        commit, short, day = line.split(" ", 2)
        name = _in_repository(path)
        held = _git(path.parent, "show", f"{commit}:{name}")
        if held is None:
            continue  # the commit that removed it
        beside = _git(path.parent, "show", f"{commit}:{Path(name).with_name(MANIFEST).as_posix()}")
        of_run = {} if beside is None else _object(beside, f"{short}:{MANIFEST}")
        out.append(_point(f"{day} {short}", _object(held, f"{short}:{name}"), of_run, f"{short}:{name}"))
    if not out or out[-1].at != here.at or out[-1].data != here.data:
        out.append(here)
    return out


def _in_repository(path: Path) -> str:
    """The file's path from the top of its repository, with slashes; its name where there is none."""
    prefix = _git(path.parent, "rev-parse", "--show-prefix")
    return (prefix or b"").decode().strip() + path.name


def _git(folder: Path, *arguments: str) -> bytes | None:
    """What git prints, or None where it fails or is not there."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def history_html(found: dict[str, list[Point]], *, lang: Lang = "en") -> str:
    """The trends of all sets as one HTML document. Raises InputError where the extra `reports` is missing."""
    images.needs_extra()
    views, packs = [], {}
    for place, (name, points) in enumerate(found.items()):
        measures = _measures(points)
        packs[f"charts-{place}"] = packed(
            {one: {f"trend-{m}": _trend(points, measure, one) for m, measure in enumerate(measures)} for one in LANGS}
        )
        views.append({"name": name, "measures": measures, "rows": _rows(points)})
    title, names = say("history"), " · ".join(found)
    return page("history.html.j2", Both(f"{title.en}: {names}", f"{title.zh}：{names}"), lang, packs, sections=views)


def _measures(points: Sequence[Point]) -> list[str]:
    last = points[-1]
    measured = {measure for _, measure in last.at}
    return [name for name in dict.fromkeys((last.primary, *MEASURES)) if name in measured]


def _shown(points: Sequence[Point]) -> list[str]:
    """Baseline, pick and best systems of the last revision, and the best of every other one."""
    last = points[-1]
    sign = -1.0 if parse_measure(last.primary).higher_is_better else 1.0
    order = sorted(
        (system for system, measure in last.at if measure == last.primary),
        key=lambda name: sign * last.at[name, last.primary].mean,
    )
    first = [name for name in (last.baseline, last.pick) if name in order]
    wanted = [*first, *order[: SHOWN_SYSTEMS - len(first)]]
    return list(dict.fromkeys([*wanted, *(point.best() for point in points)]))[: SHOWN_SYSTEMS + 2]


def _trend(points: Sequence[Point], measure: str, lang: str) -> Spec:
    rows, part = [], 0
    breaks = changed(points)
    names = short_names(_shown(points))
    for point in points:
        part += point.revision in breaks
        for system, label in names.items():
            one = point.at.get((system, measure))
            if one is not None and one.n:
                rows.append(
                    {
                        "revision": point.revision,
                        "system": label,
                        "part": f"{label} {part}",
                        "mean": one.mean,
                        "low": one.low,
                        "high": one.high,
                        "shown": f"{number(one.mean)} {bounds(one)}",
                    }
                )
    return charts.trend(rows, breaks, measure, lang)


def changed(points: Sequence[Point]) -> list[str]:
    """Revisions whose memories or labels are others than those of the revision before."""
    return [now.revision for before, now in itertools.pairwise(points) if before.data != now.data]


def _rows(points: Sequence[Point]) -> list[dict[str, Any]]:
    breaks, out = changed(points), []
    for point in reversed(points):
        best = point.best()
        one = point.at[best, point.primary]
        out.append(
            {
                "revision": point.revision,
                "version": point.version,
                "best": best,
                "text": number(one.mean),
                "range": bounds(one),
                "memories": point.data[0][:12],
                "labels": point.data[1][:12],
                "break": point.revision in breaks,
            }
        )
    return out
