"""Tokens (recall semantics, section 2)."""

from __future__ import annotations

import re

_RUN = re.compile(r"[a-z0-9_]+|[\u4e00-\u9fff]+")


def tokenize(text: str) -> list[str]:
    """Lower-case runs of `[a-z0-9_]` whole; runs of CJK as overlapping bigrams, a lone ideograph as itself."""
    out: list[str] = []
    for run in _RUN.findall(text.lower()):
        if run[0] < "\u4e00" or len(run) == 1:
            out.append(run)
        else:
            out.extend(run[i : i + 2] for i in range(len(run) - 1))
    return out
