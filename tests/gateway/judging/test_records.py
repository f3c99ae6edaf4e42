"""What counts as shown of a change, and what an answer of the cluster means."""

from typing import Any, cast

import msgspec
import pytest

from minicontroller.admin.changes import Change, Outcome
from minicontroller.cluster.entities import Partition, Topic
from minicontroller.gateway.judging.forms.whole import WholeForm
from minicontroller.gateway.judging.judged import Form, Part
from minicontroller.gateway.judging.records import has_become
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode

BEFORE = Topic("orders", b"a" * 16, partitions=(Partition(replicas=(1, 2)), Partition(replicas=(2, 1))))
MOVED = BEFORE.with_partitions({0: Partition(replicas=(3, 4))})


def test_a_move_is_shown_by_the_replicas_that_it_moves() -> None:
    """A move counts as shown when every partition that it moves has left its replicas."""
    assert has_become(MOVED, BEFORE, MOVED)
    assert not has_become(MOVED, BEFORE, BEFORE)


def test_a_topic_under_another_id_shows_a_move() -> None:
    """A topic that was deleted, or made again under another id with the replicas of before, shows a
    move: it was carried out or never will be, so that nobody waits for it.
    """
    again = msgspec.structs.replace(BEFORE, topic_id=b"b" * 16)
    assert has_become(MOVED, BEFORE, again)
    assert has_become(MOVED, BEFORE, None)


def test_fewer_partitions_show_no_change() -> None:
    """A topic with fewer partitions under the same id is what a broker that lags shows, so it shows
    neither a growth nor a move.
    """
    fewer = msgspec.structs.replace(MOVED, partitions=MOVED.partitions[:1])
    assert not has_become(MOVED, BEFORE, fewer)
    grown = msgspec.structs.replace(BEFORE, partitions=(*BEFORE.partitions, Partition(replicas=(1,))))
    assert not has_become(grown, BEFORE, BEFORE)
    assert has_become(grown, BEFORE, grown)


def test_an_unknown_error_is_an_unknown_server_error() -> None:
    """An error code that this program does not know refuses the part as UNKNOWN_SERVER_ERROR, with
    the text of the cluster.
    """
    outcome = Part("orders", [], Outcome(Change("orders"))).answered(32_000, "too new")
    assert (outcome.code, outcome.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, "too new")


def test_an_incomplete_form_cannot_be_made() -> None:
    """A form that lacks one of the functions that every form has is refused when it is made, and
    not when the first request comes.
    """

    class Incomplete(Form):
        parts = WholeForm.parts
        together = WholeForm.together
        outcomes = WholeForm.outcomes

    incomplete = cast(Any, Incomplete)
    with pytest.raises(TypeError, match=r"abstract method '?plan"):
        incomplete(key=ApiKey.CREATE_TOPICS)
