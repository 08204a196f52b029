"""How many tokens a text costs: an estimate, with its rule."""

from __future__ import annotations

import math
import re

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")
CHARS_A_TOKEN = 4
"""Characters of other scripts to a token (a rule of thumb for English in byte-pair tokenizers; a choice)."""


def estimate_tokens(text: str) -> int:
    """One token for each CJK character, and one for every four other characters, rounded up."""
    wide = len(_CJK.findall(text))
    return wide + math.ceil((len(text) - wide) / CHARS_A_TOKEN)
