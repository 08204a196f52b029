"""What a report says, in English and Chinese: the texts of `words.toml`, filled in."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

Lang = Literal["en", "zh"]
LANGS: tuple[Lang, ...] = ("en", "zh")


class Both(NamedTuple):
    """A text in both languages."""

    en: str
    zh: str

    def in_(self, lang: str) -> str:
        """The text in one of LANGS."""
        return self.zh if lang == "zh" else self.en


@cache
def words() -> Mapping[str, Both]:
    """All texts by key."""
    source = files("recallbench.reports").joinpath("words.toml").read_text(encoding="utf-8")
    return {key: Both(**texts) for key, texts in tomllib.loads(source).items()}


def say(key: str, **values: object) -> Both:
    """The text under `key`, filled in; a value that is a Both is taken in the language of its sentence."""
    texts = [
        text.format(**{name: one.in_(lang) if isinstance(one, Both) else one for name, one in values.items()})
        for lang, text in zip(LANGS, words()[key], strict=True)
    ]
    return Both(*texts)


def listed(names: Sequence[str], most: int = 6) -> Both:
    """Names with commas; beyond `most` the rest is counted."""
    more = len(names) - most
    if more <= 0:
        return Both(", ".join(names), "、".join(names))
    return Both(f"{', '.join(names[:most])} and {more} more", f"{'、'.join(names[:most])} 等 {len(names)} 个")


def outcome(name: str) -> Both:
    """What became of a memory; an outcome that another system names itself stays as it is."""
    return words().get(f"outcome.{name}", Both(name, name))
