"""The table of permissions in docs/security.md, made from the declarations of the APIs. To write it
anew: `python -m tests.security.permission_table`.
"""

from collections.abc import Iterator
from pathlib import Path

from minicontroller.protocol.registry import KAFKA
from tests.support.specs import WITH_RECORDS

DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"
BEGIN, END = "<!-- permissions -->\n", "<!-- end -->"


def table() -> Iterator[str]:
    yield "| API | permission | a client without it gets |"
    yield "|---|---|---|"
    for spec in sorted(WITH_RECORDS.values(), key=lambda spec: KAFKA[spec.key].name):
        name = KAFKA[spec.key].name
        for permission in spec.permissions:
            yield f"| {name} | {permission.title} | {permission.otherwise} |"
        if not spec.permissions:
            yield f"| {name} | none | |"


def filled(document: str) -> str:
    """Return the document with the table as it should be."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return "\n".join([f"{before}{BEGIN.rstrip()}", *table(), f"{END}{after}"])


if __name__ == "__main__":
    DOCUMENT.write_text(filled(DOCUMENT.read_text()))
