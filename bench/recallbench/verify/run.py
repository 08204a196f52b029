"""Known-answer tests of this installation: cases with the values that must come out.

Every check calls the same public functions as a run does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from recallbench.verify.cases import (
    KINDS,
    BM25Case,
    Case,
    FusionCase,
    Hit,
    InjectionCase,
    MeasuresCase,
)
from recallstack.errors import InputError
from recallstack.ranking.candidates import NO_ROW, Candidates
from recallstack.ranking.fusion import Fusion, Weights, fuse
from recallstack.ranking.injection import Rules, inject
from recallstack.ranking.recipes import INJECTION_SWITCHES, InjectRecipe, with_switches
from recallstack.ranking.specs import BM25Spec

TOLERANCE = 1e-9
_BM25: Mapping[str, Literal["okapi", "l", "plus"]] = {"BM25Okapi": "okapi", "BM25L": "l", "BM25Plus": "plus"}


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that did not come out."""

    what: str
    expected: object
    got: object


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one case. differences is empty where it passed."""

    kind: str
    case: str
    where: str
    line: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """All outcomes, in order."""

    outcomes: tuple[Outcome, ...]

    @property
    def failed(self) -> tuple[Outcome, ...]:
        return tuple(one for one in self.outcomes if one.differences)

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """kind -> (passed, failed), in the order of KINDS; kinds without a case are left out."""
        out = {}
        for kind in KINDS:
            mine = [one for one in self.outcomes if one.kind == kind]
            if mine:
                bad = sum(bool(one.differences) for one in mine)
                out[kind] = (len(mine) - bad, bad)
        return out


def shipped_cases() -> list[Path]:
    """The case files that come with the package, by name (from a checkout: `tests/cases`)."""
    shipped = Path(str(files("recallbench"))) / "_shipped" / "cases"
    folder = shipped if shipped.is_dir() else Path(__file__).parents[3] / "tests" / "cases"
    found = sorted(folder.glob("*.jsonl"))
    if not found:
        raise InputError(f"no known answers in {folder}; name files: recallbench verify FILE…")
    return found


def verify(paths: Iterable[Path]) -> Verification:
    """Check every case of the files. Raises InputError for a file or line that cannot be read."""
    return Verification(tuple(_outcome(*one) for path in paths for one in read_cases(path)))


def read_cases(path: Path) -> Iterator[tuple[Case, str, str]]:
    """(case, `file:line`, the line) of each line of a file."""
    decoder = msgspec.json.Decoder(Case)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read the cases: {error}") from None
    count = 0
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield decoder.decode(line), f"{path}:{number}", line
        except msgspec.DecodeError as error:
            raise InputError(f"{path}:{number}: not a known-answer case: {error}; kinds: {', '.join(KINDS)}") from None
        count += 1
    if not count:
        raise InputError(f"{path}: holds no case")


def _outcome(case: Case, where: str, line: str) -> Outcome:
    try:
        differences = tuple(_check(case))
    except InputError as error:
        raise InputError(f"{where}: case {case.case!r}: {error}") from None
    return Outcome(str(case.__struct_config__.tag), case.case, where, line, differences)


def _check(case: Case) -> Iterator[Difference]:
    match case:
        case FusionCase():
            return _check_fusion(case)
        case InjectionCase():
            return _check_injection(case)
        case MeasuresCase():
            return _check_measures(case)
        case BM25Case():
            return _check_bm25(case)


class _Rows:
    """Positions of the ids of one case, in the order of the ids."""

    def __init__(self, ids: Iterable[str]) -> None:
        self.names = sorted(set(ids))
        self.position = {name: place for place, name in enumerate(self.names)}

    def candidates(self, hits: Sequence[Hit]) -> Candidates:
        return Candidates.from_lists([[(self.position[hit.id], hit.score) for hit in hits]])

    def mask(self, ids: Iterable[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        out = np.zeros(len(self.names), np.bool_)
        out[[self.position[name] for name in ids if name in self.position]] = True
        return out

    def back(self, rows: Candidates) -> list[str]:
        return [self.names[place] for place in rows.ids[0] if place >= 0]


def _check_fusion(case: FusionCase) -> Iterator[Difference]:
    rows = _Rows(hit.id for one in case.channels.values() for hit in one)
    fusion = Fusion(
        method=case.recipe,
        mode=case.mode,
        k=60 if case.k is None else case.k,
        weighted=case.weighted,
        weights=Weights(**case.weights),
        like_override=case.like_override,
    )
    lists = {name: rows.candidates(hits) for name, hits in case.channels.items()}
    got = rows.back(fuse(lists, fusion, case.limit))
    if got != case.expected:
        yield Difference("ids", case.expected, got)


def _check_injection(case: InjectionCase) -> Iterator[Difference]:
    rows = _Rows(
        [
            *(hit.id for hit in case.vector),
            *(hit.id for hit in case.bm25),
            *case.rule_order,
            *case.eligible,
            *case.scope_multiplier,
        ]
    )
    count = len(rows.names)
    multiplier = np.ones((1, count))
    if case.soft_scope:
        multiplier[0] = [case.scope_multiplier.get(name, 1.0) for name in rows.names]
    order = np.full((1, count), NO_ROW, np.int32)
    eligible = rows.mask(case.eligible)
    ruled = [rows.position[name] for name in case.rule_order if eligible[rows.position[name]]]
    order[0, : len(ruled)] = ruled
    rules = Rules(eligible[None], multiplier, order, np.zeros(1, np.int64))
    for variant, expected in (("legacy", case.expected.legacy), ("fixed", case.expected.fixed)):
        recipe = with_switches(
            InjectRecipe(variant, max_items=case.max_items, selective_rerank=case.selective_rerank),
            INJECTION_SWITCHES if variant == "fixed" else (),
        )
        got = inject(
            rows.candidates(case.vector),
            rows.candidates(case.bm25),
            np.array([case.query_vector]),
            ~rows.mask(case.unembedded),
            rules,
            recipe,
        )
        ids = rows.back(got.final)
        if ids != expected:
            yield Difference(f"{variant} ids", expected, ids)


def _check_measures(case: MeasuresCase) -> Iterator[Difference]:
    from recallbench.evaluation.match import from_dicts
    from recallbench.measures import parse_measure

    questions, ranked = from_dicts(case.qrels, case.run)
    for name, values in case.expected.items():
        got = dict(zip(questions, parse_measure(name).compute(ranked).tolist(), strict=True))
        for question, expected in values.items():
            yield from _number(f"{name} of {question}", expected, got.get(question, math.nan))


def _check_bm25(case: BM25Case) -> Iterator[Difference]:
    from recallstack.ranking.channels.bm25 import BM25Index

    for name, expected in case.expected.items():
        spec = BM25Spec(variant=_BM25[name], k1=case.k1, b=case.b)
        scores = BM25Index(case.documents, spec).scores(case.queries)
        for query, row in enumerate(expected):
            for document, value in enumerate(row):
                yield from _number(f"{name} of query {query}, document {document}", value, scores[query, document])


def _number(what: str, expected: float, got: Any) -> Iterator[Difference]:
    if not abs(expected - got) <= TOLERANCE:
        yield Difference(what, expected, float(got))
