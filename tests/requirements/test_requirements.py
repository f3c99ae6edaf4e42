"""docs/requirements.md, the table that it is made of, and the tests tell of the same
requirements.
"""

from collections import defaultdict
from string import ascii_lowercase

from tests.requirements.bugs import BUGS
from tests.requirements.table import DOCUMENT, claims, clauses, document, states


def test_the_document_is_what_the_command_writes() -> None:
    """Whoever claims or moves a test writes the page anew."""
    assert DOCUMENT.read_text() == document(), "write it anew: python -m tests.requirements"


def test_each_clause_stands_once() -> None:
    """There are sixty-eight requirements; the clauses of one have the letters from a on."""
    ids = [each.id for each in clauses()]
    assert len(ids) == len(set(ids))
    assert len(states()) == 68
    letters: dict[str, str] = defaultdict(str)
    for each in clauses():
        letters[each.requirement] += each.id.removeprefix(each.requirement)
    assert all(ascii_lowercase.startswith(found) for found in letters.values())


def test_what_tests_name_is_explained() -> None:
    """A test names a clause that is in the table: of a requirement with several, the letter too."""
    assert set(claims()) <= {each.id for each in clauses()}


def test_each_bug_has_its_place() -> None:
    """What a bug replaces stands once in the program, so that `python -m
    tests.requirements.plant` can plant it, against a clause that is held.
    """
    assert len(BUGS) >= 20
    assert [bug.clause for bug in BUGS if not bug.has_its_place] == []
    assert {bug.clause for bug in BUGS} <= set(claims())
