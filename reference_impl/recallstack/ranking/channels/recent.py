"""Recent channel: the newest rows, whatever the query (recall semantics, section 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recallstack.ranking.candidates import Candidates
from recallstack.ranking.channels.retrieved import Retrieved
from recallstack.ranking.rows import Corpus


def retrieve(corpus: Corpus, queries: Sequence[str], depth: int) -> Retrieved:
    """The channel. Order: `updated_at`, newest first, then corpus position; rows without a time come last.

    Score: the share of rows that are not newer, in (0, 1], so that equal times score the same (a choice).
    """
    n = len(corpus)
    order = np.argsort(-corpus.updated, kind="stable")[:depth]
    newer = n - np.searchsorted(np.sort(corpus.updated), corpus.updated[order], side="right")
    ids = np.tile(order.astype(np.int32), (len(queries), 1))
    scores = np.tile((n - newer) / max(n, 1), (len(queries), 1))
    return Retrieved(Candidates(ids, scores))
