"""The parts that the APIs of delegation tokens share: who may send them, how principals are
written, and the edits of a token that its HMAC names.
"""

from collections.abc import Mapping
from typing import Protocol

from immutables import Map

KIND = "token"
NAMELESS = ""
"""The name of a token in the audit log that was not created, or that no HMAC named."""


class NamedPrincipal(Protocol):
    """A principal in a request."""

    principal_type: str
    principal_name: str


def text_of(principal: NamedPrincipal) -> str:
    return f"{principal.principal_type}:{principal.principal_name}"


def set_by(operations: Mapping[str, str | None]) -> Map[str, str]:
    """Return the kind of each operation, for the audit log."""
    return Map(dict.fromkeys(operations, "set"))
