"""What may be true by what a client was told."""

import pytest

from tests.soak.ledger import Ledger, altered, created, deleted, grown, put


def told() -> Ledger:
    ledger = Ledger()
    ledger.acknowledge("t", created(2, "1"), "creation")
    return ledger


def test_what_was_acknowledged_is_all_that_is_possible() -> None:
    """Acknowledged changes lead from one state to one other."""
    ledger = told()
    ledger.acknowledge("t", grown(5), "growth")
    ledger.acknowledge("t", altered("9"), "alteration")
    assert ledger.possible("t") == {(5, "9")}
    ledger.acknowledge("t", deleted, "deletion")
    assert ledger.possible("t") == {None}


@pytest.mark.parametrize("seen", [(2, "1"), (5, "1"), None])
def test_what_is_in_doubt_happened_or_did_not(seen: object) -> None:
    """Each state that doubtful changes could make is right."""
    ledger = told()
    ledger.doubt("t", grown(5))
    ledger.doubt("t", deleted)
    ledger.compare({"t": seen} if seen else {})
    assert not ledger.findings
    assert ledger.possible("t") == {seen}


def test_a_doubtful_change_may_happen_after_a_later_one() -> None:
    """A deletion that nobody heard of may come after a creation that was acknowledged."""
    ledger = told()
    ledger.doubt("t", deleted)
    ledger.acknowledge("t", created(3, "2"), "creation")
    assert ledger.possible("t") == {None, (3, "2")}


@pytest.mark.parametrize("seen", [None, (3, "1"), (2, "7")])
def test_what_was_acknowledged_and_lost_is_found(seen: object) -> None:
    """A state that nothing explains is a finding, once."""
    ledger = told()
    ledger.compare({"t": seen} if seen else {})
    ledger.compare({"t": seen} if seen else {})
    assert len(ledger.findings) == 1


def test_a_change_that_cannot_have_succeeded_is_found() -> None:
    """A second creation of a topic that exists for certain must be refused."""
    ledger = told()
    ledger.acknowledge("t", created(2, "1"), "creation")
    assert len(ledger.findings) == 1


def test_offsets_that_went_back_are_found() -> None:
    """An offset that was acknowledged is the one that is kept."""
    ledger = Ledger()
    ledger.acknowledge("offset", put(1), "commit")
    ledger.acknowledge("offset", put(2), "commit")
    ledger.compare({"offset": 1})
    assert ledger.findings
