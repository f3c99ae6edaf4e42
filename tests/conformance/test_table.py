"""The numbers of docs/conformance.md are those of the recordings."""

from tests.conformance.table import DOCUMENT, filled


def test_the_numbers_are_those_of_the_recordings() -> None:
    """Whoever adds a case or a difference makes the table anew, so that it is always true."""
    text = DOCUMENT.read_text()
    assert filled(text) == text, "write them anew: python -m tests.conformance.table"
