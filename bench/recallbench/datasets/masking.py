"""Personal and secret parts of texts, replaced by numbered marks before anybody reads a log.

A value has the same mark wherever it occurs (`<email-1>` is one address throughout), so that questions and memories
still belong together; which value a mark stands for is written nowhere. Telephone numbers are found by libphonenumber
(`phonenumbers`), keys of known services by `detect-secrets`; the rest by the patterns below. A mask is a net, not a
proof: names of people and of places stay. Read what was masked before you share it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from recallstack.errors import InputError

REGIONS = ("CN", "US")
"""Where a telephone number without a country code may be from (ISO 3166-1 alpha-2)."""
_EMAIL = re.compile(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_NAMED = re.compile(
    r"(?:pass(?:word|wd|phrase)|pwd|secret|token|api[-_ ]?key|access[-_ ]?key|密码|口令|密钥|令牌)"
    r"[\"']?\s*(?:[:=：]|\bis\b|是|为)\s*[\"']?(?P<value>[^\s\"',;，。；、<>]{4,})",
    re.IGNORECASE,
)
"""What a text calls a password."""
_RANDOM = re.compile(r"(?<![A-Za-z0-9_])(?:[0-9a-fA-F]{32,}|(?=[A-Za-z0-9_+/=-]*\d)[A-Za-z0-9_+/=-]{24,})")
"""Long runs that look drawn by chance: 32 hexadecimal digits, or 24 signs of base64 with digits and both cases."""
_PATH = re.compile(
    r"(?:(?<![A-Za-z0-9])[A-Za-z]:\\|\\\\[\w.$-]+\\|(?<![\w/:.<])(?:~|/(?:home|Users|root|mnt|srv|opt|var|etc|tmp|data))/)"
    r"[^\s\"'`<>|:*?，。；、（）()]*"
)
"""Windows and network paths, those below a home folder, and absolute ones below the usual roots."""
_TOKEN = re.compile(r"[^\s\"'`,;，。；、<>（）()]+")
_NO_KEYS = frozenset({"Public IP (ipv4)", "Secret Keyword", "Hex High Entropy String", "Base64 High Entropy String"})
"""Detectors that are left out: an address is no key, and the others are the patterns above."""
Span = tuple[int, int]


class Masker:
    """Masks texts, one after another. Not to be shared between sets: marks are numbered by first occurrence.

    regions: of telephone numbers without a country code. also: further regular expressions; what they match (their
    first group, if they have one) becomes `<masked-N>`. counts: different values masked, by kind. Raises InputError
    for a pattern that is no regular expression, an unknown region, or where the extra `logs` is not installed.
    """

    def __init__(self, regions: Sequence[str] = REGIONS, also: Sequence[str] = ()) -> None:
        try:
            import phonenumbers
            from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
        except ImportError:
            raise InputError(
                'masking needs phonenumbers and detect-secrets; install the extra: pip install "recallbench[logs]" '
                '(in a checkout: pip install -e ".[logs]")'
            ) from None
        unknown = [one for one in regions if one not in phonenumbers.SUPPORTED_REGIONS]
        if unknown:
            raise InputError(f"unknown region {unknown[0]!r}; give a two-letter country code such as CN")
        self._regions, self._matcher = tuple(regions), phonenumbers.PhoneNumberMatcher
        self._services = _services(get_mapping_from_secret_type_to_class)
        self._also = [_compiled(one) for one in also]
        self._marks: dict[tuple[str, str], str] = {}
        self.counts: Counter[str] = Counter()

    def __call__(self, text: str) -> str:
        """The text with marks. Of overlapping finds the one that begins first counts, the longest of these."""
        out, end = [], 0
        for start, stop, kind in sorted(self._found(text), key=lambda one: (one[0], -one[1])):
            if start >= end and stop > start:
                out += [text[end:start], self._mark(kind, text[start:stop])]
                end = stop
        return "".join([*out, text[end:]])

    def _mark(self, kind: str, value: str) -> str:
        key = kind, "".join(char for char in value if char.isdigit()) if kind == "phone" else value
        if key not in self._marks:
            self.counts[kind] += 1
            self._marks[key] = f"<{kind}-{self.counts[kind]}>"
        return self._marks[key]

    def _found(self, text: str) -> Iterator[tuple[int, int, str]]:
        for pattern in self._also:
            for found in pattern.finditer(text):
                yield *found.span(1 if pattern.groups else 0), "masked"
        for found in _EMAIL.finditer(text):
            yield *found.span(), "email"
        for start, stop in self._keys(text):
            yield start, stop, "key"
        for found in _PATH.finditer(text):
            yield *found.span(), "path"
        if any("0" <= char <= "9" for char in text):
            for region in self._regions:
                for number in self._matcher(text, region):
                    yield number.start, number.end, "phone"

    def _keys(self, text: str) -> Iterator[Span]:
        yield from (found.span() for found in _PRIVATE_KEY.finditer(text))
        yield from (found.span("value") for found in _NAMED.finditer(text))
        for found in _RANDOM.finditer(text):
            value = found[0]
            if re.fullmatch(r"[0-9a-fA-F]+", value) or (value != value.lower() and value != value.upper()):
                yield found.span()
        place = 0
        for line in text.splitlines(keepends=True):
            for value in {secret for service in self._services for secret in service(line)}:
                start = line.find(value)
                while start >= 0:
                    yield _whole(text, place + start, place + start + len(value))
                    start = line.find(value, start + len(value))
            place += len(line)


def _whole(text: str, start: int, stop: int) -> Span:
    """A detector may report a part of a key; the whole run of signs around it is masked."""
    for token in _TOKEN.finditer(text):
        if token.start() <= start < token.end():
            return token.start(), max(stop, token.end())
    return start, stop


@cache
def _services(mapping: Callable[[], dict[str, Any]]) -> tuple[Callable[[str], set[str]], ...]:
    from detect_secrets.settings import default_settings

    def service(plugin: Any) -> Callable[[str], set[str]]:
        return lambda line: {
            one.secret_value
            for one in plugin.analyze_line(filename="log", line=line, line_number=1)
            if one.secret_value
        }

    with default_settings():
        return tuple(service(made()) for kind, made in sorted(mapping().items()) if kind not in _NO_KEYS)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InputError(f"pattern {pattern!r}: no regular expression: {error}") from None
