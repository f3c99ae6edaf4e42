"""Bugs in what is made of znodes that another program has rewritten, damaged or removed."""

from collections.abc import Sequence
from typing import Any

import msgspec

from minicontroller.cluster.entities import NO_TOPIC_ID, Topic
from minicontroller.cluster.znodes import layout
from minicontroller.controller.active import (
    identities,
    loading,
    rereading,
    store_watches,
    stored_topics,
)
from minicontroller.controller.active.topic_watches import TopicWatches
from minicontroller.controller.broker import change_notifications, registration
from minicontroller.controller.handlers import control
from minicontroller.store.base import Create, SetData
from tests.faults.planted import planting

ALONE = ("stranger",)


@planting.planted(troubles=ALONE)
def id_not_kept() -> None:
    """A topic whose znode has lost its id gets a new one."""
    identify = identities.identify

    def forgetful(draft: Any, topic: Topic) -> None:
        identify(draft, msgspec.structs.replace(topic, topic_id=NO_TOPIC_ID) if topic.lacks_id else topic)

    planting.put_in(identities, "_tell_of_new_id", lambda *_arguments: None)
    planting.put_in(identities, "identify", forgetful)
    planting.put_in(store_watches, "identify", forgetful)


@planting.planted(troubles=ALONE)
def damaged_topic_dropped() -> None:
    """A topic whose znode cannot be read is no topic."""
    load = loading.load_topics

    async def strict(*arguments: Any, **named: Any) -> list[Topic]:
        return [topic for topic in await load(*arguments, **named) if topic.is_readable]

    planting.put_in(loading, "load_topics", strict)
    planting.put_in(rereading, "load_topics", strict)


@planting.planted(troubles=ALONE)
def topics_unwatched() -> None:
    """Nobody sees what another program writes into the znode of a topic."""
    planting.put_in(TopicWatches, "watch", lambda *_arguments: None)


@planting.planted(troubles=ALONE)
def damaged_topic_written_over() -> None:
    """A partition that another program has removed from an assignment is gone."""

    def shrunk(assignment: Any, _known: Any, states: Sequence[Any]) -> Topic:
        found = assignment.found or Topic(assignment.name)
        return stored_topics._with_states(found, states, ())

    planting.put_in(stored_topics.Assignment, "_kept", shrunk)


@planting.planted(troubles=ALONE)
def registration_not_mended() -> None:
    """A node whose registration is deleted does not register again."""

    def once(path: str, *arguments: Any, **named: Any) -> Any:
        if path.startswith(layout.BROKER_IDS) and (made := made_before.setdefault(path, 0)) > 0:
            return SetData(f"/no/such/parent-{made}", None)
        made_before[path] = made_before.get(path, 0) + 1
        return Create(path, *arguments, **named)

    made_before: dict[str, int] = {}
    planting.put_in(registration, "Create", once)


@planting.planted(troubles=ALONE)
def every_epoch_believed() -> None:
    """A node follows any controller that says that it was elected."""

    async def elected(*_arguments: Any) -> bool:
        return True

    planting.put_in(control.ElectedController, "_was_elected", elected)


@planting.planted(troubles=ALONE)
def notification_kills() -> None:
    """A notification that cannot be read ends the reading of those behind it."""
    planting.put_in(change_notifications, "MalformedZnodeError", ArithmeticError)
