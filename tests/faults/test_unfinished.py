"""A controller's unfinished work is completed by its successor."""

import threading

import pytest

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.store.base import MAX_COMMIT_BYTES
from tests.faults.agreement import expect_agreement
from tests.faults.conftest import Record, Wired
from tests.faults.stream import create, delete
from tests.faults.tree import TOPICS, Tree
from tests.support.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.slow

PARTITIONS = 6_000
"""Several commits' worth: ZooKeeper takes 2,000 of them in one."""


def test_a_topic_that_is_half_there_is_made_whole(wired: Wired, tree: Tree, record: Record) -> None:
    """A topic that is larger than a commit, whose controller was killed between two of them, the
    second of which ZooKeeper never got whole: whoever asked is told that it is in doubt, and the
    successor creates what is missing; it can be deleted then.
    """
    nodes = wired.nodes
    controller = nodes.controller()
    asked = nodes.others(controller)[0]
    begun = threading.Event()
    tree.client.exists(f"{TOPICS}/huge", watch=lambda _: begun.set())
    codes: list[int] = []

    def ask() -> None:
        with asked.wire() as wire:
            codes.append(create(wire, "huge", partitions=PARTITIONS, replicas=2))

    wired.cut_after(controller.broker_id, MAX_COMMIT_BYTES * 3 // 2)
    asker = threading.Thread(target=ask, daemon=True)
    asker.start()
    assert begun.wait(PATIENCE_SECONDS)
    controller.kill()
    wired.cut([controller.broker_id])
    made = len(tree.children(f"{TOPICS}/huge/partitions"))
    assert made < PARTITIONS
    record("partitions_left_behind", made)
    asker.join(PATIENCE_SECONDS)
    assert codes == [ErrorCode.REQUEST_TIMED_OUT]
    until(lambda: tree.controller_id in {node.broker_id for node in nodes.running})
    until(tree.half_made, right=lambda flaws: not flaws)
    nodes.wait_known()
    expect_agreement(nodes.running, tree)
    with asked.wire() as wire:
        assert delete(wire, "huge") == ErrorCode.NONE
    wired.mend([controller.broker_id])
    nodes.start(controller.broker_id)  # its replicas are to be deleted, too
    until(lambda: tree.topics, right=lambda topics: not topics)
    until(tree.half_made, right=lambda flaws: not flaws)
