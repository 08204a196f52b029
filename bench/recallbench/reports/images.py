"""Charts as static SVG, without a browser and without the web."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from recallbench.reports.chart_parts import static
from recallstack.errors import InputError


@cache
def needs_extra() -> None:
    """Raise InputError, with what to install, where the extra `reports` is missing."""
    try:
        import altair  # noqa: F401
        import jinja2  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise InputError(f"reports need {error.name}; install it with: pip install 'recallbench[reports]'") from None


def vega_lite() -> str:
    """The version of Vega-Lite that Altair writes, as vl-convert names it: `6.1`."""
    import altair

    return ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def svg(spec: dict[str, Any], width: int = 720) -> str:
    """The chart as an SVG document on white."""
    import vl_convert

    out: str = vl_convert.vegalite_to_svg(json.dumps(static(spec, width)), vl_version=vega_lite())
    return out + "\n"


@cache
def library() -> str:
    """Vega, Vega-Lite and vega-embed as one script, which sets `window.vegaEmbed`."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=vega_lite())
    return bundle
