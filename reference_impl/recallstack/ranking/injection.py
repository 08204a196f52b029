"""Injection: which memories enter the prompt unasked (recall semantics, section 5).

One batch kernel; each of the four documented faults is one switch of `InjectRecipe`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallstack.ranking.candidates import NO_ROW, Candidates, Ids, Mask, Scores
from recallstack.ranking.fusion import Fusion, fuse
from recallstack.ranking.recipes import InjectRecipe
from recallstack.ranking.rows import Corpus, Sensitivity

COSINE_HITS = 200
"""Depth of the separate search that selective rerank takes its cosines from (seed 000, point 2)."""
OVERFETCH_FACTOR, OVERFETCH_LEAST = 4, 40
"""The fixed fetch depth is `max(4 * pool, 40)` (seed 000, proposed fix 2)."""
OWN_MULTIPLIER, FOREIGN_MULTIPLIER = 1.25, 0.5
"""Soft scope: own and unlabelled rows, foreign rows (recall semantics, section 5)."""
OUTSIDE_COSINE = -1.0
"""What the legacy rerank gives to a row outside the cosine hits."""
_TIERS = {"summary": 0, "preference": 1}
EVERY_LEVEL: frozenset[Sensitivity] = frozenset(("public", "personal", "secret"))


@dataclass(frozen=True, slots=True)
class Scope:
    """The agent and the workspace that ask; None is unknown.

    levels: the sensitivities that the session may see (of its channel, `notes.sensitivity`).
    """

    agent: str | None = None
    workspace: str | None = None
    levels: frozenset[Sensitivity] = EVERY_LEVEL


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """What may be injected for each of S distinct scopes, over a corpus of n rows.

    eligible: bool `[S, n]`. multiplier: float64 `[S, n]`.
    order: int32 `[S, n]`, eligible rows in rule order, -1 behind them.
    group: int64 `[Q]`, which scope a question has.
    """

    eligible: Mask
    multiplier: Scores
    order: Ids
    group: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Injection:
    """final: what is injected, best first, with the scores that ordered it.

    semantic: bool `[Q, N]`, which of `final` a channel contributed (the rest was filled by rule).
    stages: the lists after each step, by name, in order.
    """

    final: Candidates
    semantic: Mask
    stages: Mapping[str, Candidates]


def build_rules(corpus: Corpus, scopes: Sequence[Scope], recipe: InjectRecipe) -> Rules:
    """Eligibility, scope multiplier and rule order of every row, for the scope of each question."""
    distinct = list(dict.fromkeys(scopes))
    group = np.array([distinct.index(scope) for scope in scopes], dtype=np.int64)
    memories = corpus.memories
    base = np.array(
        [
            not m.archived
            and not m.forgotten
            and m.type != "history"
            and (m.type in _TIERS or m.importance >= recipe.importance_threshold)
            for m in memories
        ],
        dtype=np.bool_,
    )
    tier = np.array([_TIERS.get(m.type, 2) for m in memories], dtype=np.int64)
    worth = corpus.importance * np.array([m.quality for m in memories], dtype=np.float64)
    eligible = np.tile(base, (len(distinct), 1))
    multiplier = np.ones((len(distinct), len(memories)))
    order = np.full((len(distinct), len(memories)), NO_ROW, np.int32)
    for s, scope in enumerate(distinct):
        foreign = np.array([_foreign(m.agent_scope, m.workspace_scope, scope) for m in memories], np.bool_)
        if recipe.scope == "strict":
            eligible[s] &= ~foreign
        elif recipe.scope == "soft" and (scope.agent is not None or scope.workspace is not None):
            multiplier[s] = np.where(foreign, FOREIGN_MULTIPLIER, OWN_MULTIPLIER)
        if recipe.sensitivity == "channel":
            eligible[s] &= np.array([m.sensitivity in scope.levels for m in memories], np.bool_)
        if recipe.drop_superseded:
            for m, seen in zip(memories, eligible[s].copy(), strict=True):
                if seen and m.supersedes is not None and m.supersedes in corpus.index:
                    eligible[s, corpus.index[m.supersedes]] = False
        rows = np.flatnonzero(eligible[s])
        ranked = rows[np.lexsort((rows, -(worth * multiplier[s])[rows], tier[rows]))]
        order[s, : len(ranked)] = ranked
    return Rules(eligible, multiplier, order, group)


def _foreign(agent: str | None, workspace: str | None, scope: Scope) -> bool:
    """Foreign: a label of the row and the session's are both known and differ."""
    return (agent is not None and scope.agent is not None and agent != scope.agent) or (
        workspace is not None and scope.workspace is not None and workspace != scope.workspace
    )


def fetch_depth(recipe: InjectRecipe) -> int:
    """Rows that each channel is asked for."""
    pool = recipe.pool
    return max(OVERFETCH_FACTOR * pool, OVERFETCH_LEAST) if recipe.overfetch else pool


