"""`run:FILE`: answers that were saved, as a TREC run or as JSON."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recallbench.datasets.model import LabelledSet
from recallbench.systems.base import Match, Observed, SystemRun
from recallbench.systems.faults import Fault, one_line
from recallbench.systems.matching import Matcher, read_id_map
from recallbench.systems.settings import RunSettings, Settings, public_values
from recallbench.systems.spec import Spec, digest, shown
from recallbench.systems.wire import Hit
from recallbench.trec.files import read_run
from recallbench.trec.order import trec_order
from recallstack.errors import InputError


class RunFile:
    """A saved run as a system. The order of a question's rows is that of its scores (TREC), ties by id.

    Raises InputError for a file that cannot be read.
    """

    def __init__(self, one: Spec, settings: Settings) -> None:
        assert isinstance(settings, RunSettings)
        self.path = (one.folder or Path()) / one.rest
        self.settings = settings
        self.name = one.name or self.path.name.removesuffix(".gz").removesuffix(self.path.suffix) or self.path.name
        self._id_map = read_id_map(Path(settings.id_map)) if settings.id_map else {}
        self._lists = read_saved(self.path)
        self.spec: dict[str, Any] = {
            "system": "run",
            "file": shown(str(one.rest)),
            "content": digest(self.path.read_bytes()),
            "settings": public_values(settings),
        }
        if self._id_map:
            self.spec["id_map"] = digest(repr(sorted(self._id_map.items())).encode())

    def run(self, labelled: LabelledSet, depth: int) -> SystemRun:
        """The first `depth` saved rows of each question."""
        matchers: dict[str, Matcher] = {}
        count = len(labelled.questions)
        errors = [""] * count
        ids: list[tuple[str, ...]] = [()] * count
        scores: list[tuple[float, ...]] = [()] * count
        matches: list[tuple[Match, ...]] = [()] * count
        # TREC has no word for an empty answer, and a run of ours holds every question.
        may_miss = self.settings.missing == "empty" or (self.path.parent.parent / "manifest.json").is_file()
        for place, question in enumerate(labelled.questions):
            found = self._lists.get(question.id)
            if found is None:
                if not may_miss:
                    errors[place] = 'has no line for the question; if it found nothing, set missing = "empty"'
                continue
            matcher = matchers.setdefault(
                question.corpus, Matcher(labelled, question.corpus, self._id_map, given=False)
            )
            try:
                rows = [(name, *matcher.ids(Hit(name, found[name]))) for name in trec_order(found)[:depth]]
            except Fault as error:
                errors[place] = str(error)
                continue
            flat = [(one, found[name], match) for name, mine, match in rows for one in mine or (name,)]
            ids[place] = tuple(one for one, _, _ in flat)
            scores[place] = tuple(score for _, score, _ in flat)
            matches[place] = tuple(match for _, _, match in flat)
        asked = {question.id for question in labelled.questions}
        unknown = [name for name in self._lists if name not in asked]
        notes: tuple[str, ...] = ()
        if unknown:
            notes = (
                f"the file also answers {len(unknown)} questions that were not asked ({one_line(unknown[0], 60)})",
            )
        return SystemRun(
            self.name,
            self.spec,
            tuple(ids),
            tuple(scores),
            np.array([len(one) for one in ids], np.int32),
            np.array([bool(one) for one in errors], np.bool_),
            notes=notes,
            observed=Observed(tuple(errors), tuple(matches), (math.nan,) * count, (False,) * count),
        )


def read_saved(path: Path) -> Mapping[str, Mapping[str, float]]:
    """question -> document -> score, from a TREC run or from JSON (`{question: {document: score}}`, as ranx writes).

    Raises InputError with the place of what cannot be read.
    """
    if path.name.removesuffix(".gz").endswith(".json"):
        return _read_json(path)
    return read_run(path)


def _read_json(path: Path) -> dict[str, dict[str, float]]:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        given = json.loads(data.decode("utf-8-sig"))
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: cannot read: {getattr(error, 'strerror', None) or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is no JSON in UTF-8: {error}") from None
    shape = "a run is {question: {document: score, …}, …}"
    if not isinstance(given, dict):
        raise InputError(f"{path}: {shape}")
    for question, found in given.items():
        if not isinstance(found, dict):
            raise InputError(f"{path}: question {one_line(question, 60)!r}: {shape}")
        for document, score in found.items():
            number = isinstance(score, (int, float)) and not isinstance(score, bool)
            if not (number and math.isfinite(score)):
                where = f"question {one_line(question, 60)!r}, document {one_line(document, 60)!r}"
                raise InputError(f"{path}: {where}: the score is not a finite number")
    return given
