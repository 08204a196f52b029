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
_LATIN = "A-Za-z\u00c0-\u024f0-9"
_EMAIL = re.compile(
    rf"(?<![{_LATIN}._%+-])[{_LATIN}._%+-]+[@＠]"
    rf"(?:(?:[{_LATIN}-]+\.)+[A-Za-z]{{2,}}|\d{{1,3}}(?:\.\d{{1,3}}){{3}}|[A-Za-z][{_LATIN}-]{{2,}})(?![{_LATIN}-])"
    "|[\u4e00-\u9fff]{1,8}[@＠][\u4e00-\u9fff]+(?:[.．。][\u4e00-\u9fff]+)+"
)
"""An address; also a login at a host (`deploy@backup`), which tells as much. `nDCG@5` and `name@1.2.3` are none."""
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_NAMED = re.compile(
    r"(?:pass(?:word|wd|phrase)|pwd|secret|token|api[-_ ]?key|access[-_ ]?key|密码|口令|密钥|令牌)"
    r"[\"']?(?:\s*[:=：]|\s+is\b|\s*是|\s*为|(?<=[码令钥牌])\s*(?=[!-~]*\d))\s*[\"']?(?P<value>[^\s\"',;，。；、<>]{4,})",
    re.IGNORECASE,
)
"""What a text calls a password; its first word, since nothing tells where a sentence as a password ends."""
_RANDOM = re.compile(
    r"(?<![A-Za-z0-9_+/=-])(?:[0-9a-fA-F]{32,}|(?=[A-Za-z0-9_+/=-]*\d)[A-Za-z0-9_+/=-]{24,})(?![A-Za-z0-9])"
)
"""Long runs that look drawn by chance: 32 hexadecimal digits, or 24 signs of base64 with digits (see `_by_chance`)."""
_PREFIXED = re.compile(r"(?<![A-Za-z0-9])(?:npm|pypi|hf|sk|pk|rk|gh[a-z]|xox[a-z])[-_][A-Za-z0-9_-]{16,}")
"""Keys that begin with the name of their service."""
_LONG = re.compile(r"[!-~]{1000,}")
"""A run of ASCII of this length is no word. Masked whole, before anything else looks at it: that stays quick."""
_NUMBER = re.compile(r"(?<![\dA-Za-z.])(?:\d{15,19}|\d{17}[Xx]|\d{4}(?:[ -]\d{4}){3}(?:[ -]\d{1,4})?)(?![\dA-Za-z])")
"""Numbers of identity and bank cards, by their length."""
_ROOTS = "home|Users|Volumes|private|root|mnt|media|srv|opt|usr|var|etc|tmp|data|workspaces?|app|code|repos?|builds?"
_REST = r"[^\s\"'`<>|*?;，。；、（）()]*"
_PATH = re.compile(
    rf"file://{_REST}"
    rf"|(?:(?<![A-Za-z0-9])[A-Za-z]:[\\/](?!/)|\\\\[\w.$-]+\\|%[A-Za-z]+%\\){_REST}"
    r"(?: [^\s\\\"<>|]+\\[^\s\"<>|，。]*)*(?: [^\s\\.\"]+\.\w{1,5}\b)?"
    rf"|(?<![\w/.<])(?:~|\$\{{?HOME\}}?|/(?:{_ROOTS}))/{_REST}"
)
"""File URLs, Windows and network paths (a blank may stand in a folder's name), those below a home folder, and absolute
ones below the usual roots."""
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
        regions = [one.upper() for one in regions]
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
        if len(text) >= 1000:
            text = _LONG.sub(lambda found: self._mark("key", found[0]), text)
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
        for found in _NUMBER.finditer(text):
            yield *found.span(), "number"
        if any("0" <= char <= "9" for char in text):
            for region in self._regions:
                for number in self._matcher(text, region):
                    yield number.start, number.end, "phone"

    def _keys(self, text: str) -> Iterator[Span]:
        yield from (found.span() for found in _PRIVATE_KEY.finditer(text))
        yield from (found.span("value") for found in _NAMED.finditer(text))
        yield from (found.span() for found in _PREFIXED.finditer(text))
        yield from (found.span() for found in _RANDOM.finditer(text) if _by_chance(found[0]))
        place = 0
        for line in text.splitlines(keepends=True):
            for value in {secret for service in self._services for secret in service(line)}:
                start = line.find(value)
                while start >= 0:
                    yield _whole(text, place + start, place + start + len(value))
                    start = line.find(value, start + len(value))
            place += len(line)


def _by_chance(value: str) -> bool:
    """Words joined by hyphens or slashes are not; hexadecimal digits, mixed case, and letters among digits are."""
    if re.fullmatch(r"[0-9a-fA-F]+", value) or (value != value.lower() and value != value.upper()):
        return True
    return value.isalnum() and sum(char.isdigit() for char in value) > 1 and not value.isdigit()


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