def look_up(rows: Ids, hits: Candidates) -> Scores:
    """float64 `[Q, N]`: the score of each row among `hits`, NaN where it is not among them."""
    out = np.full(rows.shape, np.nan)
    if not hits.width:
        return out
    step = max(1, 4_000_000 // max(1, rows.shape[1] * hits.width))
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        same = (part[:, :, None] == hits.ids[start : start + step, None, :]) & (part[:, :, None] >= 0)
        place = same.argmax(axis=2)
        found = np.take_along_axis(hits.scores[start : start + step], place, axis=1)
        out[start : start + step] = np.where(same.any(axis=2), found, np.nan)
    return out


def inject(
    vector: Candidates,
    bm25: Candidates,
    has_vector: Mask,
    embedded: Mask,
    rules: Rules,
    recipe: InjectRecipe,
) -> Injection:
    """Inject for Q questions.

    vector, bm25: the channels' lists, at least `max(fetch_depth(recipe), 200)` deep or complete.
    has_vector: bool `[Q]`, whether a query vector was there when it was needed; without one only BM25
    feeds the pool and nothing is reranked. embedded: bool `[n]`, rows that have an embedding.
    """
    depth, pool = fetch_depth(recipe), recipe.pool
    hits = vector.keep((vector.scores >= 0) & has_vector[:, None])
    cosines = hits.head(COSINE_HITS)
    eligible = rules.eligible[rules.group]
    multiplier = rules.multiplier[rules.group]

    def of_rows(table: NDArray[np.bool_] | Scores, rows: Ids) -> NDArray[np.float64]:
        return np.take_along_axis(table, np.maximum(rows, 0), axis=1).astype(np.float64)

    def gate(fetched: Candidates, rank: bool) -> tuple[Candidates, Candidates]:
        kept = fetched.keep(of_rows(eligible, fetched.ids) > 0)
        if recipe.floor is not None:
            cosine = np.nan_to_num(look_up(kept.ids, cosines))
            kept = kept.keep((cosine >= recipe.floor) | ~embedded[np.maximum(kept.ids, 0)])
        ordered = kept.sorted_by(kept.scores * of_rows(multiplier, kept.ids)) if rank else kept
        return kept, ordered.head(pool)

    stages: dict[str, Candidates] = {"vector": vector, "bm25": bm25}
    stages["vector.fetched"], stages["bm25.fetched"] = hits.head(depth), bm25.head(depth)
    stages["vector.eligible"], v = gate(stages["vector.fetched"], recipe.overfetch)
    stages["bm25.eligible"], b = gate(stages["bm25.fetched"], True)
    if not recipe.dual:
        b = b.keep(np.repeat((v.lengths == 0)[:, None], b.width, axis=1))
    stages["vector.pool"], stages["bm25.pool"] = v, b

    room = np.full(len(has_vector), pool)
    if recipe.capacity and recipe.dual:
        room[(v.lengths > 0) & (b.lengths > 0)] = 2 * pool
    widest = int(room.max(initial=pool))
    merged = fuse({"vector": v, "bm25": b}, Fusion(method="rrf", k=recipe.k), widest)
    merged = merged.keep(np.arange(merged.width) < room[:, None])
    stages["merged"] = merged
    filled = _fill(merged, rules, room)
    stages["filled"] = filled

    final = filled
    if recipe.selective_rerank:
        keys = _rerank_keys(filled, cosines, embedded, of_rows(multiplier, filled.ids), recipe)
        keys = np.where(has_vector[:, None], keys, -np.arange(filled.width, dtype=np.float64))
        final = Candidates(filled.ids, np.where(has_vector[:, None], keys, filled.scores)).sorted_by(keys)
        from_channel = look_up(final.ids, merged)
        stages["reranked"] = final
    else:
        from_channel = look_up(final.ids, merged)
    final = final.head(recipe.max_items)
    return Injection(final, ~np.isnan(from_channel[:, : recipe.max_items]) & final.present, stages)


def _fill(merged: Candidates, rules: Rules, room: NDArray[np.int64]) -> Candidates:
    """The merged rows, then rows in rule order until each question's room is used (score 0)."""
    widest = int(room.max(initial=0))
    rule = rules.order[rules.group][:, : 2 * widest]
    taken = ~np.isnan(look_up(rule, merged))
    both = Candidates(
        np.concatenate([merged.ids, np.where(taken, NO_ROW, rule)], axis=1).astype(np.int32),
        np.concatenate([merged.scores, np.where(taken | (rule < 0), np.nan, 0.0)], axis=1),
    )
    packed = both.keep(both.present)
    return packed.keep(np.arange(packed.width) < room[:, None])


def _rerank_keys(
    rows: Candidates, cosines: Candidates, embedded: Mask, multiplier: Scores, recipe: InjectRecipe
) -> Scores:
    """Keys of the selective rerank: cosine alone (legacy), or cosine and rank fusion (fixed)."""
    cosine = look_up(rows.ids, cosines)
    if not recipe.rerank:
        return np.where(np.isnan(cosine), OUTSIDE_COSINE, cosine * multiplier)
    norm = np.nan_to_num(rows.scores) * (recipe.k + 1) / 2
    has = embedded[np.maximum(rows.ids, 0)] if len(embedded) else np.zeros(rows.ids.shape, np.bool_)
    return np.where(has, 0.5 * np.nan_to_num(cosine) + 0.5 * norm, norm) * multiplier
