"""docs/audit.md is what the structs say."""

import re

import msgspec

from minicontroller.audit import verifying
from minicontroller.audit.event import Event
from minicontroller.process.settings.keys import KEYS
from tests.audit.document import DOCUMENT, HEADING, PARTS, explanations, kinds, text


def test_the_schema_is_as_documented() -> None:
    """Every field of every kind of event stands in the document, as the structs have it (P-1b):
    `python -m tests.audit.document`.
    """
    assert DOCUMENT.read_text().partition(HEADING)[2] == text()


def test_every_field_is_explained() -> None:
    """No field is left to guesses."""
    structs: list[type[msgspec.Struct]] = [Event, *kinds(), *PARTS]
    for struct in structs:
        told = explanations(struct)
        own = [name for name in struct.__struct_fields__ if struct is Event or name not in Event.__struct_fields__]
        assert all(told[name] for name in own), (struct.__name__, [name for name in own if not told[name]])


def test_every_key_and_every_finding_is_named() -> None:
    """Every key in docs/audit.md exists, and it lists every kind of finding."""
    written = DOCUMENT.read_text()
    keys = set(re.findall(r"(?<!minicontroller\.)\baudit\.[a-z.]+[a-z]\b", written)) - {"audit.md"}
    assert keys and keys <= set(KEYS)
    findings = re.findall(r"`([a-z-]+)`", verifying.LogFinding.__doc__ or "") or re.findall(
        r"`([a-z-]+)`",
        (DOCUMENT.parent.parent / "audit/verifying.py").read_text().partition("file: Path")[0],
    )
    assert len(findings) == 12
    assert all(f"`{finding}`" in written for finding in findings)
