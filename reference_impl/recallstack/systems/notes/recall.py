"""Search: two lists, reciprocal rank fusion, source weights, sensitivity, top-k, in this order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recallstack.ranking.candidates import Candidates
from recallstack.ranking.fusion import Fusion, fuse
from recallstack.ranking.rows import Sensitivity
from recallstack.ranking.source_weights import FACTS_WEIGHT, LEVELS, source_weight
from recallstack.systems.notes.chunker import chunk_id
from recallstack.systems.notes.config import NotesConfig
from recallstack.systems.notes.keywords import keyword_list, places
from recallstack.systems.notes.sensitivity import level_of
from recallstack.systems.notes.store import Store
from recallstack.systems.notes.switches import Switches
from recallstack.systems.notes.vectors import SemanticList, instruction_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One chunk, verbatim. id: `file#line`, `file#line.part` in a long entry. file: relative to `root`, with `/`.

    line: 1-based, the first of its entry. score: fused score times source weight. It comes from ranks over all
    notes, those above the session's level too: show hits to a session, not scores.
    """

    id: str
    root: str
    file: str
    line: int
    text: str
    score: float
    sensitivity: Sensitivity


@dataclass(frozen=True, slots=True)
class Found:
    """hits: best first. remarks: why a list is missing or nothing was looked up; names no note."""

    hits: tuple[Hit, ...] = ()
    remarks: tuple[str, ...] = ()


def _weight(file: str, switches: Switches) -> float:
    if switches.weights_off:
        return 1.0
    name = file.rsplit("/", 1)[-1]
    return FACTS_WEIGHT if switches.carryover_by_name and name in LEVELS else source_weight(file)


def recall(
    store: Store,
    semantic: SemanticList | None,
    config: NotesConfig,
    query: str,
    levels: frozenset[Sensitivity],
    limit: int,
) -> Found:
    """The best `limit` chunks of the given levels for a query.

    Both lists hold `config.candidates` rows of any level: sensitivity comes after fusion and weights, as documented.
    """
    switches = config.switches
    depth = min(limit, config.candidates) if switches.pool_is_limit else config.candidates
    instruction = instruction_of(config.query_instruction, switches)
    remarks = []
    vector, remark = (None, "") if semantic is None else semantic.embed(instruction + query)
    remarks.append(remark)
    with store.read():
        keywords = keyword_list(
            store, instruction + query if switches.instruction_in_keywords else query, depth, switches
        )
        near: list[tuple[int, float]] = []
        if semantic is not None and vector is not None:
            near, remark = semantic.top(vector, depth)
            remarks.append(remark)
        union = list({chunk for chunk, _ in (*keywords, *near)})
        named = places(store, union)
        union.sort(key=named.__getitem__)
        order = _fused(union, keywords, near, config, lambda row: named[union[row]][1], levels, limit)
        hits = tuple(_hit(store, union[row], named[union[row]], score, switches) for row, score in order)
    return Found(hits, tuple(one for one in remarks if one))


def _fused(
    union: list[int],
    keywords: list[tuple[int, float]],
    near: list[tuple[int, float]],
    config: NotesConfig,
    file_of: Callable[[int], str],
    levels: frozenset[Sensitivity],
    limit: int,
) -> list[tuple[int, float]]:
    """(position in `union`, score) of what is returned. Positions are in the order of files and lines."""
    switches = config.switches
    position = {chunk: row for row, chunk in enumerate(union)}
    lists = [[(position[chunk], score) for chunk, score in one] for one in (keywords, near)]
    fused = fuse(
        {"keyword": Candidates.from_lists([lists[0]]), "vector": Candidates.from_lists([lists[1]])},
        Fusion(method="rrf", k=config.rrf_k),
        len(union),
    )
    files = [file_of(row) for row in range(len(union))]
    weights = np.array([_weight(file, switches) for file in files], np.float64)
    seen = np.array([level_of(file, switches) in levels for file in files], np.bool_)
    scores = fused.scores * weights[fused.ids]
    ranked = Candidates(fused.ids, scores).sorted_by(scores)
    if switches.cut_before_filter:
        ranked = ranked.head(limit)
    return ranked.keep(seen[ranked.ids]).head(limit).to_lists()[0]


def _hit(store: Store, chunk: int, place: tuple[str, str, int, int], score: float, switches: Switches) -> Hit:
    root, file, line, part = place
    (text,) = store.connection.execute("SELECT text FROM chunks WHERE id = ?", (chunk,)).fetchone()
    return Hit(
        id=chunk_id(file, line, part),
        root=root,
        file=file,
        line=line,
        text=text,
        score=score,
        sensitivity=level_of(file, switches),
    )
