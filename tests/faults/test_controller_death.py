"""The controller dies, or is frozen, while clients create topics."""

import time

import pytest

from tests.faults.agreement import expect_nothing_lost
from tests.faults.conftest import Record
from tests.faults.stream import created, creation, streaming
from tests.faults.tree import BROKERS, CONTROLLER, Tree
from tests.support.nodes import Nodes
from tests.support.waiting import until
from tests.support.wire import read_answer

pytestmark = pytest.mark.slow


def test_nothing_acknowledged_is_lost_when_the_controller_is_killed(nodes: Nodes, tree: Tree, record: Record) -> None:
    """K590-2b: SIGKILL amid creations. Every topic that was acknowledged is there, whole, and led
    on every node that lives; none is half there; and creations succeed again as soon as the dead
    one's session is over.
    """
    controller = nodes.controller()
    with streaming(nodes.others(controller)) as stream:
        stream.wait_acknowledged(50)
        vacancy = tree.vacancy()
        killed_at = time.monotonic()
        controller.kill()
        succeeded_at = until(lambda: vacancy.seen_at and stream.first_after(vacancy.seen_at))
        stream.wait_acknowledged(20)
    assert vacancy.seen_at is not None and succeeded_at is not None
    record("seconds_from_kill_to_expiry", vacancy.seen_at - killed_at)
    record("seconds_from_expiry_to_next_create", succeeded_at - vacancy.seen_at)
    record("acknowledged", len(stream.acknowledged))
    record("in_doubt", len(stream.in_doubt))
    expect_nothing_lost(nodes, tree, stream)


def test_a_controller_that_was_frozen_writes_nothing_more(nodes: Nodes, tree: Tree, record: Record) -> None:
    """K590-2c: SIGSTOP beyond the session, then SIGCONT. The cluster goes on meanwhile; the one
    that wakes has lost its place: nothing in the tree is its work from then on, what was asked of
    it is done by its successor or in doubt, and it follows.
    """
    controller = nodes.controller()
    with streaming(list(nodes)) as stream, controller.wire() as wire:
        stream.wait_acknowledged(50)
        vacancy = tree.vacancy()
        controller.freeze()
        succeeded_at = until(lambda: vacancy.seen_at and stream.first_after(vacancy.seen_at))
        assert vacancy.seen_at is not None and succeeded_at is not None
        record("seconds_from_expiry_to_next_create", succeeded_at - vacancy.seen_at)
        stream.wait_acknowledged(20)
        epoch, place = tree.controller_epoch, tree.written(CONTROLLER)
        woken_after = max(tree.written(BROKERS).values())
        wire.send(wire.frame("CreateTopics", 7, creation("asked-while-it-slept")))
        controller.thaw()
        stream.note("asked-while-it-slept", created(read_answer("CreateTopics", 7, wire.receive())))
        until(lambda: controller.broker_id in tree.brokers)
        stream.wait_acknowledged(20)
    nodes.wait_known()
    assert tree.written(CONTROLLER) == place and tree.controller_epoch == epoch, "there was another election"
    since = [path for path, zxid in tree.written(BROKERS).items() if zxid > woken_after and path.endswith("/state")]
    assert since and {tree.json(path)["controller_epoch"] for path in since} == {epoch}
    expect_nothing_lost(nodes, tree, stream)
