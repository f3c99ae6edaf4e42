"""Makes pages from values: jinja2 with all escaping on. Only drawings, the style and the script go
in as they are, each at one place in `base.html` or `macros.html`; the browser knows the last two by
their digests.
"""

import hashlib
from base64 import b64encode
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .files import as_csv
from .tables import ReportTable, plural, shown

_TEMPLATES = Path(__file__).parents[1]
"""A template's name is its path from here: `page/base.html`, `report/report.html`."""


def render(template: str, **values: Any) -> bytes:
    """Render a page that extends `page/base.html`; the same values give the same bytes."""
    return (_environment().get_template(template).render(**values) + "\n").encode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, *scripts = (
        (_TEMPLATES / "page" / name).read_text("utf-8") for name in ("style.css", "sort.js", "search.js")
    )
    environment.globals |= {"style": style, "script": "".join(scripts)}
    environment.filters |= {"shown": shown, "plural": plural, "csv": _csv_address, "digest": _digest}
    return environment


def _csv_address(table: ReportTable) -> str:
    """Return a table as CSV within an address, so that a page that was mailed has it, too."""
    return f"data:text/csv;charset=utf-8;base64,{b64encode(as_csv(table)).decode()}"


def _digest(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
