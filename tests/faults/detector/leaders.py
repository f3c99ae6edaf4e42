"""Whether what was seen of leaders can be: a leader's epoch names one leader for ever, grows with
every election, and never falls.

Rule: pure. Leaders change by themselves when nodes come and go, so that who leads is no part of the
order of operations (`models.py`); but each change has an epoch, and those have an order.
"""

from collections.abc import Iterable

import msgspec

from tests.faults.detector.history import DESCRIBE, ELECT, OK, Operation, Topic, Window, by_entity, told


class Sight(msgspec.Struct, frozen=True):
    """Partition 0 of a topic, as somebody saw it."""

    topic_id: str
    leader: int
    epoch: int
    began: float
    ended: float
    by: str
    source: tuple[int, int] | None = None
    """The client's connection on which it was seen: looks on one of them have an order."""

    @property
    def names_leader(self) -> bool:
        """A node does not name a leader that is gone, though the epoch is still that one's."""
        return self.leader >= 0


def contradictions(window: Window) -> list[str]:
    """At most one sentence for each topic."""
    found = []
    for entity, operations in by_entity(window):
        if entity.startswith("topics/"):
            sights = list(_sights(window, entity, operations))
            elections = [each for each in operations if each.kind == ELECT and each.outcome == OK]
            flaws = [*_two_leaders(sights), *_fallen(sights), *_not_raised(window, sights, elections)]
            found += [f"{entity}: {flaw}" for flaw in flaws[:1]]
    return found


def _sights(window: Window, entity: str, operations: Iterable[Operation]) -> Iterable[Sight]:
    yield from _in_tree(window.before.get(entity), window.began, "the tree in the beginning")
    for each in operations:
        if each.kind == DESCRIBE and each.outcome == OK and each.ended is not None and each.leader_epoch >= 0:
            yield Sight(
                each.topic_id,
                each.leader,
                each.leader_epoch,
                each.began,
                each.ended,
                told(each, window.began),
                (int(each.client.rpartition("-")[2] or 0), each.connection),
            )
    yield from _in_tree(window.after.get(entity), window.ended, "the tree in the end")


def _in_tree(topic: Topic | None, moment: float, by: str) -> Iterable[Sight]:
    if topic is not None and topic.leader_epoch >= 0:
        yield Sight(topic.topic_id, topic.leader, topic.leader_epoch, moment, moment, by)


def _two_leaders(sights: Iterable[Sight]) -> Iterable[str]:
    first: dict[tuple[str, int], Sight] = {}
    for sight in filter(lambda each: each.names_leader, sights):
        known = first.setdefault((sight.topic_id, sight.epoch), sight)
        if known.leader != sight.leader:
            yield (f"epoch {sight.epoch} has two leaders, {known.leader} ({known.by}) and {sight.leader} ({sight.by}).")


def _fallen(sights: Iterable[Sight]) -> Iterable[str]:
    """Yield the falls of epochs that one connection has seen, and of those in the tree at last."""
    highest: dict[tuple[str, tuple[int, int] | None], Sight] = {}
    ordered = sorted(sights, key=lambda each: each.ended)
    for sight in ordered:
        sources = [sight.source] if sight.source else {source for _, source in highest}
        for source in sources:
            known = highest.get((sight.topic_id, source))
            if known is not None and sight.epoch < known.epoch:
                yield f"the leader's epoch fell from {known.epoch} ({known.by}) to {sight.epoch} ({sight.by})."
        known = highest.get((sight.topic_id, sight.source))
        if known is None or sight.epoch > known.epoch:
            highest[sight.topic_id, sight.source] = sight


def _not_raised(window: Window, sights: Iterable[Sight], elections: Iterable[Operation]) -> Iterable[str]:
    """A topic whose id is seen before an election and in the tree after it had that election."""
    known = list(sights)
    last = next((each for each in known if each.source is None and each.began == window.ended), None)
    if last is None:
        return
    for election in elections:
        before = [each for each in known if each.topic_id == last.topic_id and each.ended < election.began]
        if before and max(each.epoch for each in before) >= last.epoch:
            yield (
                f"an election raised no epoch: {told(election, window.began)}, after which the epoch is "
                f"{last.epoch} as before."
            )
