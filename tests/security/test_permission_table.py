"""docs/security.md and the permissions that the APIs declare are one thing."""

from tests.security.permission_table import DOCUMENT, filled


def test_the_table_is_the_declarations() -> None:
    """The document has every API with the permissions that it asks for."""
    text = DOCUMENT.read_text()
    assert filled(text) == text, "write it anew: python -m tests.security.permission_table"
