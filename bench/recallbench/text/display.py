"""How results show themselves in a notebook: one description, rendered as autoescaped HTML or as plain text.

Nothing here ever holds the text of a memory or of a question.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from recallbench.text import tables as markdown

if TYPE_CHECKING:
    import jinja2

_TEMPLATE = """\
<div class="recallbench">
{%- for part in parts %}
{%- if part.title %}<p><strong>{{ part.title }}</strong>{% if part.about %}<br>{{ part.about }}{% endif %}</p>
{%- elif part.about %}<p>{{ part.about }}</p>{% endif %}
{%- if part.rows %}
<table>
<thead><tr>{% for name in part.header %}<th{% if not loop.first %} style="text-align: right"{% endif %}>{{ name }}</th>
{%- endfor %}</tr></thead>
<tbody>
{%- for row in part.rows %}
<tr>{% for cell in row %}{% if loop.first %}<th style="text-align: left">{{ cell }}</th>
{%- else %}<td style="text-align: right">{{ cell }}</td>{% endif %}{% endfor %}</tr>
{%- endfor %}
</tbody>
</table>
{%- endif %}
{%- if part.notes %}
<ul>{% for note in part.notes %}<li>{{ note }}</li>{% endfor %}</ul>
{%- endif %}
{%- endfor %}
</div>
"""


@dataclass(frozen=True, slots=True)
class Part:
    """A title with a sentence about it, a table whose first column names its rows, and notes below it."""

    title: str = ""
    about: str = ""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = ()


@cache
def _template() -> jinja2.Template | None:
    try:
        import jinja2
    except ImportError:
        return None
    return jinja2.Environment(autoescape=True).from_string(_TEMPLATE)


def to_html(parts: Iterable[Part]) -> str | None:
    """HTML for `_repr_html_`, every text escaped; None (a notebook then shows the plain text) without Jinja2."""
    template = _template()
    return None if template is None else template.render(parts=list(parts))


def to_text(parts: Iterable[Part]) -> str:
    """The same as plain text for `__repr__`."""
    out: list[str] = []
    for part in parts:
        lead = ": ".join(" ".join(one.split()) for one in (part.title, part.about) if one)
        table = markdown.table(part.header, part.rows) if part.rows else ""
        out.extend(one for one in (lead, table, "\n".join(f"- {' '.join(note.split())}" for note in part.notes)) if one)
    return "\n".join(out)


class Displayed(ABC):
    """A result that shows itself by its parts. A class that mixes it in says what they are in `_parts`."""

    @abstractmethod
    def _parts(self) -> list[Part]:
        """What is shown, in order."""

    def _repr_html_(self) -> str | None:
        return to_html(self._parts())

    def __repr__(self) -> str:
        return to_text(self._parts())


def counted(count: int, one: str, many: str = "") -> str:
    """`1 question`, `2 questions`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def plain(value: Any) -> str:
    """A cell of a data frame as text."""
    from recallbench.text.numbers import number

    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1 else number(value)
    return str(value)
