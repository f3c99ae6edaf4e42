"""docs/requirements.md, the table that it is made of, and the tests tell of the same
requirements.
"""

from tests.requirements_table import DOCUMENT, OPEN, claims, document, requirements


def test_the_document_is_what_the_command_writes() -> None:
    """Whoever claims or moves a test, or changes a state, writes the page anew."""
    assert DOCUMENT.read_text() == document(), "write it anew: python -m tests.requirements_table"


def test_each_requirement_stands_once() -> None:
    """There are sixty-eight ids, none of them twice."""
    ids = [each.id for each in requirements()]
    assert len(ids) == len(set(ids)) == 68


def test_a_requirement_is_as_held_as_its_tests() -> None:
    """What is held, if only in part, some test proves; of what is open no test claims anything."""
    assert {each.id for each in requirements() if each.missing != OPEN} == set(claims())


def test_what_tests_name_is_explained() -> None:
    """Whoever reads an id in a docstring finds in the document what it means."""
    assert set(claims()) <= {each.id for each in requirements()}
